/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the library: turns batches of models with the same wavelengths into templates of every arm, and writes the
 * templates to disk as they are made. */
#include "host/cli/templates/templates.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temporary.h"
#include "base/text.h"
#include "host/io/formats/npy.h"
#include "host/io/formats/npy_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, BLOCK = 16, BATCH_BYTES = 256 << 20, MAX_CONTINUUM = 20 };

typedef struct arm_state {
    clv_template_maker *maker; /* for the batch's wavelengths */
    clv_template_grid grid;
    clv_npy_stream stream;
    clv_text path; /* path of the stream, which borrows it */
    float *ccf;    /* [starts,grid.ccf_points] */
} arm_state;

typedef struct build {
    const templates_args *args;
    const templates_models *models;
    clv_context *context;
    clv_report *report;
    char folder[CLV_PATH_MOST]; /* where the library is made, inside the output */
    arm_state arm[TEMPLATES_ARMS];
    size_t *start_of; /* [models] index among the start templates; SIZE_MAX: none */
    size_t starts;
    /* the batch: models [from, from + count) */
    double *wavelength;
    const double *shared; /* shared by all models; NULL: `wavelength` is used */
    size_t points, from, count, room;
    float *flux;     /* [room,points] */
    float *log_flux; /* [room, points of the largest arm] */
    bool output_failed;
} build;

/* Records that an error concerns the output, not the models. */
static clv_status of_output(build *b, clv_status status)
{
    b->output_failed |= status != CLV_OK;
    return status;
}

/* ---- batches ------------------------------------------------------------------------------------ */

/* Puts the model's path before the error message. */
static clv_status of_file(const templates_model *model, clv_status status)
{
    static const char operation[] = "templates: ";
    char message[600];
    clv_copy_string(message, sizeof message, clv_error_message());
    const bool named = clv_starts_with(message, operation);
    return clv_fail(status, "%s: %s", model->path, message + (named ? sizeof operation - 1 : 0));
}

/* Makes the templates of the batch. If the batch is refused, tries its models one by one and reports the one at
 * fault. */
static clv_status make_templates(build *b, const arm_state *arm)
{
    const clv_status status =
        clv_template_maker_run(arm->maker, b->context, b->flux, b->count, b->log_flux, b->report);
    for (size_t i = 0; i < b->count && status == CLV_E_FORMAT; ++i)
        if (clv_template_maker_run(arm->maker, b->context, b->flux + i * b->points, 1, b->log_flux,
                                   NULL) == CLV_E_FORMAT)
            return of_file(&b->models->items[b->from + i], status);
    return status;
}

static clv_status run_batch(build *b)
{
    for (size_t a = 0; a < b->args->arm_count && b->count; ++a) {
        arm_state *arm = &b->arm[a];
        const size_t n = arm->grid.points;
        CLV_TRY(make_templates(b, arm));
        CLV_TRY(of_output(b, clv_npy_stream_add(&arm->stream, b->log_flux, b->count)));
        for (size_t i = 0; i < b->count; ++i) {
            const size_t start = b->start_of[b->from + i];
            if (start != SIZE_MAX)
                CLV_TRY(clv_template_maker_starts(arm->maker, b->log_flux + i * n, 1,
                                                  arm->ccf + start * arm->grid.ccf_points));
        }
    }
    b->from += b->count, b->count = 0;
    return CLV_OK;
}

static clv_status open_arm(build *b, size_t a, const clv_template_source *source)
{
    arm_state *arm = &b->arm[a];
    const templates_arm *wanted = &b->args->arms[a];
    clv_template_maker_free(arm->maker);
    CLV_TRY(clv_template_maker_create(source, &wanted->arm, &arm->maker));
    if (arm->ccf) return CLV_OK; /* only the wavelengths have changed */
    arm->grid = clv_template_maker_grid(arm->maker);
    arm->ccf = clv_alloc(b->starts * arm->grid.ccf_points, sizeof *arm->ccf);
    if (!arm->ccf) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    clv_text_add(&arm->path, "%s/%s", b->folder, wanted->name);
    if (!arm->path.failed) CLV_TRY(of_output(b, clv_dir_make(arm->path.data)));
    clv_text_add(&arm->path, "/log_flux.npy");
    if (arm->path.failed) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    return of_output(b, clv_npy_stream_open(&arm->stream, arm->path.data, arm->grid.points));
}

/* Takes over new wavelengths for the models from this one on. */
static clv_status take_wavelengths(build *b, const double *wavelength, size_t points)
{
    const clv_template_source source = { sizeof source, points, wavelength, b->args->model_power };
    const size_t fits = BATCH_BYTES / sizeof(float) / points / BLOCK * BLOCK;
    size_t widest = 0;
    b->points = points;
    b->room = CLV_MIN(CLV_MAX(fits, (size_t)BLOCK), (size_t)BATCH);
    for (size_t a = 0; a < b->args->arm_count; ++a) {
        CLV_TRY(open_arm(b, a, &source));
        widest = CLV_MAX(widest, b->arm[a].grid.points);
    }
    clv_free(b->flux), clv_free(b->log_flux);
    b->flux = clv_alloc(b->room * points, sizeof *b->flux);
    b->log_flux = clv_alloc(b->room * widest, sizeof *b->log_flux);
    return b->flux && b->log_flux
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "templates: not enough memory for a batch");
}

static bool is_same(const build *b, const double *wavelength, size_t points)
{
    const double *old = b->shared ? b->shared : b->wavelength;
    return old && b->points == points &&
           (old == wavelength || memcmp(old, wavelength, points * sizeof *old) == 0);
}

static clv_status add_model(build *b, size_t model)
{
    double *own;
    const double *wavelength;
    float *flux;
    size_t points;
    CLV_TRY(templates_read(b->args, b->models, model, &own, &wavelength, &flux, &points));
    clv_status status = CLV_OK;
    if (!is_same(b, wavelength, points) || b->count == b->room) status = run_batch(b);
    if (!status && !is_same(b, wavelength, points)) {
        clv_free(b->wavelength);
        b->wavelength = own, b->shared = own ? NULL : wavelength, own = NULL;
        status = take_wavelengths(b, wavelength, points);
        if (status == CLV_E_SHAPE || status == CLV_E_ARGUMENT)
            status = of_file(&b->models->items[model], status);
    }
    if (!status) memcpy(b->flux + b->count++ * points, flux, points * sizeof *flux);
    clv_free(own), clv_free(flux);
    return status;
}

/* ---- files -------------------------------------------------------------------------------------- */

static clv_status save(const build *b, const char *part, const char *name, clv_type type,
                       size_t rank, const size_t *shape, const void *data)
{
    clv_text path = { 0 };
    clv_file_array array = { .type = type, .rank = rank, .data = (void *)(uintptr_t)data };
    memcpy(array.shape, shape, rank * sizeof *shape);
    clv_text_add(&path, "%s/%s%s%s.npy", b->folder, part, *part ? "/" : "", name);
    const clv_status status = path.failed ? clv_fail(CLV_E_MEMORY, "templates: out of memory")
                                          : clv_npy_write(path.data, &array);
    clv_text_clear(&path);
    return status;
}

static clv_status finish_arm(build *b, size_t a, const templates_grid *grid)
{
    arm_state *arm = &b->arm[a];
    const char *name = b->args->arms[a].name;
    CLV_TRY(clv_npy_stream_finish(&arm->stream));
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k) {
        const char axis[] = { 'a', 'x', 'i', 's', '_', (char)('0' + k), '\0' };
        CLV_TRY(save(b, name, axis, CLV_F64, 1, &grid->nodes[k], grid->axis[k]));
    }
    CLV_TRY(save(b, name, "grid", CLV_I32, CLV_SPECTRA_PARAMETERS, grid->nodes, grid->row));
    return save(b, name, "ccf_models", CLV_F32, 2, (size_t[]){ b->starts, arm->grid.ccf_points },
                arm->ccf);
}

static void describe_arm(const build *b, size_t a, const templates_grid *grid, clv_json *arms)
{
    const clv_template_grid *g = &b->arm[a].grid;
    clv_json *entry = clv_json_add_object(arms, b->args->arms[a].name);
    clv_json_add_int(entry, "npix", (int64_t)g->points);
    clv_json_add_number(entry, "lam0", g->first);
    clv_json_add_number(entry, "lam1", g->last);
    clv_json_add_number(entry, "sigma", g->sigma);
    clv_json *nodes = clv_json_add_array(entry, "nodes");
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        clv_json_add_int(nodes, NULL, (int64_t)grid->nodes[k]);
    clv_json *ccf = clv_json_add_object(entry, "ccf");
    clv_json_add_number(ccf, "logl0", g->ccf_log0);
    clv_json_add_number(ccf, "logl1", g->ccf_log1);
    clv_json_add_int(ccf, "npoints", (int64_t)g->ccf_points);
    clv_json_add_number(ccf, "splinestep", g->ccf_spline_kms);
    clv_json_add_int(ccf, "maxcontpts", MAX_CONTINUUM);
    clv_json_add_bool(ccf, "continuum", true);
}

static clv_status write_description(const build *b, const templates_grid *grid)
{
    clv_text path = { 0 };
    clv_json *root = clv_json_object(), *arms = clv_json_add_object(root, "arms");
    for (size_t a = 0; a < b->args->arm_count; ++a)
        describe_arm(b, a, grid, arms);
    clv_json *names = clv_json_add_array(root, "parnames");
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        clv_json_add_string(names, NULL, templates_parameters[k]);
    clv_json *logs = clv_json_add_array(root, "log10_params");
    clv_json_add_int(logs, NULL, 0);
    clv_json_add_bool(root, "log_step", true);
    clv_json_add_string(root, "models", b->args->models);
    clv_json_add_number(root, "resolving_power_of_models", b->args->model_power);
    clv_text_add(&path, "%s/lib.json", b->folder);
    const clv_status status = path.failed ? clv_fail(CLV_E_MEMORY, "templates: out of memory")
                                          : clv_json_write(root, path.data);
    clv_json_free(root), clv_text_clear(&path);
    return status;
}

static clv_status write_starts(const build *b, const size_t *chosen)
{
    double *rows = clv_alloc(b->starts * (CLV_SPECTRA_PARAMETERS + 1), sizeof *rows);
    if (!rows) return clv_fail(CLV_E_MEMORY, "templates: out of memory");
    double *none = rows + b->starts * CLV_SPECTRA_PARAMETERS; /* vsini */
    for (size_t i = 0; i < b->starts; ++i) {
        memcpy(rows + i * CLV_SPECTRA_PARAMETERS, b->models->items[chosen[i]].parameter,
               sizeof b->models->items->parameter);
        none[i] = 0;
    }
    clv_status status = save(b, "", "ccf_params", CLV_F64, 2,
                             (size_t[]){ b->starts, CLV_SPECTRA_PARAMETERS }, rows);
    if (!status) status = save(b, "", "ccf_vsinis", CLV_F64, 1, &b->starts, none);
    clv_free(rows);
    return status;
}

/* ---- the folder --------------------------------------------------------------------------------- */

/* Moves one entry from the folder where the library is made to the output, or back. */
static bool move(const build *b, const char *name, bool back)
{
    char inside[2 * CLV_PATH_MOST], outside[2 * CLV_PATH_MOST];
    snprintf(inside, sizeof inside, "%s/%s", b->folder, name);
    snprintf(outside, sizeof outside, "%s/%s", b->args->output, name);
    return rename(back ? outside : inside, back ? inside : outside) == 0;
}

/* Publishes the whole library or nothing. lib.json comes last: without it the folder is not a library. */
static clv_status publish(const build *b)
{
    const char *names[TEMPLATES_ARMS + 3];
    size_t count = 0, moved = 0;
    for (size_t a = 0; a < b->args->arm_count; ++a)
        names[count++] = b->args->arms[a].name;
    names[count++] = "ccf_params.npy", names[count++] = "ccf_vsinis.npy";
    names[count++] = "lib.json";
    while (moved < count && move(b, names[moved], false))
        ++moved;
    if (moved == count) return CLV_OK;
    const clv_status status = clv_fail(CLV_E_IO, "%s: cannot move %s into this folder: %s",
                                       b->args->output, names[moved], strerror(errno));
    while (moved)
        (void)move(b, names[--moved], true);
    return status;
}

/* Creates the output folder if it does not exist, and in it the folder where the library is made. */
static clv_status open_folder(build *b, bool *made)
{
    *made = access(b->args->output, F_OK) != 0;
    CLV_TRY(clv_dir_make(b->args->output));
    return clv_temporary_folder_in(b->args->output, "templates", b->folder, sizeof b->folder)
               ? CLV_OK
               : clv_fail(CLV_E_IO, "%s: cannot make a folder inside this folder: %s",
                          b->args->output, strerror(errno));
}

/* Removes the working folder and, after a failure, an output folder that this run has created. */
static void close_folder(build *b, bool made, bool failed)
{
    if (*b->folder) clv_temporary_remove(b->folder);
    if (made && failed) (void)rmdir(b->args->output);
}

static int told(const build *b, clv_status status)
{
    return b->output_failed ? cli_status(cli_running(), status)
                            : cli_input_status(cli_running(), status);
}

int templates_build(const templates_args *a, const templates_models *m, const templates_grid *grid,
                    clv_context *context, clv_report *report)
{
    build b = { .args = a, .models = m, .context = context, .report = report };
    const size_t every = (m->count + a->starts - 1) / a->starts;
    size_t *chosen = clv_alloc(m->count, sizeof *chosen);
    b.start_of = clv_alloc(m->count, sizeof *b.start_of);
    b.starts = chosen ? templates_choose(m, grid, every, chosen) : 0;
    int code = CLI_OK;
    cli_bar bar;
    if (!b.starts || !b.start_of)
        code = cli_error(cli_running(), CLI_FAILED, "not enough memory for %zu models", m->count);
    for (size_t i = 0; i < m->count && !code; ++i)
        b.start_of[i] = SIZE_MAX;
    for (size_t i = 0; i < b.starts && !code; ++i)
        b.start_of[chosen[i]] = i;
    bool made = false;
    if (!code) code = cli_status(cli_running(), open_folder(&b, &made));
    cli_bar_start(&bar, &a->common, "models");
    for (size_t i = 0; i < m->count && !code; ++i) {
        code = told(&b, add_model(&b, i));
        if (!code && cli_progress("templates", i + 1, m->count, &bar))
            code = cli_error(cli_running(), CLI_INTERRUPTED, "cancelled after %zu of %zu models",
                             i + 1, m->count);
    }
    if (!code) code = told(&b, run_batch(&b));
    cli_bar_end(&bar);
    for (size_t i = 0; i < a->arm_count && !code; ++i)
        code = cli_status(cli_running(), finish_arm(&b, i, grid));
    if (!code) code = cli_status(cli_running(), write_starts(&b, chosen));
    if (!code) code = cli_status(cli_running(), write_description(&b, grid));
    if (!code) code = cli_status(cli_running(), publish(&b));
    clv_report_note(report, "models", (double)m->count);
    clv_report_note(report, "start_templates", (double)b.starts);
    for (size_t i = 0; i < a->arm_count; ++i) {
        clv_template_maker_free(b.arm[i].maker);
        clv_npy_stream_abandon(&b.arm[i].stream);
        clv_text_clear(&b.arm[i].path);
        clv_free(b.arm[i].ccf);
    }
    close_folder(&b, made, code != CLI_OK);
    clv_free(chosen), clv_free(b.start_of), clv_free(b.wavelength), clv_free(b.flux),
        clv_free(b.log_flux);
    return code;
}
