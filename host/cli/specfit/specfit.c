/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave specfit`: parses options, reads, fits and keeps the stars block by block, and writes the results. */
#include "host/cli/specfit/files.h"
#include "host/cli/clash.h"
#include "host/cli/cluster.h"
#include "host/cli/share.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    RANK_ROWS = 16, /* stars per rank of a job, if the sum exceeds SPECFIT_BLOCK_ROWS */
    RANK_LEAST = 2, /* fewest stars per rank of a job; --save-every cannot ask for fewer */
};

/* Refuses an output that is one of the files found through patterns and lists. */
static int check_outputs(const specfit_args *a, const specfit_table *t)
{
    const char *const outputs[] = { a->output, a->models };
    for (size_t i = 0; i < t->input_count; ++i)
        for (size_t k = 0; k < CLV_LEN(outputs); ++k)
            if (outputs[k] && !cli_is_stream(outputs[k]) &&
                cli_same_file(outputs[k], t->inputs[i].path))
                return cli_error(&cli_specfit, CLI_USAGE,
                                 "%s is both an input and an output; give the output another name",
                                 outputs[k]);
    return CLI_OK;
}

/* Counts progress over all blocks. */
typedef struct progress {
    cli_bar bar;
    size_t before, total;
} progress;

static int show_progress(const char *job, size_t done, size_t total, void *user)
{
    progress *p = user;
    (void)total;
    return cli_progress(job, p->before + done, p->total, &p->bar);
}

/* Everything that a run holds. */
typedef struct run_state {
    clv_speclib library;
    clv_context *context;
    clv_report *report;
    specfit_table table;
    progress progress;
    clv_fits_rows models; /* file < 0: none, or finished */
    specfit_journal journal;
} run_state;

/* Reports a cancellation between jobs; jobs check for it themselves. */
static int cancelled(const run_state *s, size_t done)
{
    return cli_error(&cli_specfit, CLI_INTERRUPTED, "cancelled after %zu of %zu stars", done,
                     s->table.count);
}

/* Keeps the fit, with its models converted to the file's unit. */
static void keep_fit(const clv_spectrum *items, size_t spectra, const clv_specfit_result *result,
                     clv_specfit_result *fit)
{
    *fit = *result;
    for (size_t s = 0; s < spectra; ++s)
        for (size_t k = 0; fit->model[s] && items[s].unit != 1 && k < items[s].pixels; ++k)
            fit->model[s][k] = (float)((double)fit->model[s][k] * items[s].unit);
}

static int fit_block(const specfit_args *a, run_state *s, size_t from, size_t to)
{
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    specfit_row *rows = s->table.rows + from;
    const size_t count = to - from, spectra = specfit_slots(&s->table, rows, slots);
    specfit_batch batch;
    int code =
        cli_input_status(&cli_specfit, specfit_batch_read(a, &s->table, from, count, &batch));
    if (code) return code;
    clv_spectrum *items = clv_zalloc(CLV_MAX(count * spectra, (size_t)1), sizeof *items);
    clv_specfit_result *results = clv_zalloc(count, sizeof *results);
    if (!items || !results)
        code = cli_error(&cli_specfit, CLI_FAILED, "not enough memory for a block");
    for (size_t i = 0; !code && i < count; ++i) {
        specfit_slots(&s->table, &rows[i], slots);
        for (size_t k = 0; k < spectra; ++k)
            items[i * spectra + k] = specfit_batch_spectrum(&s->table, &batch, &slots[k]);
    }
    const clv_spectra_stars stars = { sizeof(clv_spectra_stars), count, spectra, items,
                                      s->table.priors ? s->table.priors + from : NULL };
    const clv_specfit_options options = {
        .size = sizeof options,
        .terms = (unsigned)a->npoly,
        .starts = (unsigned)a->starts,
        .min_velocity_given = true,
        .min_velocity_kms = a->min_vel,
        .max_velocity_kms = a->max_vel,
        .velocity_step_kms = a->vel_step,
        .max_vsini_kms = a->max_vsini,
        .library_sigma = isnan(a->sigma0) ? 0 : a->sigma0,
        .ignored = a->ignored,
        .ignored_count = a->ignored_count,
        .reject_sigma = a->reject > 0 ? a->reject : INFINITY,
        .models = a->models || a->plots,
        .progress = show_progress,
        .progress_user = &s->progress,
    };
    s->progress.before = from;
    clv_spectra_library library = s->library.library;
    library.arms = s->table.arms, library.arm_count = s->table.columns;
    if (!code)
        code = cli_status(&cli_specfit,
                          clv_specfit(s->context, &library, &stars, &options, results, s->report));
    for (size_t i = 0; !code && i < count; ++i)
        keep_fit(&items[i * spectra], spectra, &results[i], &rows[i].fit);
    for (size_t i = 0; !code && a->plots && i < count; ++i)
        code =
            cli_interrupted() ? cancelled(s, from) : specfit_plot(a, &s->table, &rows[i], &batch);
    if (!code && a->models) code = specfit_models_put(&s->table, from, count, &s->models);
    if (!code && s->journal.file >= 0)
        code = cli_status(&cli_specfit, specfit_journal_put(&s->journal, &s->table, from, count));
    if (results) clv_specfit_results_clear(results, count);
    for (size_t i = 0; i < count; ++i)
        memset(rows[i].fit.model, 0, sizeof rows[i].fit.model);
    clv_free(items), clv_free(results);
    specfit_batch_clear(&batch);
    return code;
}

/* Opens the journal beside the table; *done is the number of stars in it. */
static int open_journal(const specfit_args *a, run_state *s, size_t *done)
{
    clv_text path = { 0 }, identity = { 0 };
    clv_spectra_library library = s->library.library;
    library.arms = s->table.arms, library.arm_count = s->table.columns;
    clv_text_add(&path, "%s.journal", a->output);
    clv_status status = specfit_identity(a, &s->table, &library, s->context, &identity);
    if (!status && path.failed) status = clv_fail(CLV_E_MEMORY, "specfit: out of memory");
    if (!status)
        status = specfit_journal_open(path.data, identity.data, a->models != NULL, &s->table,
                                      a->models ? &s->models : NULL, &s->journal, done);
    if (!status && *done && !a->common.quiet)
        cli_say(stderr, "cleave specfit: resuming after %zu of %zu stars\n", *done, s->table.count);
    clv_text_clear(&path), clv_text_clear(&identity);
    return cli_status(&cli_specfit, status); /* an unwritable journal is a failed output */
}

/* Makes malloc return large blocks to the system as soon as they are freed, so that memory does not grow with the
 * number of stars. (By default glibc would gradually keep them.) */
static void give_memory_back(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

/* Returns the largest number of stars that are fitted in one job. Ranks share a job, so it needs some stars for each
 * rank. */
static size_t block_length(const specfit_args *a)
{
    const size_t ranks = (size_t)cli_cluster_ranks();
    const size_t usual = a->resume ? (size_t)a->save_every : SPECFIT_BLOCK_ROWS;
    if (ranks < 2) return usual;
    if (usual == SPECFIT_BLOCK_ROWS) return CLV_MAX(usual, RANK_ROWS * ranks);
    if (usual >= RANK_LEAST * ranks) return usual;
    if (!a->common.quiet)
        cli_say(stderr,
                "cleave specfit: with %zu ranks, finished stars are saved after every %zu, not "
                "after every %zu, because ranks share the stars between two saves\n",
                ranks, RANK_LEAST * ranks, usual);
    return RANK_LEAST * ranks;
}

static int fit_all(const specfit_args *a, run_state *s)
{
    int code = CLI_OK;
    size_t from = 0;
    if (a->models && (code = specfit_models_begin(a, &s->table, &s->models))) return code;
    if (a->resume && !cli_cluster_rank() && (code = open_journal(a, s, &from))) return code;
    s->progress.total = s->table.count;
    cli_bar_start(&s->progress.bar, &a->common, "stars");
    cli_cluster_tell(&from, sizeof from);
    const size_t most = cli_share_length(block_length(a), s->table.count);
    while (from < s->table.count && !code) {
        const size_t to = from + specfit_batch_length(&s->table, from, most);
        if (cli_interrupted())
            code = cancelled(s, from);
        else if (cli_share_step())
            code = fit_block(a, s, from, to);
        if (!code) from = to;
    }
    cli_bar_end(&s->progress.bar);
    if (!code) code = cli_input_status(&cli_specfit, cli_share_end());
    if (code && s->journal.file >= 0 && from)
        cli_warn(&cli_specfit, "%zu of %zu stars are saved in %s", from, s->table.count,
                 s->journal.path);
    return code;
}

/* Creates the context. With --use_gpu it also prints the log line, and uses the other devices if there is no GPU. */
static int make_context(specfit_args *a, char *batch, char *devices, run_state *s)
{
    if (a->gpu_batch_size && !a->common.batch) {
        snprintf(batch, 24, "%llu", (unsigned long long)a->gpu_batch_size);
        a->common.batch = batch;
    }
    if (!a->use_gpu && !a->gpu_devices) {
        const int code = cli_common_context(&cli_specfit, &a->common, &s->context);
        return code < 0 ? CLI_OK : code;
    }
    const clv_context_options gpus = { .size = sizeof gpus, .devices = "gpu" };
    clv_context *probe = NULL;
    clv_text list = { 0 };
    if (clv_context_create(&gpus, &probe) == CLV_OK) {
        for (size_t i = 0; i < clv_context_device_count(probe); ++i) {
            char number[24];
            const clv_probe_device *facts = clv_device_facts(clv_context_device(probe, i));
            snprintf(number, sizeof number, "%zu", i);
            if (a->gpu_devices && !specfit_is_listed(a->gpu_devices, (int64_t)i)) continue;
            clv_text_add(&list, "%s%zu:%u", list.length ? "," : "", facts->platform,
                         facts->ordinal);
        }
        clv_context_free(probe);
    }
    if (list.length && list.length < 256 && !a->common.device) {
        memcpy(devices, list.data, list.length + 1);
        a->common.device = devices;
    } else if (!a->common.quiet && !a->common.device) {
        cli_warn(&cli_specfit, "this machine has no GPU that --use_gpu or --gpu_devices allows; "
                               "the other devices do the work");
    }
    clv_text_clear(&list);
    const int code = cli_common_context(&cli_specfit, &a->common, &s->context);
    if (code < 0 && !a->common.quiet && s->context) {
        cli_say(stderr, "cleave specfit: batch size %s on",
                a->common.batch ? a->common.batch : "auto");
        for (size_t i = 0; i < clv_context_device_count(s->context); ++i)
            cli_say(stderr, " %s", clv_device_label(clv_context_device(s->context, i)));
        cli_say(stderr, "\n");
    }
    return code < 0 ? CLI_OK : code;
}

static void name_devices(const clv_context *context, char *out, size_t room)
{
    clv_text names = { 0 };
    for (size_t i = 0; i < clv_context_device_count(context); ++i)
        clv_text_add(&names, "%s%s", i ? ", " : "",
                     clv_device_label(clv_context_device(context, i)));
    clv_copy_string(out, room, names.length ? names.data : "plain C");
    clv_text_clear(&names);
}

static void note(const run_state *s)
{
    size_t good = 0;
    for (size_t i = 0; i < s->table.count; ++i)
        good += (s->table.rows[i].fit.warnings & ~(unsigned)CLV_SPECFIT_WIDE_ERROR) == 0;
    clv_report_note(s->report, "stars", (double)s->table.count);
    clv_report_note(s->report, "without_warnings", (double)good);
}

static int run(int argc, char **argv)
{
    specfit_args a = { .starts = 1,
                       .npoly = 10,
                       .min_vel = NAN,
                       .max_vel = NAN,
                       .vel_step = NAN,
                       .max_vsini = NAN,
                       .sigma0 = NAN,
                       .reject = 6,
                       .save_every = SPECFIT_BLOCK_ROWS,
                       .sigma_of = { NAN, NAN, NAN } };
    cli_option own[SPECFIT_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1],
        shared[CLI_SHARE_OPTIONS + 1];
    char batch[24], devices[256];
    specfit_make_options(&a, own);
    cli_common_table(&a.common, common);
    cli_share_table(&a.common, shared);
    const cli_option *const tables[] = { own, common, shared, NULL };
    int operands, code = cli_parse(&cli_specfit, tables, argc, argv, &operands);
    if (code >= 0) return code;
    if (operands < 1)
        return cli_error(&cli_specfit, CLI_USAGE,
                         "SPECTRA is missing: files of spectra, a pattern in quotes, or @FILE with "
                         "a path on each line");
    if (a.config && (code = specfit_read_config(&a))) return code;
    if ((code = specfit_read_columns(&a))) return code;
    specfit_set_defaults(&a);
    if ((code = specfit_check_options(&a)) >= 0 || (code = specfit_read_barycentric(&a)) != CLI_OK)
        return code;

    a.spectra = argv[1][0] == '@' ? argv[1] + 1 : argv[1];
    char *beside = a.zbest_include || a.zbest_select ? clv_redshifts_beside(a.spectra) : NULL;
    const cli_file inputs[] = {
        { "SPECTRA", a.spectra, NULL },        { "--config", a.config, NULL },
        { "--priors", a.priors, NULL },        { "--targets-file", a.targets_file, NULL },
        { "--redshifts", a.redshifts, NULL },  { "--zbest_include", beside, NULL },
        { "--library", "lib.json", a.library }
    };
    const cli_file outputs[] = { { "-o", a.output, NULL, CLI_FITS | CLI_CSV },
                                 { "--models", a.models, NULL, CLI_FITS | CLI_NO_STREAM },
                                 { "--plot", a.plots ? "summary.png" : NULL, a.plots, 0 } };
    code =
        cli_check_files(&cli_specfit, &a.common, inputs, CLV_LEN(inputs), outputs, a.plots ? 3 : 2);
    clv_free(beside);
    if (code >= 0) return code;
    run_state s = { .models.file = -1, .journal.file = -1 };
    const double started = clv_now();
    give_memory_back();
    code = cli_input_status(&cli_specfit, clv_speclib_read(a.library, &s.library));
    if (!code) code = specfit_open_inputs(&a, argv + 1, operands, &s.table);
    if (!code) code = check_outputs(&a, &s.table);
    for (size_t i = 0; !code && i < s.table.input_count; ++i)
        cli_share_input(s.table.inputs[i].path);
    if (!code) code = specfit_check_kinds(&a, &s.table);
    if (!code) code = specfit_read_ignored(&a, &s.table);
    if (!code) code = specfit_match(&a, &s.library, &s.table);
    if (!code) code = specfit_select(&a, &s.table);
    if (!code) code = specfit_read_priors(&a, &s.table);
    if (!code) code = make_context(&a, batch, devices, &s);
    if (!code) name_devices(s.context, s.table.device, sizeof s.table.device);
    if (!code) code = cli_status(&cli_specfit, clv_report_create(&s.report));
    if (!code && a.plots) code = cli_status(&cli_specfit, clv_dir_make(a.plots));
    if (!code) code = fit_all(&a, &s);
    if (!code && a.plots) code = specfit_plot_summary(&a, &s.table);
    if (!code && a.models) code = specfit_models_end(&a, &s.table, &s.models);
    if (!code) code = specfit_write(&a, &s.table);
    if (!code) note(&s);
    if (!code) code = cli_write_report(&cli_specfit, &a.common, s.context, s.report);
    if (!code) specfit_tell(&a, &s.table, s.report, clv_now() - started);
    specfit_journal_close(&s.journal, !code);
    clv_fits_rows_abandon(&s.models);
    specfit_table_clear(&s.table), clv_speclib_clear(&s.library);
    clv_report_free(s.report), clv_context_free(s.context);
    return code;
}

const cli_command cli_specfit = {
    .name = "specfit",
    .summary = "fit velocities and parameters of stars to their spectra",
    .operands = "SPECTRA... --library DIR -o FILE [OPTION...]",
    .description =
        "Fits velocity, rotation, temperature, gravity and abundances of every star in "
        "DESI's\ncoadd- or spectra- files, or of single spectra (SDSS, JWST, specutils and other "
        "FITS\ntables, IRAF and log-lambda images, text), with a library of templates. Writes "
        "the\ncolumns of rvspecfit, and adds the value of the likelihood and all "
        "covariances.\nSPECTRA are files, patterns in quotes, or @FILE with a path on each "
        "line.\nSpectra that cannot be fitted keep their row, with RVS_WARN = 32.",
    .run = run,
};
