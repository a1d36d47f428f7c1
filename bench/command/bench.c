/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave bench`: reads the options, and writes the results. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "bench/command/parties.h"
#include "bench/command/specfit_stars.h"
#include "host/cli/clash.h"
#include "host/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const bench_workload *const workloads[] = { &bench_paco,        &bench_blobs,
                                                   &bench_link,        &bench_arrays,
                                                   &bench_transformer, &bench_specfit,
                                                   &bench_generate,    &bench_offload };

typedef struct bench_args {
    const char *modes, *device, *sizes, *only, *library, *coadd, *json, *html, *markdown, *peers,
        *environments, *model, *compare;
    clv_json *old;     /* the earlier result that `compare` names */
    clv_json *partial; /* the incomplete result to complete */
    uint64_t repeats, turns;
    double patience_s, budget_s;
    bool full, no_files, no_cold, quiet, patience_given, budget_given, turns_given, resume;
} bench_args;

enum { OPTION_ROWS = 22 };

static void make_table(bench_args *a, cli_option *table)
{
    const cli_option rows[] = {
        { "modes", CLI_TEXT, &a->modes, "LIST",
          "cpu, gpu, hybrid: measure the devices of these modes [$CLEAVE_MODE, else all that are "
          "possible]",
          NULL, "CLEAVE_MODE" },
        { "device", CLI_TEXT, &a->device, "SEL",
          "use these devices: gpu, cpu, all, N, P:D, name~TEXT, ...", NULL, "CLEAVE_DEVICE" },
        { "sizes", CLI_TEXT, &a->sizes, "LIST",
          "HEIGHTxWIDTHxFRAMES,... instead of the usual sizes" },
        { "only", CLI_TEXT, &a->only, "TEXT",
          "measure only entries whose name contains TEXT (A|B: A or B)" },
        { "library", CLI_TEXT, &a->library, "DIR",
          "specfit: templates as `cleave specfit` has them, instead of synthetic ones" },
        { "coadd", CLI_TEXT, &a->coadd, "FILE", "specfit: the stars to fit with that library" },
        { "model", CLI_TEXT, &a->model, "MODEL",
          "generate: the language model, a GGUF file or a folder [$CLEAVE_MODEL]", NULL,
          "CLEAVE_MODEL" },
        { "full", CLI_FLAG, &a->full, NULL, "also measure larger sizes (takes minutes)" },
        { "repeats", CLI_UINT, &a->repeats, "N",
          "repeat everything that is quick enough N times [5]" },
        { "turns", CLI_UINT, &a->turns, "N",
          "measure everything in N rounds, one after the other [1; with --peers 2]",
          &a->turns_given },
        { "patience", CLI_DOUBLE, &a->patience_s, "SECONDS",
          "time limit of one figure; what takes longer is left out [20; full: 120]",
          &a->patience_given },
        { "budget", CLI_DOUBLE, &a->budget_s, "SECONDS",
          "time limit of everything: fewer repetitions, and what has no time is left out [none]",
          &a->budget_given },
        { "resume", CLI_FLAG, &a->resume, NULL,
          "keep the figures that FILE of --json already has, and measure only the others" },
        { "no-files", CLI_FLAG, &a->no_files, NULL,
          "do not measure the whole command, from files to files" },
        { "no-cold", CLI_FLAG, &a->no_cold, NULL, "do not measure with empty caches" },
        { "json", CLI_TEXT, &a->json, "FILE", "write all figures (schema cleave.bench/1)" },
        { "html", CLI_TEXT, &a->html, "FILE", "write one page with tables and plots" },
        { "markdown", CLI_TEXT, &a->markdown, "FILE", "write the tables as Markdown" },
        { "compare", CLI_TEXT, &a->compare, "OLD.json",
          "report what became slower or faster than in an earlier result of --json" },
        { "peers", CLI_OPTIONAL, &a->peers, "DIR",
          "also measure outside programs, by DIR/run.py [bench/peers]" },
        { "peers-env", CLI_TEXT, &a->environments, "DIRS",
          "their Python environments, separated by colons [$CLEAVE_PEERS_ENV]" },
        { "q,quiet", CLI_FLAG, &a->quiet, NULL, "no progress on stderr" },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == OPTION_ROWS + 1, "OPTION_ROWS");
    memcpy(table, rows, sizeof rows);
}

/* ---- options ------------------------------------------------------------------------------------------ */

/* Reads a size like "100x100x50". */
static bool read_size(const char *text, size_t length, size_t size[3])
{
    char copy[64], *at = copy;
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (int i = 0; i < 3; ++i) {
        uint64_t value;
        char *end = at + strcspn(at, "x");
        if ((*end == 'x') != (i < 2)) return false;
        *end = '\0';
        if (!clv_parse_u64(at, &value) || !value || value > 65536) return false;
        size[i] = (size_t)value;
        at = end + 1;
    }
    return true;
}

static int read_sizes(const char *text, bench_sizes *sizes)
{
    for (const char *at = text; at && *at;) {
        const size_t length = strcspn(at, ",");
        size_t *size = sizes->given[sizes->given_count];
        if (sizes->given_count == CLV_LEN(sizes->given) || !read_size(at, length, size))
            return cli_error(&cli_bench, CLI_USAGE,
                             "--sizes is \"%s\", but it must be at most %zu of HEIGHTxWIDTHxFRAMES",
                             text, CLV_LEN(sizes->given));
        if (size[0] < 9 || size[1] < 9 || size[2] < 2)
            return cli_error(&cli_bench, CLI_USAGE,
                             "--sizes is \"%s\", but heights and widths must be at least 9, and "
                             "frames at least 2",
                             text);
        ++sizes->given_count;
        at += length + (at[length] == ',');
    }
    return -1;
}

static int choose_workloads(bench *b, int count, char **names)
{
    static const bench_workload *chosen[CLV_LEN(workloads)];
    bool wanted[CLV_LEN(workloads)] = { false };
    b->plan.runtime = count == 0;
    for (int k = 0; k < count; ++k) {
        size_t i = 0;
        while (i < CLV_LEN(workloads) && strcmp(names[k], workloads[i]->name) != 0)
            ++i;
        bool *const flag = i < CLV_LEN(workloads)             ? &wanted[i]
                           : strcmp(names[k], "runtime") == 0 ? &b->plan.runtime
                                                              : NULL;
        if (!flag || *flag)
            return cli_error(&cli_bench, CLI_USAGE,
                             "\"%s\" is %s; expected paco, blobs, link, arrays, "
                             "transformer, specfit, generate, offload or runtime",
                             names[k], flag ? "given twice" : "not a benchmark");
        *flag = true;
    }
    for (size_t i = 0; i < CLV_LEN(workloads); ++i)
        if (count ? wanted[i] : workloads[i] != &bench_offload)
            chosen[b->workload_count++] = workloads[i];
    b->workloads = chosen;
    return -1;
}

static int read_args(bench_args *a, bench *b)
{
    b->plan = (bench_plan){ .sizes = { .full = a->full,
                                       .only = a->only,
                                       .library = a->library,
                                       .coadd = a->coadd,
                                       .model = a->model },
                            .repeats = (size_t)a->repeats,
                            .turns = a->turns   ? (size_t)a->turns
                                     : a->peers ? 2
                                                : 1,
                            .patience_s = a->patience_given ? a->patience_s
                                          : a->full         ? 120
                                                            : 20,
                            .budget_s = a->budget_given ? a->budget_s : 0,
                            .until = a->budget_given ? clv_now() + a->budget_s : INFINITY,
                            .files = !a->no_files,
                            .cold = !a->no_files && !a->no_cold };
    if (!a->repeats || a->repeats > BENCH_MOST_SAMPLES)
        return cli_error(&cli_bench, CLI_USAGE, "--repeats is %llu, but it must be 1 to %d",
                         (unsigned long long)a->repeats, BENCH_MOST_SAMPLES);
    if (a->turns_given && !a->turns)
        return cli_error(&cli_bench, CLI_USAGE, "--turns is 0, but it must be 1 or more");
    b->plan.turns = CLV_MIN(b->plan.turns, b->plan.repeats);
    if (!(b->plan.patience_s > 0))
        return cli_error(&cli_bench, CLI_USAGE, "--patience is %g, but it must be more than 0",
                         b->plan.patience_s);
    if (a->budget_given && !(a->budget_s > 0))
        return cli_error(&cli_bench, CLI_USAGE, "--budget is %g, but it must be more than 0",
                         a->budget_s);
    if (a->resume && !a->json)
        return cli_error(&cli_bench, CLI_USAGE,
                         "--resume: --json FILE is missing; it names the earlier result");
    b->plan.figure_s = b->plan.single_s = b->plan.patience_s;
    return read_sizes(a->sizes, &b->plan.sizes);
}

static clv_status write_text(const char *path, char *text)
{
    const clv_status status = text ? clv_file_write(path, text, strlen(text))
                                   : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    clv_free(text);
    return status;
}

typedef struct keeper {
    const bench *b;
    const bench_args *args;
    double next; /* when the files may be written again */
} keeper;

/* Writes the files. During the measurements, they contain what is known so far. */
static clv_status write_files(const bench *b, const bench_args *a)
{
    clv_status status = CLV_OK;
    if (a->json) {
        clv_json *root = bench_json(b);
        status = clv_json_write(root, a->json);
        clv_json_free(root);
    }
    if (!status && a->html) status = write_text(a->html, bench_html(b));
    if (!status && a->markdown) status = write_text(a->markdown, bench_markdown(b));
    return status;
}

/* Writes the files anew, at most once per second: a later run can start from them if this one is killed. */
static void warn(const char *who)
{
    cli_warn(&cli_bench, "%s: %s", who, clv_error_message());
}

static void keep(void *user)
{
    static const double pause_s = 1;
    keeper *k = user;
    if (clv_now() < k->next) return;
    (void)write_files(k->b, k->args); /* the last time, a failure is reported */
    k->next = clv_now() + pause_s;
}

static int read_partial(bench_args *a)
{
    if (!a->resume || access(a->json, F_OK)) return -1;
    return cli_input_status(&cli_bench, bench_compare_open(a->json, &a->partial)) ? CLI_USAGE : -1;
}

static clv_status make_folder(bench *b)
{
    if (clv_temporary_folder("bench", b->folder, sizeof b->folder)) return CLV_OK;
    return clv_fail(CLV_E_IO, "no private folder in $TMPDIR or /tmp: %s", strerror(errno));
}

/* Finds the scripts of the outside programs and the environments that they run in. Returns -1, or an exit code after
 * a message. */
static int find_peers(const bench_args *a, char *scripts, const char **environments)
{
    *environments = a->environments ? a->environments : clv_environment("CLEAVE_PEERS_ENV");
    snprintf(scripts, BENCH_PATH, "%s", a->peers && *a->peers ? a->peers : "bench/peers");
    if (!a->peers) return -1;
    char script[BENCH_PATH + 16];
    snprintf(script, sizeof script, "%s/run.py", scripts);
    if (access(script, R_OK))
        return cli_error(&cli_bench, CLI_USAGE,
                         "--peers: no %s; give the folder bench/peers of Cleave's sources", script);
    if (!*environments || !**environments)
        return cli_error(&cli_bench, CLI_USAGE,
                         "--peers: no Python environment; `%s/setup.sh` makes one, then give it by "
                         "--peers-env or CLEAVE_PEERS_ENV",
                         scripts);
    return -1;
}

/* Returns whether the name contains one of the texts, which are separated by bars. */
static bool is_among(const char *name, const char *texts)
{
    char text[BENCH_PATH];
    for (const char *at = texts; *at; at += strcspn(at, "|"), at += *at == '|') {
        snprintf(text, sizeof text, "%.*s", (int)CLV_MIN(strcspn(at, "|"), (size_t)4000), at);
        if (*text && strstr(name, text)) return true;
    }
    return false;
}

/* Returns whether --only selects a case of the full sizes. */
static bool is_in_full(const bench *b)
{
    bench_sizes sizes = b->plan.sizes;
    bench_case *cases = clv_zalloc(BENCH_MOST_CASES, sizeof *cases);
    size_t all = 0;
    bool found = false;
    sizes.full = true;
    for (size_t i = 0; cases && i < b->workload_count; ++i)
        all += b->workloads[i]->cases(&sizes, cases + all, BENCH_MOST_CASES - all);
    for (size_t i = 0; i < all; ++i)
        found |= is_among(cases[i].name, sizes.only);
    clv_free(cases);
    return found;
}

/* Lists the cases that --only selects. */
static int list_cases(bench *b)
{
    const char *only = b->plan.sizes.only;
    size_t all = 0;
    for (size_t i = 0; i < b->workload_count; ++i)
        all += b->workloads[i]->cases(&b->plan.sizes, b->cases + all, BENCH_MOST_CASES - all);
    for (size_t i = 0; i < all; ++i)
        if (!only || is_among(b->cases[i].name, only)) b->cases[b->case_count++] = b->cases[i];
    const char *model = b->plan.sizes.model;
    for (size_t i = 0; i < b->workload_count; ++i) {
        if (b->workloads[i] != &bench_generate) continue;
        if (!model && b->workload_count == 1)
            return cli_error(&cli_bench, CLI_USAGE,
                             "generate: no model; --model MODEL names a GGUF file or a folder");
        if (model && access(model, R_OK))
            return cli_error(&cli_bench, CLI_USAGE,
                             "%s: cannot open the language model (--model or CLEAVE_MODEL): %s",
                             model, strerror(errno));
    }
    if (only && !b->case_count && is_in_full(b))
        return cli_error(&cli_bench, CLI_USAGE,
                         "--only: the names with \"%s\" are part of the full sizes; add --full",
                         only);
    if (only && !b->case_count)
        return cli_error(&cli_bench, CLI_USAGE, "--only: no name has \"%s\" in it", only);
    return -1;
}

static int run_bench(bench *b, const bench_args *a, const char *scripts, const char *environments)
{
    bool failed = false;
    keeper k = { .b = b, .args = a };
    clv_utc(b->started, sizeof b->started);
    const cli_file inputs[] = { { "--coadd", a->coadd, NULL },
                                { "--compare", a->compare, NULL },
                                { "--library", "lib.json", a->library },
                                { "--model", a->model, NULL } };
    const cli_file outputs[] = { { "--json", a->json, NULL, CLI_JSON | CLI_NO_STREAM },
                                 { "--html", a->html, NULL, CLI_HTML | CLI_NO_STREAM },
                                 { "--markdown", a->markdown, NULL,
                                   CLI_MARKDOWN | CLI_NO_STREAM } };
    int code = cli_input_status(&cli_bench, bench_stars_open(a->library, a->coadd));
    bench_generate_use(a->model);
    if (!code) code = list_cases(b);
    if (code < 0)
        code =
            cli_check_files(&cli_bench, NULL, inputs, CLV_LEN(inputs), outputs, CLV_LEN(outputs));
    if (code >= 0) return code;
    code = bench_choose_parties(b, a->modes, a->device, !a->quiet);
    if (code) return code;
    code = cli_status(&cli_bench, make_folder(b));
    if (!code && a->partial && !bench_resume(b, a->partial))
        cli_warn(&cli_bench,
                 "--resume: the earlier result is of version %s; everything is measured",
                 clv_json_string(clv_json_get(a->partial, "version"), "?"));
    if (!code) {
        const bench_orders orders = { scripts, environments, !a->quiet && cli_has_status_line(),
                                      keep,    warn,         &k };
        const clv_status status = bench_measure(b, &orders, &failed);
        if (!status) bench_print(b, stdout);
        code = cli_status(&cli_bench, status);
        const int written = cli_status(&cli_bench, write_files(b, a));
        if (!code) code = written;
    }
    if (!code && a->old) failed |= bench_compare(b, a->old, stdout) > 0;
    if (*b->folder) clv_temporary_remove(b->folder);
    return code ? code : failed ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
    bench_args a = { .repeats = 5 };
    cli_option table[OPTION_ROWS + 1];
    const cli_option *const tables[] = { table, NULL };
    char scripts[BENCH_PATH];
    const char *environments;
    int operands;
    make_table(&a, table);
    int code = cli_parse(&cli_bench, tables, argc, argv, &operands);
    if (code >= 0) return code;
    bench *b = clv_zalloc(1, sizeof *b);
    if (!b) return cli_error(&cli_bench, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < BENCH_MOST_CASES; ++i)
        for (size_t k = 0; k < BENCH_MOST_PARTIES; ++k)
            b->cells[i][k].agreement = -1;
    code = read_args(&a, b);
    if (code < 0) code = choose_workloads(b, operands, argv + 1);
    if (code < 0) code = find_peers(&a, scripts, &environments);
    if (code < 0 && a.compare &&
        cli_input_status(&cli_bench, bench_compare_open(a.compare, &a.old)))
        code = CLI_USAGE;
    if (code < 0) code = read_partial(&a);
    if (code < 0) {
        cli_catch_interrupts();
        code = run_bench(b, &a, a.peers ? scripts : NULL, environments);
    }
    clv_probe_free((clv_probe_report *)(uintptr_t)b->probe);
    clv_free(b);
    clv_json_free(a.old), clv_json_free(a.partial);
    return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "measure every device and mode, against plain C and outside programs",
    .operands = "[paco] [blobs] [link] [arrays] [transformer] [specfit] [generate] [offload] "
                "[runtime] [OPTION...]",
    .description =
        "Measures each device alone and the devices of each mode together: single kernels, "
        "computations\nfrom memory to memory, and whole commands from files to files, with warm "
        "and with empty\ncaches. Also measures the plain C reference and, with --peers, outside "
        "programs on the same\nfiles. Prints tables; writes figures, a page with plots and "
        "Markdown to files. Run it while\nthe machine does nothing else.\n\nExit codes: 0 done; 1 "
        "something could not be measured, or became slower (--compare);\n2 wrong usage; 3 a device "
        "or mode that was asked for is missing.",
    .run = run,
};
