/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave classify`: assigns a class to every text, with a model that was trained on classes. */
#include "host/cli/endings.h"
#include "host/cli/text/encode.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/output.h"
#include "host/io/tables/csv.h"

#include <cleave/classes.h>

#include <math.h>
#include <string.h>

enum { BY_NAME, TSV, CSV, MOST_TOLD = 12 };

typedef struct classify_args {
    cli_encode_args encode;
    const char *output;
    int format;
    bool all;
} classify_args;

typedef struct classify_state {
    const classify_args *args;
    cli_encode encode;
    clv_classes *classes;
    clv_output output;
    clv_csv csv; /* CSV: the rows of a chunk; TSV: only its text is used */
    float *probabilities;
    size_t room;
    uint64_t *found; /* [classes] number of texts */
} classify_state;

static bool is_csv(const classify_args *a)
{
    return a->format ? a->format == CSV : (cli_formats_of(a->output) & CLI_CSV) != 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void add_csv(clv_csv *csv, const char *name, const float *p, size_t best, size_t shown)
{
    clv_csv_string(csv, name);
    clv_csv_float(csv, p[best]);
    for (size_t i = 0; i < shown; ++i)
        clv_csv_float(csv, p[i]);
    clv_csv_end_row(csv);
}

static void add_tsv(clv_text *text, const char *name, const float *p, size_t best, size_t shown)
{
    clv_text_add(text, "%s\t%.9g", name, (double)p[best]);
    for (size_t i = 0; i < shown; ++i)
        clv_text_add(text, "\t%.9g", (double)p[i]);
    clv_text_bytes(text, "\n", 1);
}

static clv_status flush(classify_state *s)
{
    if (s->csv.text.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for rows of classes");
    CLV_TRY(clv_output_write(&s->output, clv_text_get(&s->csv.text), s->csv.text.length));
    clv_text_restart(&s->csv.text);
    return CLV_OK;
}

static clv_status take(void *user, const clv_token_rows *rows, const float *vectors)
{
    classify_state *s = user;
    const size_t count = clv_classes_count(s->classes), shown = s->args->all ? count : 0;
    size_t all;
    if (!clv_size_mul(rows->rows, count, &all) ||
        !clv_reserve(&s->probabilities, &s->room, all, sizeof *s->probabilities))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu x %zu probabilities", rows->rows,
                        count);
    CLV_TRY(clv_classes_probabilities(s->classes, vectors, rows->rows, s->probabilities));
    for (size_t r = 0; r < rows->rows; ++r) {
        const float *p = s->probabilities + r * count;
        size_t best = 0;
        for (size_t i = 1; i < count; ++i)
            if (p[i] > p[best]) best = i;
        if (!isfinite(p[best]))
            return clv_fail(
                CLV_E_FORMAT,
                "text %llu: its probabilities are not finite, because some weights of the "
                "model are not finite",
                (unsigned long long)(s->encode.counts.texts + r + 1));
        const char *name = clv_classes_name(s->classes, best);
        ++s->found[best];
        if (is_csv(s->args))
            add_csv(&s->csv, name, p, best, shown);
        else
            add_tsv(&s->csv.text, name, p, best, shown);
    }
    return flush(s);
}

/* Writes the header line, which a TSV has only with columns for all classes. */
static clv_status begin_tsv(classify_state *s)
{
    clv_text_add(&s->csv.text, "class\tprobability");
    for (size_t i = 0; i < clv_classes_count(s->classes); ++i)
        clv_text_add(&s->csv.text, "\t%s", clv_classes_name(s->classes, i));
    clv_text_bytes(&s->csv.text, "\n", 1);
    return flush(s);
}

static clv_status begin_csv(classify_state *s)
{
    const size_t count = clv_classes_count(s->classes), shown = s->args->all ? count : 0;
    const char **names = clv_alloc(2 + shown, sizeof *names);
    if (!names) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu names", shown);
    names[0] = "class", names[1] = "probability";
    for (size_t i = 0; i < shown; ++i)
        names[2 + i] = clv_classes_name(s->classes, i);
    clv_csv_begin(&s->csv, names, 2 + shown);
    clv_free(names);
    return flush(s);
}

/* ---- the command --------------------------------------------------------------------------- */

static clv_status classify_all(classify_state *s)
{
    clv_status status = clv_output_open(&s->output, s->args->output, false);
    if (!status && is_csv(s->args)) status = begin_csv(s);
    if (!status && !is_csv(s->args) && s->args->all) status = begin_tsv(s);
    if (!status) status = cli_encode_run(&s->encode);
    if (!status) status = clv_output_finish(&s->output);
    clv_output_abandon(&s->output);
    return status;
}

/* Notes the number of texts of each class in the report. */
static void note(const classify_state *s)
{
    for (size_t i = 0; i < clv_classes_count(s->classes); ++i) {
        char key[220], name[160]; /* names may be equal; the number makes the key unique */
        clv_copy_string(name, sizeof name, clv_classes_name(s->classes, i));
        snprintf(key, sizeof key, "class %zu %s", i, name);
        clv_report_note(s->encode.report, key, (double)s->found[i]);
    }
}

/* Prints the same numbers for the user if there are few classes. */
static void tell(const classify_state *s, FILE *out)
{
    const size_t count = clv_classes_count(s->classes);
    if (s->args->encode.common.quiet || count > MOST_TOLD) return;
    for (size_t i = 0; i < count; ++i)
        cli_say(out, "%s%s %llu", i ? ", " : "", clv_classes_name(s->classes, i),
                (unsigned long long)s->found[i]);
    fputc('\n', out);
}

/* Checks class names for TSV: a model trained elsewhere may have any names. */
static clv_status check_names(const classify_state *s)
{
    for (size_t i = 0; !is_csv(s->args) && i < clv_classes_count(s->classes); ++i)
        if (strpbrk(clv_classes_name(s->classes, i), "\t\r\n"))
            return clv_fail(CLV_E_FORMAT,
                            "%s: the name of class %zu has a tab or a newline, which TSV cannot "
                            "hold; use --format csv",
                            s->encode.folder, i);
    return CLV_OK;
}

static int classify(classify_state *s)
{
    const classify_args *a = s->args;
    cli_encode *e = &s->encode;
    static const unsigned formats[] = {
        [BY_NAME] = CLI_TSV | CLI_CSV, [TSV] = CLI_TSV | CLI_SAID, [CSV] = CLI_CSV | CLI_SAID
    };
    const cli_file output = { "-o", a->output, NULL, formats[a->format] };
    FILE *out = cli_news(&a->encode.common, &output, 1);
    int code = cli_encode_open(e, &output, 1);
    if (!code)
        code = cli_input_status(&cli_classify, clv_classes_open(e->model, e->folder, &s->classes));
    if (!code && clv_classes_count(s->classes) < 2)
        code = cli_error(&cli_classify, CLI_USAGE,
                         "%s gives a single score, not classes; expected a model of two classes or "
                         "more (`cleave rank` scores pairs of texts with such a model)",
                         e->folder);
    if (!code) code = cli_input_status(&cli_classify, check_names(s));
    if (!code) {
        s->found = clv_zalloc(clv_classes_count(s->classes), sizeof *s->found);
        if (!s->found) code = cli_status(&cli_classify, clv_fail(CLV_E_MEMORY, "out of memory"));
    }
    if (!code) code = cli_encode_start(e, clv_classes_get_config(s->classes));
    if (!code) code = cli_status(&cli_classify, classify_all(s));
    if (!code) note(s);
    if (!code) code = cli_encode_end(e, out);
    if (!code) tell(s, out);
    return code;
}

static int run(int argc, char **argv)
{
    classify_args a = { .output = "-", .encode.texts.input = "-" };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE", "the classes; - is standard output [-]", NULL },
        { "format", CLI_CHOICE, &a.format, "auto,tsv,csv",
          "format of the output [by the ending of its name, else tsv]", NULL },
        { "all", CLI_FLAG, &a.all, NULL,
          "write the probability of every class, not only of the most probable", NULL },
        { NULL },
    };
    int code = cli_encode_parse(&cli_classify, &a.encode, own, "MODEL_DIR", argc, argv);
    if (code >= 0) return code;
    classify_state s = { .args = &a,
                         .encode = { .command = &cli_classify,
                                     .args = &a.encode,
                                     .folder = argv[1],
                                     .take = take,
                                     .in_steps = true } };
    s.encode.user = &s;
    code = classify(&s);
    cli_encode_close(&s.encode);
    clv_classes_close(s.classes);
    clv_text_clear(&s.csv.text);
    clv_free(s.probabilities), clv_free(s.found);
    return code;
}

const cli_command cli_classify = {
    .name = "classify",
    .summary = "assign a class to every text, with a model that was trained on classes",
    .operands = "MODEL_DIR [-i TEXTS] [-o CLASSES.tsv] [OPTION...]",
    .description =
        "Every line of the input becomes one row: the most probable class and its probability.\n"
        "MODEL_DIR is what `cleave finetune` wrote, or a BertForSequenceClassification of\n"
        "transformers; the names of the classes are id2label in config.json. Lines are tokenized\n"
        "while the devices compute, and results are written as they come, so memory does not grow\n"
        "with the input. Formats: TSV (with a header only for --all), CSV. The report has the\n"
        "number of texts in each class.",
    .run = run,
};
