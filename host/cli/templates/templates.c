/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave templates`: makes a library of templates for `cleave specfit` from model spectra. */
#include "host/cli/templates/templates.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "host/cli/clash.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const double phoenix_power = 500000, desi_sigma = 0.5;
/* the profiles that are accepted: standard deviations in Angstrom, and wavelength / FWHM */
static const double sigma_range[] = { 1e-4, 1e4 }, power_range[] = { 1, 1e7 };

/* DESI's arms, as in rvspecfit's libraries. */
static const templates_arm desi_arms[] = {
    { "desi_b", { .size = sizeof(clv_template_arm), .first = 3500, .last = 5900, .step = 0.4 } },
    { "desi_r", { .size = sizeof(clv_template_arm), .first = 5660, .last = 7720, .step = 0.4 } },
    { "desi_z", { .size = sizeof(clv_template_arm), .first = 7420, .last = 9924, .step = 0.4 } },
};

static int bad_arm(const char *text)
{
    return cli_error(&cli_templates, CLI_USAGE,
                     "--arm is \"%s\", but it must be NAME=FROM:TO:STEP in Angstrom, with "
                     "FROM above 0, TO above FROM and STEP above 0, such as red=8400:8900:0.1, "
                     "optionally followed by a colon and the arm's own sigma, %g to %g Angstrom, "
                     "or R and a resolving power, %g to %g (red=8400:8900:0.1:R11500)",
                     text, sigma_range[0], sigma_range[1], power_range[0], power_range[1]);
}

/* Parses one NAME=FROM:TO:STEP[:SIGMA or :RPOWER]. */
static int read_arm(const templates_args *a, const char *text, templates_arm *arm)
{
    char copy[160], *rest = NULL;
    double numbers[3];
    clv_copy_string(copy, sizeof copy, text);
    char *equals = strchr(copy, '=');
    if (strlen(text) >= sizeof copy || !equals || equals == copy || equals - copy >= TEMPLATES_NAME)
        return bad_arm(text);
    *equals = '\0';
    for (const char *c = copy; *c; ++c)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-') return bad_arm(text);
    *arm = (templates_arm){ .arm = { .size = sizeof(clv_template_arm),
                                     .sigma = a->sigma,
                                     .resolving_power = a->resolving_power } };
    clv_copy_string(arm->name, sizeof arm->name, copy);
    char *word = strtok_r(equals + 1, ":", &rest);
    for (int i = 0; i < 3; ++i, word = strtok_r(NULL, ":", &rest))
        if (!word || !clv_parse_double(word, &numbers[i])) return bad_arm(text);
    if (!(numbers[0] > 0 && numbers[1] > numbers[0] && numbers[2] > 0)) return bad_arm(text);
    arm->arm.first = numbers[0], arm->arm.last = numbers[1], arm->arm.step = numbers[2];
    if (word) {
        const bool power = *word == 'R' || *word == 'r';
        const double *range = power ? power_range : sigma_range;
        double width;
        if (!clv_parse_double(word + power, &width) || !(width >= range[0] && width <= range[1]) ||
            strtok_r(NULL, ":", &rest))
            return bad_arm(text);
        arm->arm.sigma = power ? 0 : width, arm->arm.resolving_power = power ? width : 0;
    }
    return CLI_OK;
}

/* Parses --select, such as teff=4000:8000,feh=-2:0.5. */
static int read_select(templates_args *a)
{
    char copy[400], *rest = NULL;
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        a->low[k] = -INFINITY, a->high[k] = INFINITY;
    if (!a->select) return CLI_OK;
    clv_copy_string(copy, sizeof copy, a->select);
    bool good = strlen(a->select) < sizeof copy;
    for (char *word = strtok_r(copy, ",", &rest); word && good; word = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(word, '='), *colon = equals ? strchr(equals, ':') : NULL;
        int k = 0;
        good = colon != NULL;
        if (!good) break;
        *equals = *colon = '\0';
        while (k < CLV_SPECTRA_PARAMETERS && strcmp(word, templates_parameters[k]) != 0)
            ++k;
        good = k < CLV_SPECTRA_PARAMETERS && clv_parse_double(equals + 1, &a->low[k]) &&
               clv_parse_double(colon + 1, &a->high[k]) && a->low[k] <= a->high[k];
    }
    return good ? CLI_OK
                : cli_error(&cli_templates, CLI_USAGE,
                            "--select is \"%s\", but it must be ranges of teff, logg, feh and "
                            "alpha such as teff=4000:8000,feh=-2:0.5",
                            a->select);
}

static int read_arms(templates_args *a)
{
    for (size_t i = 0; a->arm_texts.items[i]; ++i) {
        if (i == TEMPLATES_ARMS)
            return cli_error(&cli_templates, CLI_USAGE, "--arm is given more than %d times",
                             TEMPLATES_ARMS);
        const int code = read_arm(a, a->arm_texts.items[i], &a->arms[a->arm_count++]);
        if (code) return code;
        for (size_t k = 0; k < i; ++k)
            if (strcmp(a->arms[k].name, a->arms[i].name) == 0)
                return cli_error(&cli_templates, CLI_USAGE, "--arm: the arm %s is given twice",
                                 a->arms[k].name);
    }
    for (size_t i = 0; !a->arm_texts.items[0] && i < CLV_LEN(desi_arms); ++i) {
        a->arms[a->arm_count] = desi_arms[i];
        a->arms[a->arm_count].arm.sigma = a->sigma;
        a->arms[a->arm_count++].arm.resolving_power = a->resolving_power;
    }
    for (size_t i = 0; i < a->arm_count; ++i)
        a->arms[i].arm.margin_kms = a->margin_kms, a->arms[i].arm.keep_slope = a->keep_slope;
    return CLI_OK;
}

static int check_args(templates_args *a)
{
    const struct {
        const char *name;
        double value, low, high;
    } ranges[] = { { "--sigma", a->sigma, sigma_range[0], sigma_range[1] },
                   { "--resolving-power", a->resolving_power_given ? a->resolving_power : 1,
                     power_range[0], power_range[1] },
                   { "--model-power", a->model_power, 0, 1e9 },
                   { "--margin", a->margin_kms, 1, 50000 } };
    if (!a->output)
        return cli_error(&cli_templates, CLI_USAGE,
                         "-o DIR is missing: the folder for the library");
    if (a->sigma_given && a->resolving_power_given)
        return cli_error(&cli_templates, CLI_USAGE,
                         "--sigma and --resolving-power cannot be used together; give one of them");
    for (size_t i = 0; i < CLV_LEN(ranges); ++i)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high))
            return cli_error(&cli_templates, CLI_USAGE, "%s is %g, but it must be %g to %g",
                             ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
    if (!a->starts || a->starts > 10000)
        return cli_error(&cli_templates, CLI_USAGE, "--starts is %llu, but it must be 1 to 10000",
                         (unsigned long long)a->starts);
    if (a->resolving_power_given) a->sigma = 0;
    const int code = read_arms(a);
    return code ? code : read_select(a);
}

/* Refuses to overwrite an existing file. */
static int check_absent(const templates_args *a, const char *name, const char *what)
{
    clv_text path = { 0 };
    clv_text_add(&path, "%s/%s", a->output, name);
    const bool there = !path.failed && access(path.data, F_OK) == 0;
    clv_text_clear(&path);
    return there ? cli_error(&cli_templates, CLI_USAGE,
                             "%s already has %s (%s); remove it, or give another folder", a->output,
                             what, name)
                 : CLI_OK;
}

static int check_output(const templates_args *a)
{
    int code = check_absent(a, "lib.json", "a library");
    for (size_t i = 0; i < a->arm_count && !code; ++i)
        code = check_absent(a, a->arms[i].name, "a folder of that arm");
    return code;
}

static void tell(const templates_args *a, const templates_models *m, const templates_grid *g)
{
    if (a->common.quiet) return;
    if (m->left_out)
        cli_warn(&cli_templates, "--select leaves out %zu of %zu models", m->left_out,
                 m->left_out + m->count);
    if (g->missing)
        cli_warn(&cli_templates,
                 "%zu of %zu nodes of the grid have no model, so %zu of %zu cells are complete; "
                 "elsewhere the nearest model is used, and a fit cannot move there",
                 g->missing, g->all, g->whole_cells, g->cells);
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        if (g->single[k])
            cli_warn(&cli_templates,
                     "all models have %s = %g: fits with this library hold this value",
                     templates_parameters[k], m->items[0].parameter[k]);
}

static int run(int argc, char **argv)
{
    templates_args a = { .sigma = desi_sigma, .margin_kms = 1000, .starts = 300 };
    templates_models models = { 0 };
    templates_grid grid = { .all = 0 };
    clv_context *context = NULL;
    clv_report *report = NULL;
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "DIR",
          "folder for the library, which must not have one yet" },
        { "arm", CLI_TEXTS, &a.arm_texts, "NAME=FROM:TO:STEP[:SIGMA]",
          "an arm and the step of its templates in Angstrom; may be repeated [b, r and z of "
          "DESI]" },
        { "sigma", CLI_DOUBLE, &a.sigma, "A",
          "standard deviation, in Angstrom, of the Gaussian line profile of the templates [0.5]",
          &a.sigma_given },
        { "resolving-power", CLI_DOUBLE, &a.resolving_power, "R",
          "instead of --sigma: wavelength / FWHM of that Gaussian", &a.resolving_power_given },
        { "model-power", CLI_DOUBLE, &a.model_power, "R",
          "wavelength / FWHM of the models themselves [500000 for PHOENIX, else infinite]",
          &a.model_power_given },
        { "wave", CLI_TEXT, &a.wave, "FILE",
          "the file with PHOENIX's wavelengths [WAVE_*.fits in the folder or beside it]" },
        { "select", CLI_TEXT, &a.select, "RANGES",
          "use only these models, such as teff=4000:8000,feh=-2:0.5" },
        { "wavelengths", CLI_CHOICE, &a.medium, "auto,vacuum,air",
          "whether the models of a table are in vacuum or air [auto: as the files say, else "
          "vacuum]" },
        { "starts", CLI_UINT, &a.starts, "N",
          "approximate number of templates with which the search for velocities begins [300]" },
        { "margin", CLI_DOUBLE, &a.margin_kms, "KMS",
          "how far the templates extend beyond an arm, as a velocity [1000]" },
        { "keep-slope", CLI_FLAG, &a.keep_slope, NULL,
          "keep the slope of the spectra: do not divide by a line through the medians of both "
          "halves" },
        { NULL },
    };
    cli_option common[CLI_COMMON_OPTIONS + 1];
    cli_common_table(&a.common, common);
    const cli_option *const tables[] = { own, common, NULL };
    int operands, code = cli_parse(&cli_templates, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_templates, "MODELS", operands, argv + 1)) >= 0) return code;
    if ((code = check_args(&a))) return code;
    a.models = argv[1];
    const cli_file inputs[] = { { "MODELS", a.models, NULL }, { "--wave", a.wave, NULL } };
    const cli_file outputs[] = { { "-o", "lib.json", a.output, 0 } };
    code = cli_check_files(&cli_templates, &a.common, inputs, CLV_LEN(inputs), outputs, 1);
    if (code >= 0) return code;
    if ((code = check_output(&a))) return code;
    const double started = clv_now();
    cli_catch_interrupts();
    code = templates_find(&a, &models);
    if (!a.model_power_given && models.phoenix) a.model_power = phoenix_power;
    if (!code) code = templates_make_grid(&models, &grid);
    if (!code) tell(&a, &models, &grid);
    if (!code && (code = cli_common_context(&cli_templates, &a.common, &context)) < 0)
        code = CLI_OK;
    if (!code) code = cli_status(&cli_templates, clv_report_create(&report));
    if (!code) code = templates_build(&a, &models, &grid, context, report);
    if (!code) code = cli_write_report(&cli_templates, &a.common, context, report);
    if (!code && !a.common.quiet)
        cli_say(stdout, "%zu models, %zu x %zu x %zu x %zu nodes, %zu %s in %.1f s: %s\n",
                models.count, grid.nodes[0], grid.nodes[1], grid.nodes[2], grid.nodes[3],
                a.arm_count, a.arm_count == 1 ? "arm" : "arms", clv_now() - started, a.output);
    templates_clear(&models), templates_clear_grid(&grid);
    clv_report_free(report), clv_context_free(context);
    return code;
}

const cli_command cli_templates = {
    .name = "templates",
    .summary = "make libraries of template spectra for specfit from models of stars",
    .operands = "MODELS -o DIR [OPTION...]",
    .description =
        "Smooths model spectra to the resolution of an instrument, resamples them to the "
        "grids\nthat specfit uses, and writes them as a library. MODELS is a folder of PHOENIX's "
        "published\nHiRes FITS files (Husser et al. 2013) with their file of wavelengths, or a CSV "
        "table\nwith the columns FILE, TEFF, LOGG, FEH and ALPHA that names spectra of any kind "
        "that\nspecfit reads. The models stand on a grid of these parameters; some may be missing.",
    .run = run,
};
