/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave embed`: texts to vectors. A thread tokenizes the next chunk while devices work. */
#include "host/cli/text/ids.h"
#include "host/cli/text/pipeline.h"
#include "host/cli/text/vectors.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/model.h>
#include <cleave/transformer.h>

#include <string.h>
#include <unistd.h>

/* A chunk is worked on for a few seconds on a small CPU, and is enough for a large GPU. */
enum { CHUNK_LINES = 8192, CHUNK_BYTES = 1 << 17 };

typedef struct embed_args {
    const char *output, *tokens_output;
    cli_texts texts;
    cli_common common;
    int format, precision;
    uint64_t batch_tokens;
} embed_args;

typedef struct embed_state {
    const embed_args *args;
    clv_model *model;
    clv_tokenizer *tokenizer;
    clv_lines lines;
    clv_context *context;
    clv_encoder *encoder;
    clv_report *report;
    cli_vectors vectors;
    cli_ids ids;
    cli_text_counts counts;
    float *out;
    size_t out_room;
    double drawn, started, tokenizing, encoding;
    bool show;
} embed_state;

/* The input's end is not known beforehand: a rate in place of a bar. */
static void show_rate(embed_state *s)
{
    const double now = clv_now();
    if (!s->show || now - s->drawn < 0.2) return;
    if (!(s->drawn > 0)) cli_doing(&s->args->common, NULL);
    s->drawn = now;
    fprintf(stderr, "\r%llu texts, %.0f texts/s, %.0f tokens/s   ",
            (unsigned long long)s->counts.texts, (double)s->counts.texts / (now - s->started),
            (double)s->counts.tokens / (now - s->started));
}

static clv_status work(const cli_chunk *chunk, void *user)
{
    embed_state *s = user;
    const clv_token_rows *rows = &chunk->rows;
    const size_t width = clv_model_get_config(s->model)->width;
    const double started = clv_now();
    if (!clv_reserve(&s->out, &s->out_room, rows->rows * width, sizeof *s->out))
        return clv_fail(CLV_E_MEMORY, "no memory for %zu vectors", rows->rows);
    CLV_TRY(clv_encode(s->encoder, rows->ids, rows->offsets, rows->rows, s->out, s->report));
    s->encoding += clv_now() - started;
    s->tokenizing += chunk->seconds;
    CLV_TRY(cli_vectors_add(&s->vectors, s->out, rows->rows));
    if (s->args->tokens_output) CLV_TRY(cli_ids_add(&s->ids, rows));
    cli_text_count(&s->counts, rows);
    show_rate(s);
    return CLV_OK;
}

/* Ids must lie within the word table. */
static clv_status check_fit(const char *folder, const embed_state *s)
{
    clv_tokenizer_info info;
    const clv_model_config *config = clv_model_get_config(s->model);
    clv_tokenizer_get_info(s->tokenizer, &info);
    if (info.vocabulary <= config->vocabulary) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the tokenizer has ids up to %zu, the model's word table %zu rows", folder,
                    info.vocabulary - 1, config->vocabulary);
}

static clv_status encode_all(const embed_args *a, embed_state *s)
{
    const size_t width = clv_model_get_config(s->model)->width;
    const cli_pipeline pipeline = { &a->texts, s->tokenizer, &s->lines, CHUNK_LINES, CHUNK_BYTES };
    cli_doing(&a->common, "embed: the first texts (the first time compiles kernels)");
    clv_status status = cli_vectors_open(&s->vectors, a->output, a->format, width);
    s->ids = (cli_ids){ .tokenizer = s->tokenizer, .format = CLI_IDS_JSON };
    if (!status && a->tokens_output) status = cli_ids_open(&s->ids, a->tokens_output);
    if (!status) status = cli_pipeline_run(&pipeline, work, s);
    cli_doing(&a->common, NULL);
    if (!status && a->tokens_output) status = cli_ids_finish(&s->ids);
    if (!status) status = cli_vectors_finish(&s->vectors);
    cli_ids_abandon(&s->ids);
    cli_vectors_abandon(&s->vectors);
    return status;
}

static void note(const embed_state *s, double seconds)
{
    const cli_text_counts *c = &s->counts;
    const struct {
        const char *key;
        double value;
    } notes[] = { { "texts", (double)c->texts },
                  { "tokens", (double)c->tokens },
                  { "truncated", (double)c->truncated },
                  { "unknown_words", (double)c->unknown },
                  { "bytes_not_utf8", (double)c->replaced },
                  { "seconds", seconds },
                  { "tokenize_seconds", s->tokenizing },
                  { "encode_seconds", s->encoding } };
    for (size_t i = 0; i < CLV_LEN(notes); ++i)
        clv_report_note(s->report, notes[i].key, notes[i].value);
}

static bool is_stream(const char *output)
{
    return output && strcmp(output, "-") == 0;
}

static void summarize(const embed_args *a, const embed_state *s, double seconds)
{
    char took[24];
    FILE *out = is_stream(a->output) || is_stream(a->tokens_output) ? stderr : stdout;
    if (a->common.quiet) return;
    clv_tokenizer_info info;
    clv_tokenizer_get_info(s->tokenizer, &info);
    cli_text_warn(&cli_embed, &s->counts, info.max_length);
    fprintf(out, "%llu text%s, %llu tokens in %s (%.0f tokens/s)",
            (unsigned long long)s->counts.texts, s->counts.texts == 1 ? "" : "s",
            (unsigned long long)s->counts.tokens, clv_format_seconds(seconds, took),
            (double)s->counts.tokens / (seconds > 1e-6 ? seconds : 1e-6));
    for (size_t i = 0, shown = 0; i < clv_report_share_count(s->report); ++i) {
        const clv_share share = clv_report_share(s->report, i);
        if (share.chunks) fprintf(out, "%s %s", shown++ ? "," : " on", share.device);
    }
    fputc('\n', out);
}

static int check_files(const embed_args *a, const char *folder)
{
    const cli_file outputs[] = { { "-o", a->output, NULL },
                                 { "--tokens-out", a->tokens_output, NULL } };
    cli_file inputs[CLI_MODEL_FILES + 1] = { [CLI_MODEL_FILES] = { "-i", a->texts.input, NULL } };
    cli_model_files("MODEL_DIR", folder, inputs);
    const int code =
        cli_check_files(&cli_embed, &a->common, inputs, CLV_LEN(inputs), outputs, CLV_LEN(outputs));
    return code < 0 ? cli_check_outputs(&cli_embed, outputs, CLV_LEN(outputs)) : code;
}

static int embed(const embed_args *a, const char *folder, embed_state *s)
{
    int code = check_files(a, folder);
    if (code >= 0) return code;
    cli_listen(a->common.quiet, a->common.verbose);
    code = cli_input_status(&cli_embed, clv_lines_open(&s->lines, a->texts.input));
    s->lines.column = (size_t)a->texts.column;
    if (!code)
        code = cli_input_status(&cli_embed,
                                cli_texts_tokenizer(&a->texts, folder, false, &s->tokenizer));
    if (!code) code = cli_input_status(&cli_embed, clv_model_open(folder, &s->model));
    if (!code) code = cli_input_status(&cli_embed, check_fit(folder, s));
    if (code) return code;
    code = cli_common_context(&cli_embed, &a->common, &s->context);
    if (code >= 0) return code;
    const clv_encoder_options options = { .size = sizeof options,
                                          .batch_tokens = (size_t)a->batch_tokens,
                                          .half = a->precision == 1 };
    code = cli_status(&cli_embed, clv_report_create(&s->report));
    if (!code)
        code = cli_status(&cli_embed,
                          clv_encoder_open(s->context, clv_model_get_config(s->model),
                                           clv_model_get_weights(s->model), &options, &s->encoder));
    s->started = clv_now();
    s->show = !a->common.quiet && !a->common.no_progress && isatty(STDERR_FILENO);
    cli_catch_interrupts();
    if (!code) code = cli_status(&cli_embed, encode_all(a, s));
    const double seconds = clv_now() - s->started;
    if (!code) note(s, seconds);
    if (!code) code = cli_write_report(&cli_embed, &a->common, s->context, s->report);
    if (!code) summarize(a, s, seconds);
    return code;
}

static int run(int argc, char **argv)
{
    embed_args a = { .texts = { .input = "-" } };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE", "the vectors; - is standard output", NULL },
        { "format", CLI_CHOICE, &a.format, "auto,npy,csv,tsv", "[by the name's end, else npy]",
          NULL },
        { "precision", CLI_CHOICE, &a.precision, "fp32,fp16",
          "of the weights on the device; sums are fp32", NULL },
        { "batch-tokens", CLI_UINT, &a.batch_tokens, "N", "tokens worked on together [1536]",
          NULL },
        { "tokens-out", CLI_TEXT, &a.tokens_output, "FILE", "write the token numbers as JSON",
          NULL },
        { NULL },
    };
    cli_option input[CLI_TEXT_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1];
    cli_texts_table(&a.texts, input);
    cli_common_table(&a.common, common);
    const cli_option *const tables[] = { input, own, common, NULL };
    int operands, code = cli_parse(&cli_embed, tables, argc, argv, &operands);
    if (code < 0) code = cli_texts_check(&cli_embed, &a.texts);
    if (code >= 0) return code;
    if (operands != 1)
        return cli_error(&cli_embed, CLI_USAGE, "%d operands given, expected one model folder",
                         operands);
    if (!a.output)
        return cli_error(&cli_embed, CLI_USAGE, "-o FILE is needed: where the vectors go");
    if (is_stream(a.output) && is_stream(a.tokens_output))
        return cli_error(&cli_embed, CLI_USAGE,
                         "-o and --tokens-out are both standard output, expected a file for one");
    if (a.batch_tokens > 1 << 24)
        return cli_error(&cli_embed, CLI_USAGE, "--batch-tokens: %llu given, expected at most %d",
                         (unsigned long long)a.batch_tokens, 1 << 24);
    embed_state s = { .args = &a };
    code = embed(&a, argv[1], &s);
    clv_encoder_close(s.encoder);
    clv_report_free(s.report), clv_context_free(s.context);
    clv_tokenizer_close(s.tokenizer), clv_model_close(s.model);
    clv_lines_close(&s.lines);
    clv_free(s.out);
    return code;
}

const cli_command cli_embed = {
    .name = "embed",
    .summary = "texts to vectors by a BERT model",
    .operands = "MODEL_DIR [-i TEXTS] -o VECTORS.npy [OPTION...]",
    .description =
        "Every line of the input becomes one row of float32: the pooled output of the encoder, of\n"
        "length 1 where the model says so. MODEL_DIR is a folder as sentence-transformers writes\n"
        "it: config.json, model.safetensors, tokenizer.json or vocab.txt. The next lines are\n"
        "tokenized while devices work, results are written as they come: memory does not grow "
        "with\n"
        "the input. Formats: NPY, CSV (with a header), TSV (without).",
    .run = run,
};
