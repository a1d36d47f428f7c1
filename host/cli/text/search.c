/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave search`: finds the vectors that are most similar to texts or to other vectors. */
#include "host/cli/endings.h"
#include "host/cli/share.h"
#include "host/cli/text/encode.h"
#include "host/cli/text/first_pass.h"
#include "host/cli/text/passages.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/npy_rows.h"
#include "host/io/tables/csv.h"

#include <cleave/search.h>

#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 << 20 }; /* bytes of rows in memory at a time */

typedef struct search_args {
    cli_encode_args encode;
    const char *model, *queries, *passages, *output, *codes;
    uint64_t top, rescore;
    int similarity, format, first_pass;
} search_args;

typedef struct search_state {
    const search_args *args;
    const char *vectors;
    cli_encode encode;
    clv_npy_rows file;
    cli_passages passages;
    cli_first_pass first;
    clv_context *context; /* borrowed from `encode`, or our own */
    clv_report *report;
    bool own;
    float *queries;
    size_t query_room, query_count, width;
    clv_search *search;
    int64_t *rows;
    float *scores;
    cli_bar bar;
    size_t done; /* rows of earlier blocks */
    double seconds;
} search_state;

static clv_status no_memory(void)
{
    return clv_fail(CLV_E_MEMORY, "not enough memory for queries or results");
}

/* ---- queries ------------------------------------------------------------------------------------ */

static clv_status take(void *user, const clv_token_rows *rows, const float *vectors)
{
    search_state *s = user;
    size_t wanted;
    CLV_TRY(cli_encode_finite(&s->encode, rows, vectors));
    if (!clv_size_mul(s->query_count + rows->rows, s->width, &wanted) ||
        !clv_reserve(&s->queries, &s->query_room, wanted, sizeof *s->queries))
        return no_memory();
    memcpy(s->queries + s->query_count * s->width, vectors,
           rows->rows * s->width * sizeof *vectors);
    s->query_count += rows->rows;
    return CLV_OK;
}

static int check_width(const search_state *s, const char *what, size_t width)
{
    if (width == s->file.width) return 0;
    return cli_error(&cli_search, CLI_USAGE,
                     "%s has vectors of %zu numbers, but %s has vectors of %zu; expected vectors "
                     "of the same model",
                     what, width, s->vectors, s->file.width);
}

static int embed_queries(search_state *s, const cli_file *output)
{
    int code = cli_encode_open(&s->encode, output, 1);
    if (code) return code;
    const clv_model_config *config = clv_model_get_config(s->encode.model);
    s->width = config->output;
    if ((code = check_width(s, s->args->model, s->width)) != 0) return code;
    code = cli_encode_start(&s->encode, config);
    if (!code) code = cli_status(&cli_search, cli_encode_run(&s->encode));
    s->context = s->encode.context, s->report = s->encode.report;
    return code;
}

static int read_queries(search_state *s)
{
    clv_npy_rows file = { 0 };
    int code = cli_input_status(&cli_search, clv_npy_rows_open(&file, s->args->queries));
    if (!code) code = check_width(s, s->args->queries, file.width);
    size_t numbers = 0;
    if (!code && (!clv_size_mul(file.rows, file.width, &numbers) ||
                  !clv_reserve(&s->queries, &s->query_room, numbers + 1, sizeof *s->queries)))
        code = cli_status(&cli_search, no_memory());
    if (!code)
        code = cli_input_status(&cli_search, clv_npy_rows_read(&file, 0, file.rows, s->queries));
    s->query_count = file.rows, s->width = file.width;
    clv_npy_rows_close(&file);
    if (!code) {
        code = cli_common_context(&cli_search, &s->args->encode.common, &s->context);
        if (code >= 0) return code;
        s->own = true;
        code = cli_status(&cli_search, clv_report_create(&s->report));
    }
    return code;
}

/* ---- the search ---------------------------------------------------------------------------------- */

static int show(const char *job, size_t done, size_t total, void *user)
{
    search_state *s = user;
    (void)total;
    return cli_progress(job, s->done + done, s->file.rows, &s->bar);
}

static clv_status add_rows(search_state *s)
{
    const size_t row_bytes = s->width * sizeof(float);
    const size_t most =
        cli_share_length(CLV_MAX((size_t)BLOCK_BYTES / row_bytes, (size_t)1), s->file.rows);
    float *block = clv_alloc(CLV_MIN(most, s->file.rows) * s->width + 1, sizeof *block);
    if (!block)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu rows of %s", most, s->vectors);
    clv_status status = CLV_OK;
    for (; s->done < s->file.rows && !status; s->done += CLV_MIN(most, s->file.rows - s->done)) {
        const size_t count = CLV_MIN(most, s->file.rows - s->done);
        if (!cli_share_step()) continue; /* another shard's rows */
        status = clv_npy_rows_read(&s->file, s->done, count, block);
        if (!status) status = clv_search_add(s->search, block, count, 0, s->report);
    }
    clv_free(block);
    return status ? status : cli_share_end();
}

static clv_status find(search_state *s)
{
    const search_args *a = s->args;
    const clv_search_options options = { .size = sizeof options,
                                         .top = (size_t)a->top,
                                         .similarity = (clv_similarity)a->similarity,
                                         .first_pass = s->first.codes,
                                         .rescore = s->first.codes ? (size_t)a->rescore : 0,
                                         .progress = show,
                                         .progress_user = s };
    const double started = clv_now();
    size_t places;
    if (!s->query_count) return cli_share_end();
    if (!clv_size_mul(s->query_count, (size_t)a->top, &places)) return no_memory();
    s->rows = clv_alloc(places, sizeof *s->rows);
    s->scores = clv_alloc(places, sizeof *s->scores);
    if (!s->rows || !s->scores) return no_memory();
    CLV_TRY(
        clv_search_create(s->context, s->queries, s->query_count, s->width, &options, &s->search));
    cli_bar_start(&s->bar, &a->encode.common, "rows");
    const clv_status status = s->first.codes
                                  ? cli_first_pass_run(&s->first, s->search, &s->done, s->report)
                                  : add_rows(s);
    cli_bar_end(&s->bar);
    s->seconds = clv_now() - started;
    return status ? status : clv_search_result(s->search, s->rows, s->scores);
}

/* ---- the table ------------------------------------------------------------------------------------ */

enum { BY_NAME, TSV, CSV, JSON };

static clv_csv_kind kind_of(const search_args *a)
{
    const unsigned formats = a->format ? 0 : cli_formats_of(a->output);
    if (a->format == CSV || (formats & CLI_CSV)) return CLV_CSV_COMMAS;
    return a->format == JSON || (formats & CLI_JSON) ? CLV_CSV_JSON : CLV_CSV_TABS;
}

static clv_status write_table(const search_state *s)
{
    static const char *const names[] = { "query", "rank", "row", "score", "text" };
    const search_args *a = s->args;
    const size_t top = (size_t)a->top;
    clv_csv csv = { 0 };
    clv_csv_begin_as(&csv, kind_of(a), names, a->passages ? 5 : 4);
    for (size_t i = 0; i < s->query_count * top; ++i) {
        if (s->rows[i] < 0) continue;
        clv_csv_int(&csv, (int64_t)(i / top));
        clv_csv_int(&csv, (int64_t)(i % top) + 1);
        clv_csv_int(&csv, s->rows[i]);
        clv_csv_float(&csv, s->scores[i]);
        if (a->passages) clv_csv_string(&csv, cli_passages_text(&s->passages, s->rows[i]));
        clv_csv_end_row(&csv);
    }
    clv_csv_end(&csv);
    const clv_status status = clv_csv_write(&csv, a->output);
    clv_csv_clear(&csv);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------------- */

static const char *const first_passes[] = { "none", "int8", "binary" };

static int end(search_state *s, FILE *out)
{
    const search_args *a = s->args;
    char took[24];
    clv_report_note(s->report, "queries", (double)s->query_count);
    clv_report_note(s->report, "rows", (double)s->file.rows);
    clv_report_note(s->report, "width", (double)s->width);
    clv_report_note(s->report, "top", (double)a->top);
    clv_report_note_text(s->report, "similarity", a->similarity ? "dot" : "cosine");
    if (s->first.codes) {
        clv_report_note_text(s->report, "first_pass", first_passes[s->first.codes]);
    }
    clv_report_note(s->report, "search_seconds", s->seconds);
    const int code = cli_write_report(&cli_search, &a->encode.common, s->context, s->report);
    if (code || a->encode.common.quiet) return code;
    if (a->model) {
        clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
        clv_tokenizer_get_info(s->encode.tokenizer, &info);
        cli_text_warn(&cli_search, &s->encode.counts, info.max_length);
    }
    cli_say(out, "%zu quer%s, %zu vectors of %zu numbers in %s\n", s->query_count,
            s->query_count == 1 ? "y" : "ies", s->file.rows, s->width,
            clv_format_seconds(s->seconds, took));
    if (s->first.codes)
        cli_say(out, "candidates by codes in %s; some of the most similar rows may be missing\n",
                first_passes[s->first.codes]);
    if (s->first.write && s->query_count) cli_say(out, "codes for the next search: %s\n", a->codes);
    return code;
}

/* Warns if queries found fewer rows than they asked for and the file has: the similarity of the missing rows is NaN. */
static void warn_of_missing(const search_state *s)
{
    const size_t top = (size_t)s->args->top, expected = CLV_MIN(top, s->file.rows);
    size_t fewer = 0;
    for (size_t q = 0; q < s->query_count && expected; ++q)
        fewer += s->rows[q * top + expected - 1] < 0;
    if (fewer)
        cli_warn(&cli_search, "%s has NaN values: %zu of %zu queries found fewer than %zu rows",
                 s->vectors, fewer, s->query_count, expected);
}

static int search(search_state *s)
{
    static const unsigned formats[] = { [BY_NAME] = CLI_TSV | CLI_CSV | CLI_JSON,
                                        [TSV] = CLI_TSV | CLI_SAID,
                                        [CSV] = CLI_CSV | CLI_SAID,
                                        [JSON] = CLI_JSON | CLI_SAID };
    const search_args *a = s->args;
    const cli_file output = { "-o", a->output, NULL, formats[a->format] };
    const bool write = a->codes && access(a->codes, F_OK) != 0;
    const cli_file inputs[] = { { "VECTORS", s->vectors, NULL, 0 },
                                { "--queries", a->queries, NULL, 0 },
                                { "--passages", a->passages, NULL, 0 },
                                { "--codes", write ? NULL : a->codes, NULL, 0 } };
    const cli_file outputs[] = { output, { "--codes", write ? a->codes : NULL, NULL, CLI_NPY } };
    int code = cli_check_files(&cli_search, &a->encode.common, inputs, CLV_LEN(inputs), outputs,
                               CLV_LEN(outputs));
    if (code >= 0) return code;
    cli_listen(a->encode.common.quiet, a->encode.common.verbose);
    code = cli_input_status(&cli_search, clv_npy_rows_open(&s->file, s->vectors));
    if (!code) code = cli_first_pass_check(&s->first);
    if (!code && a->passages)
        code = cli_passages_check(&s->passages, s->file.rows, a->encode.common.quiet);
    if (!code) code = a->model ? embed_queries(s, &output) : read_queries(s);
    if (!code) code = cli_status(&cli_search, find(s));
    if (!code && a->passages)
        code = cli_passages_fetch(&s->passages, s->rows, s->query_count * (size_t)a->top);
    if (!code) code = cli_status(&cli_search, write_table(s));
    if (!code && !a->encode.common.quiet) warn_of_missing(s);
    if (!code) code = end(s, cli_news(&a->encode.common, &output, 1));
    return code;
}

/* Returns -1 to continue, else the exit code. */
static int check_args(const search_args *a)
{
    if (!a->model && !a->queries)
        return cli_error(&cli_search, CLI_USAGE,
                         "there is nothing to search for; give --model MODEL_DIR with texts (-i "
                         "FILE), or --queries FILE.npy");
    if (a->queries && !cli_is_stream(a->encode.texts.input))
        return cli_error(
            &cli_search, CLI_USAGE,
            "-i %s and --queries %s cannot be used together: give either texts or vectors",
            a->encode.texts.input, a->queries);
    if (a->model && a->queries)
        return cli_error(
            &cli_search, CLI_USAGE,
            "--model and --queries cannot be used together: give either texts or vectors");
    if (a->codes && !a->first_pass)
        return cli_error(&cli_search, CLI_USAGE,
                         "--codes %s needs --first-pass int8 or --first-pass binary", a->codes);
    if (a->first_pass && a->similarity == CLV_SIMILARITY_DOT)
        return cli_error(
            &cli_search, CLI_USAGE,
            "--first-pass and --similarity dot cannot be used together, because a first pass "
            "compares "
            "directions; use --similarity cosine, which is the same for vectors of length 1");
    if (a->first_pass && a->encode.common.shard)
        return cli_error(
            &cli_search, CLI_USAGE,
            "--shard is not possible with --first-pass, which takes its candidates from "
            "the codes of all rows; leave out --first-pass, or use MPI");
    if (a->first_pass && a->top && a->rescore > CLV_SEARCH_TOP_MOST / a->top)
        return cli_error(&cli_search, CLI_USAGE,
                         "--rescore is %llu, but it must be at most %llu with --top %llu",
                         (unsigned long long)a->rescore,
                         (unsigned long long)(CLV_SEARCH_TOP_MOST / a->top),
                         (unsigned long long)a->top);
    if (!a->top || a->top > CLV_SEARCH_TOP_MOST)
        return cli_error(&cli_search, CLI_USAGE, "--top is %llu, but it must be 1 to %d",
                         (unsigned long long)a->top, CLV_SEARCH_TOP_MOST);
    return -1;
}

static int run(int argc, char **argv)
{
    search_args a = { .output = "-", .top = 10, .encode = { .texts.input = "-", .prompts = true } };
    const cli_option own[] = {
        { "model", CLI_TEXT, &a.model, "MODEL_DIR",
          "the model that computes the vectors of the texts", NULL },
        { "queries", CLI_TEXT, &a.queries, "FILE", "vectors to search for (NPY), instead of texts",
          NULL },
        { "top", CLI_UINT, &a.top, "N", "number of rows to find for each query [10]", NULL },
        { "similarity", CLI_CHOICE, &a.similarity, "cosine,dot", "measure of similarity [cosine]",
          NULL },
        { "first-pass", CLI_CHOICE, &a.first_pass, "none,int8,binary",
          "compare short codes of all vectors first, then only the best of them exactly: faster, "
          "and may miss some rows [none]",
          NULL },
        { "codes", CLI_TEXT, &a.codes, "FILE",
          "the codes of --first-pass (NPY); a file that does not exist is written", NULL },
        { "rescore", CLI_UINT, &a.rescore, "N",
          "with --first-pass: compare N rows exactly for each row that is wanted [10]", NULL },
        { "passages", CLI_TEXT, &a.passages, "FILE",
          "the texts that VECTORS was made from; the table then shows the texts that were found",
          NULL },
        { "prompt", CLI_ANY_TEXT, &a.encode.prompt, "NAME|TEXT",
          "put this prompt of the model, or this text, before every text; \"\": none [the default "
          "of the model]",
          NULL },
        { "o,output", CLI_TEXT, &a.output, "FILE", "the table; - is standard output [-]", NULL },
        { "format", CLI_CHOICE, &a.format, "auto,tsv,csv,json",
          "format of the output [by the ending of its name, else tsv]", NULL },
        { NULL },
    };
    int code = cli_encode_parse(&cli_search, &a.encode, own, "VECTORS", argc, argv);
    if (code < 0) code = check_args(&a);
    if (code >= 0) return code;
    search_state s = { .args = &a,
                       .vectors = argv[1],
                       .passages = { .command = &cli_search, .path = a.passages },
                       .first = { .command = &cli_search,
                                  .codes = (clv_codes)a.first_pass,
                                  .path = a.codes,
                                  .vectors_path = argv[1] },
                       .encode = { .command = &cli_search,
                                   .args = &a.encode,
                                   .folder = a.model,
                                   .folder_name = "--model",
                                   .take = take } };
    s.encode.user = &s;
    s.first.vectors = &s.file;
    code = search(&s);
    clv_search_free(s.search);
    if (s.own) clv_report_free(s.report), clv_context_free(s.context);
    cli_encode_close(&s.encode);
    clv_npy_rows_close(&s.file);
    cli_passages_clear(&s.passages);
    clv_free(s.queries), clv_free(s.rows), clv_free(s.scores);
    return code;
}

const cli_command cli_search = {
    .name = "search",
    .summary = "find the vectors that are most similar to texts or to other vectors",
    .operands = "VECTORS.npy --model MODEL_DIR [-i TEXTS] [OPTION...]",
    .description =
        "Compares each text, or each vector of --queries, with all rows of VECTORS, which\n"
        "`cleave embed` wrote with the same model, and writes the most similar ones: the number "
        "of\n"
        "the query and of the row, from 0, the rank, and the similarity. With --passages the "
        "table\n"
        "has the texts of these rows, too. The search is exact, unless --first-pass is given. "
        "VECTORS "
        "may be\n"
        "larger than memory: float32, float16 or float64 [rows, width]. Formats: TSV, CSV, JSON.",
    .run = run,
};
