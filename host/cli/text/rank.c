/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave rank`: scores pairs of texts with a cross-encoder, or sorts passages by how well they answer a query. */
#include "host/cli/endings.h"
#include "host/cli/text/encode.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/tables/csv.h"

#include <cleave/rank.h>

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LINES = 8192, CHUNK_BYTES = 1 << 20, MOST_SCORES = 256 };

typedef struct rank_args {
    cli_encode_args encode;
    const char *query, *output;
    uint64_t top;
    int activation, format;
    bool pairs;
} rank_args;

typedef struct place {
    float score;
    size_t row;
} place;

/* Holds all texts, one after the other, each followed by a NUL. With a query, text 0 is the query. */
typedef struct rank_state {
    const rank_args *args;
    const char *folder;
    clv_context *context;
    clv_report *report;
    clv_ranker *ranker;
    char *bytes;
    size_t *begins, *lengths, *pairs;
    const char **texts;
    size_t count, used, byte_room, begin_room, length_room, pair_count, truncated, each;
    float *scores;
    place *order; /* with a query: the passages to write, in this order */
    size_t shown;
    cli_bar bar;
    double seconds;
} rank_state;

/* ---- reading ------------------------------------------------------------------------------------- */

static clv_status add_text(rank_state *s, const char *text, size_t length)
{
    if (!clv_reserve(&s->bytes, &s->byte_room, s->used + length + 1, 1) ||
        !clv_reserve(&s->begins, &s->begin_room, s->count + 1, sizeof *s->begins) ||
        !clv_reserve(&s->lengths, &s->length_room, s->count + 1, sizeof *s->lengths))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu texts", s->count + 1);
    if (length) memcpy(s->bytes + s->used, text, length);
    s->bytes[s->used + length] = '\0';
    s->begins[s->count] = s->used;
    s->lengths[s->count++] = length;
    s->used += length + 1;
    return CLV_OK;
}

/* Splits a line at its tab. */
static clv_status add_pair(rank_state *s, const clv_lines *lines, size_t i)
{
    const char *line = lines->texts[i];
    size_t length = lines->lengths[i];
    const unsigned long long number = (unsigned long long)(lines->first + i);
    if (length && line[length - 1] == '\r') --length;
    const char *tab = length ? memchr(line, '\t', length) : NULL;
    const size_t before = tab ? (size_t)(tab - line) : 0;
    if (!tab || memchr(tab + 1, '\t', length - before - 1))
        return clv_fail(CLV_E_FORMAT,
                        "%s: line %llu has %s, expected two texts with a tab between them",
                        lines->path, number, tab ? "more than one tab" : "no tab");
    CLV_TRY(add_text(s, line, before));
    return add_text(s, tab + 1, length - before - 1);
}

static clv_status read_lines(rank_state *s, clv_lines *lines)
{
    clv_status status = CLV_OK;
    while (!status) {
        CLV_TRY(clv_lines_next(lines, CHUNK_LINES, CHUNK_BYTES));
        if (!lines->count) break;
        for (size_t i = 0; i < lines->count && !status; ++i)
            status = s->args->pairs ? add_pair(s, lines, i)
                                    : add_text(s, lines->texts[i], lines->lengths[i]);
        if (!status && cli_interrupted())
            status = clv_fail(CLV_E_CANCELLED, "reading was cancelled");
    }
    return status;
}

static clv_status list_pairs(rank_state *s)
{
    const bool pairs = s->args->pairs;
    s->pair_count = pairs ? s->count / 2 : s->count - 1;
    s->texts = clv_alloc(s->count + 1, sizeof *s->texts);
    s->pairs = clv_alloc(2 * s->pair_count + 1, sizeof *s->pairs);
    s->order = clv_alloc(s->pair_count + 1, sizeof *s->order);
    if (!s->texts || !s->pairs || !s->order)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu texts", s->count);
    for (size_t i = 0; i < s->count; ++i)
        s->texts[i] = s->bytes + s->begins[i];
    for (size_t i = 0; i < s->pair_count; ++i) {
        s->pairs[2 * i] = pairs ? 2 * i : 0;
        s->pairs[2 * i + 1] = pairs ? 2 * i + 1 : i + 1;
    }
    return CLV_OK;
}

static int read_texts(rank_state *s)
{
    cli_texts texts = s->args->encode.texts;
    clv_lines lines;
    if (s->args->pairs) texts.format = CLI_TEXTS_LINES;
    clv_status status = CLV_OK;
    int code = cli_texts_open(&cli_rank, &texts, s->args->encode.common.quiet, &lines);
    if (!code) {
        if (s->args->query) status = add_text(s, s->args->query, strlen(s->args->query));
        if (!status) status = read_lines(s, &lines);
        if (!status) status = list_pairs(s);
        code = cli_input_status(&cli_rank, status);
    }
    clv_lines_close(&lines);
    return code;
}

/* ---- scores ---------------------------------------------------------------------------------------- */

static int show(const char *job, size_t done, size_t total, void *user)
{
    rank_state *s = user;
    return cli_progress(job, done, total, &s->bar);
}

static clv_status open_ranker(rank_state *s)
{
    const cli_encode_args *a = &s->args->encode;
    const clv_ranker_options options = { .size = sizeof options,
                                         .max_length = (size_t)a->texts.max_length,
                                         .batch_tokens = (size_t)a->batch_tokens,
                                         .threads = (size_t)a->texts.threads,
                                         .activation = (clv_rank_activation)s->args->activation,
                                         .half = a->precision >= 1,
                                         .half_products = a->precision == 2,
                                         .replace_invalid = a->texts.invalid > 0,
                                         .drop_invalid = a->texts.invalid == 1 };
    CLV_TRY(clv_ranker_open(s->context, s->folder, &options, &s->ranker));
    s->each = clv_classes_count(clv_ranker_classes(s->ranker));
    if (!s->args->pairs && s->each > 1)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s gives %zu scores per pair, but passages can be sorted by one only; "
                        "--pairs writes all scores",
                        s->folder, s->each);
    return s->each <= MOST_SCORES
               ? CLV_OK
               : clv_fail(CLV_E_ARGUMENT, "%s gives %zu scores per pair, expected at most %d",
                          s->folder, s->each, MOST_SCORES);
}

static int by_score(const void *left, const void *right)
{
    const place *a = left, *b = right;
    if (a->score > b->score || a->score < b->score) return a->score > b->score ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static clv_status score(rank_state *s)
{
    const rank_args *a = s->args;
    const double started = clv_now();
    s->scores = clv_alloc(s->pair_count * s->each + 1, sizeof *s->scores);
    if (!s->scores)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu scores", s->pair_count);
    cli_bar_start(&s->bar, &a->encode.common, "pairs");
    clv_ranker_watch(s->ranker, show, s);
    const clv_status status = clv_ranker_scores(s->ranker, s->texts, s->lengths, s->count, s->pairs,
                                                s->pair_count, s->scores, &s->truncated, s->report);
    cli_bar_end(&s->bar);
    CLV_TRY(status);
    s->seconds = clv_now() - started;
    for (size_t i = 0; i < s->pair_count * s->each; ++i)
        if (s->scores[i] != s->scores[i])
            return clv_fail(CLV_E_FORMAT,
                            "pair %zu: its score is not a number, because the model has weights "
                            "that are not finite",
                            i / s->each + 1);
    s->shown = s->pair_count;
    if (a->pairs) return CLV_OK;
    for (size_t i = 0; i < s->pair_count; ++i)
        s->order[i] = (place){ s->scores[i], i };
    qsort(s->order, s->pair_count, sizeof *s->order, by_score);
    if (a->top) s->shown = CLV_MIN(s->pair_count, (size_t)a->top);
    return CLV_OK;
}

/* ---- the table --------------------------------------------------------------------------------------- */

enum { BY_NAME, TSV, CSV, JSON };

static clv_csv_kind kind_of(const rank_args *a)
{
    const unsigned formats = a->format ? 0 : cli_formats_of(a->output);
    if (a->format == CSV || (formats & CLI_CSV)) return CLV_CSV_COMMAS;
    return a->format == JSON || (formats & CLI_JSON) ? CLV_CSV_JSON : CLV_CSV_TABS;
}

static clv_status write_pairs(const rank_state *s, clv_csv *csv)
{
    const char *names[MOST_SCORES] = { "score" };
    for (size_t i = 0; i < s->each && s->each > 1; ++i)
        names[i] = clv_classes_name(clv_ranker_classes(s->ranker), i);
    clv_csv_begin_as(csv, kind_of(s->args), names, s->each);
    for (size_t i = 0; i < s->pair_count; ++i) {
        for (size_t c = 0; c < s->each; ++c)
            clv_csv_float(csv, s->scores[i * s->each + c]);
        clv_csv_end_row(csv);
    }
    clv_csv_end(csv);
    return clv_csv_write(csv, s->args->output);
}

static clv_status write_ranks(const rank_state *s, clv_csv *csv)
{
    static const char *const names[] = { "rank", "row", "score", "text" };
    clv_csv_begin_as(csv, kind_of(s->args), names, CLV_LEN(names));
    for (size_t i = 0; i < s->shown; ++i) {
        const size_t row = s->order[i].row;
        char *text = s->bytes + s->begins[row + 1];
        for (size_t k = 0; k < s->lengths[row + 1]; ++k) /* a table's cell ends at the first NUL */
            if (!text[k]) text[k] = ' ';
        clv_csv_int(csv, (int64_t)i + 1);
        clv_csv_int(csv, (int64_t)row);
        clv_csv_float(csv, s->scores[row]);
        clv_csv_string(csv, text);
        clv_csv_end_row(csv);
    }
    clv_csv_end(csv);
    return clv_csv_write(csv, s->args->output);
}

static clv_status write_table(const rank_state *s)
{
    clv_csv csv = { 0 };
    const clv_status status = s->args->pairs ? write_pairs(s, &csv) : write_ranks(s, &csv);
    clv_csv_clear(&csv);
    return status;
}

static int end(rank_state *s, FILE *out)
{
    const cli_common *common = &s->args->encode.common;
    char took[24];
    clv_report_note(s->report, "pairs", (double)s->pair_count);
    clv_report_note(s->report, "truncated", (double)s->truncated);
    clv_report_note(s->report, "max_length", (double)clv_ranker_max_length(s->ranker));
    clv_report_note(s->report, "rank_seconds", s->seconds);
    const int code = cli_write_report(&cli_rank, common, s->context, s->report);
    if (code || common->quiet) return code;
    if (s->truncated)
        cli_warn(&cli_rank, "%zu of %zu pairs were cut at %zu tokens", s->truncated, s->pair_count,
                 clv_ranker_max_length(s->ranker));
    cli_say(out, "%zu pair%s in %s\n", s->pair_count, s->pair_count == 1 ? "" : "s",
            clv_format_seconds(s->seconds, took));
    return code;
}

static int rank(rank_state *s)
{
    static const unsigned formats[] = { [BY_NAME] = CLI_TSV | CLI_CSV | CLI_JSON,
                                        [TSV] = CLI_TSV | CLI_SAID,
                                        [CSV] = CLI_CSV | CLI_SAID,
                                        [JSON] = CLI_JSON | CLI_SAID };
    const rank_args *a = s->args;
    const cli_file output = { "-o", a->output, NULL, formats[a->format] };
    cli_file inputs[CLI_MODEL_FILES + 1] = { [CLI_MODEL_FILES] = { "-i", a->encode.texts.input,
                                                                   NULL, CLI_STREAM } };
    cli_model_files("MODEL_DIR", s->folder, inputs);
    int code = cli_check_files(&cli_rank, &a->encode.common, inputs, CLV_LEN(inputs), &output, 1);
    if (code >= 0) return code;
    cli_listen(a->encode.common.quiet, a->encode.common.verbose);
    code = cli_common_context(&cli_rank, &a->encode.common, &s->context);
    if (code >= 0) return code;
    code = cli_status(&cli_rank, clv_report_create(&s->report));
    if (!code) code = cli_input_status(&cli_rank, open_ranker(s));
    if (!code) code = read_texts(s);
    if (!code) code = cli_input_status(&cli_rank, score(s));
    if (!code) code = cli_status(&cli_rank, write_table(s));
    if (!code) code = end(s, cli_news(&a->encode.common, &output, 1));
    return code;
}

/* Returns -1 to continue, else the exit code. */
static int check_args(const rank_args *a)
{
    const cli_texts *t = &a->encode.texts;
    if (a->encode.common.shard)
        return cli_error(&cli_rank, CLI_USAGE,
                         "--shard is not possible with rank, which compares all passages with each "
                         "other; use MPI");
    if (!a->query == !a->pairs)
        return cli_error(&cli_rank, CLI_USAGE,
                         "%s; expected either --query TEXT with passages to sort, or --pairs with "
                         "lines of two texts",
                         a->query ? "both --query and --pairs are given"
                                  : "there is nothing to score");
    if (a->pairs && (a->top || t->column || t->field || t->format))
        return cli_error(
            &cli_rank, CLI_USAGE,
            "--pairs cannot be combined with %s: every line is a text, a tab and a text",
            a->top      ? "--top"
            : t->column ? "--column"
            : t->field  ? "--field"
                        : "--input-format");
    return -1;
}

static int run(int argc, char **argv)
{
    rank_args a = { .output = "-", .encode = { .texts.input = "-" } };
    const cli_option own[] = {
        { "query", CLI_ANY_TEXT, &a.query, "TEXT",
          "sort the passages by how well they match this text", NULL },
        { "pairs", CLI_FLAG, &a.pairs, NULL, "score lines of two texts with a tab between them",
          NULL },
        { "top", CLI_UINT, &a.top, "N", "number of best passages to write [0: all]", NULL },
        { "activation", CLI_CHOICE, &a.activation, "model,none,sigmoid,softmax",
          "function that is applied to the scores [model: as config.json says]", NULL },
        { "o,output", CLI_TEXT, &a.output, "FILE", "the table; - is standard output [-]", NULL },
        { "format", CLI_CHOICE, &a.format, "auto,tsv,csv,json",
          "format of the output [by the ending of its name, else tsv]", NULL },
        { NULL },
    };
    int code = cli_encode_parse(&cli_rank, &a.encode, own, "MODEL_DIR", argc, argv);
    if (code < 0) code = check_args(&a);
    if (code >= 0) return code;
    rank_state s = { .args = &a, .folder = argv[1] };
    code = rank(&s);
    clv_ranker_close(s.ranker);
    clv_report_free(s.report), clv_context_free(s.context);
    clv_free(s.bytes), clv_free(s.begins), clv_free(s.lengths), clv_free(s.texts);
    clv_free(s.pairs), clv_free(s.order), clv_free(s.scores);
    return code;
}

const cli_command cli_rank = {
    .name = "rank",
    .summary = "sort passages by how well they answer a query, with a cross-encoder",
    .operands = "MODEL_DIR --query TEXT [-i PASSAGES] [OPTION...]",
    .description =
        "A cross-encoder reads two texts together and scores how well they belong together. This "
        "is\n"
        "more accurate than comparing vectors, but slower. With --query the passages of the input\n"
        "(lines, or a column of a table) are written from the highest score to the lowest: rank,\n"
        "row from 0, score, text. With --pairs every line of the input is a text, a tab and a "
        "text;\n"
        "their scores are written in the same order. MODEL_DIR is a model for sequence\n"
        "classification as the CrossEncoder of sentence-transformers saves it (BERT, DistilBERT,\n"
        "ELECTRA, RoBERTa, XLM-RoBERTa, MPNet or ALBERT), with the same scores. A pair that is "
        "too\n"
        "long loses the end of its longer text. Formats: TSV, CSV, JSON.",
    .run = run,
};
