/* SPDX-License-Identifier: Apache-2.0 */
/* Turns lines into rows of vectors. One thread tokenizes the next chunk while the devices compute. */
#include "host/cli/text/encode.h"

#include <cleave/init.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/cli/share.h"
#include "host/cli/text/pipeline.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A chunk takes a few seconds on a small CPU and is large enough for a large GPU. */
enum { CHUNK_LINES = 8192, CHUNK_BYTES = 1 << 17 };

int cli_encode_parse(const cli_command *command, cli_encode_args *a, const cli_option *own,
                     const char *operand, int argc, char **argv)
{
    const cli_option encoder[] = {
        { "precision", CLI_CHOICE, &a->precision, "fp32,fp16,fp16-products",
          "fp16: store the weights as fp16; fp16-products: GPUs also round the numbers that they "
          "multiply with the weights; sums are fp32",
          NULL },
        { "batch-tokens", CLI_UINT, &a->batch_tokens, "N",
          "largest number of tokens computed together [1536]", NULL },
        { NULL },
    };
    cli_option input[CLI_TEXT_OPTIONS + 1], common[CLI_COMMON_OPTIONS + 1],
        shared[CLI_SHARE_OPTIONS + 1];
    cli_texts_table(&a->texts, input);
    cli_common_table(&a->common, common);
    cli_share_table(&a->common, shared);
    const cli_option *const tables[] = { input, own, encoder, common, shared, NULL };
    int operands, code = cli_parse(command, tables, argc, argv, &operands);
    if (code < 0) code = cli_texts_check(command, &a->texts);
    if (code >= 0) return code;
    if ((code = cli_check_operands(command, operand, operands, argv + 1)) >= 0) return code;
    if (a->batch_tokens > 1 << 24)
        return cli_error(command, CLI_USAGE, "--batch-tokens is %llu, but it must be at most %d",
                         (unsigned long long)a->batch_tokens, 1 << 24);
    return -1;
}

/* ---- before -------------------------------------------------------------------------------- */

/* Checks that all token ids lie within the model's word table. */
static clv_status check_fit(const cli_encode *e)
{
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    const clv_model_config *config = clv_model_get_config(e->model);
    clv_tokenizer_get_info(e->tokenizer, &info);
    if (info.vocabulary <= config->vocabulary) return CLV_OK;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the tokenizer has ids up to %zu, but the model's word table has only %zu rows",
        e->folder, info.vocabulary - 1, config->vocabulary);
}

/* Chooses the prompt that is put before every text, and prints it. */
static int choose_prompt(cli_encode *e, cli_texts *texts)
{
    const cli_encode_args *a = e->args;
    const char *prompt = NULL;
    if (!a->prompts) return 0;
    clv_status status = clv_model_prompt(e->model, a->prompt, &prompt);
    if (!status) texts->prefix = prompt ? prompt : a->prompt;
    if (!status && *texts->prefix && clv_model_get_config(e->model)->skips_prompt)
        status = clv_tokenizer_prompt_length(e->tokenizer, texts->prefix, &e->skipped);
    if (!status && *texts->prefix && !a->common.quiet)
        cli_say(stderr, "the prompt \"%.200s\" is put before every text%s\n", texts->prefix,
                a->prompt ? "" : " (the model's default; --prompt \"\" leaves it out)");
    return cli_input_status(e->command, status);
}

int cli_encode_open(cli_encode *e, const cli_file *outputs, size_t output_count)
{
    const cli_encode_args *a = e->args;
    cli_texts texts = a->texts;
    cli_file inputs[CLI_MODEL_FILES + 1] = { [CLI_MODEL_FILES] = { "-i", a->texts.input, NULL,
                                                                   CLI_STREAM } };
    cli_model_files(e->folder_name ? e->folder_name : "MODEL_DIR", e->folder, inputs);
    int code =
        cli_check_files(e->command, &a->common, inputs, CLV_LEN(inputs), outputs, output_count);
    if (code >= 0) return code;
    cli_listen(a->common.quiet, a->common.verbose);
    code = cli_input_status(e->command,
                            cli_texts_tokenizer(&a->texts, e->folder, false, &e->tokenizer));
    if (!code) code = cli_input_status(e->command, clv_model_open(e->folder, &e->model));
    if (!code) code = cli_input_status(e->command, check_fit(e));
    if (!code) code = choose_prompt(e, &texts);
    if (!code) code = cli_texts_open(e->command, &texts, a->common.quiet, &e->lines);
    return code;
}

int cli_encode_start(cli_encode *e, const clv_model_config *config)
{
    const cli_encode_args *a = e->args;
    const clv_encoder_options options = { .size = sizeof options,
                                          .batch_tokens = (size_t)a->batch_tokens,
                                          .half = a->precision >= 1,
                                          .half_products = a->precision == 2 };
    int code = cli_common_context(e->command, &a->common, &e->context);
    if (code >= 0) return code;
    e->width = config->output ? config->output : config->width;
    code = cli_status(e->command, clv_report_create(&e->report));
    if (!code)
        code = cli_status(e->command,
                          clv_encoder_open(e->context, config, clv_model_get_weights(e->model),
                                           &options, &e->encoder));
    if (!code) clv_encoder_skip(e->encoder, e->skipped);
    e->started = clv_now();
    e->show = !a->common.quiet && !a->common.no_progress && isatty(STDERR_FILENO);
    cli_catch_interrupts();
    return code;
}

/* ---- meanwhile ----------------------------------------------------------------------------- */

/* Shows a rate instead of a bar, because the length of the input is not known in advance. */
static void show_rate(cli_encode *e)
{
    const double now = clv_now();
    char line[120];
    if (!e->show || now - e->drawn < 0.2) return;
    e->drawn = now;
    snprintf(line, sizeof line, "%llu texts, %.0f texts/s, %.0f tokens/s",
             (unsigned long long)e->counts.texts, (double)e->counts.texts / (now - e->started),
             (double)e->counts.tokens / (now - e->started));
    cli_status_line(line);
}

static clv_status work(const cli_chunk *chunk, void *user)
{
    cli_encode *e = user;
    const clv_token_rows *rows = &chunk->rows;
    const size_t width = e->width;
    const double started = clv_now();
    if (e->in_steps && !cli_share_step()) return CLV_OK; /* another shard's texts */
    if (!clv_reserve(&e->out, &e->out_room, rows->rows * width, sizeof *e->out))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu vectors", rows->rows);
    CLV_TRY(clv_encode(e->encoder, rows->ids, rows->offsets, rows->rows, e->out, e->report));
    e->encoding += clv_now() - started;
    e->tokenizing += chunk->seconds;
    CLV_TRY(e->take(e->user, rows, e->out));
    cli_text_count(&e->counts, rows);
    show_rate(e);
    return CLV_OK;
}

clv_status cli_encode_finite(const cli_encode *e, const clv_token_rows *rows, const float *vectors)
{
    for (size_t i = 0; i < rows->rows * e->width; ++i)
        if (!isfinite(vectors[i]))
            return clv_fail(CLV_E_FORMAT,
                            "%s: text %llu: its vector has numbers that are not finite, because "
                            "some weights of the model are not finite%s",
                            e->folder, (unsigned long long)(e->counts.texts + i / e->width + 1),
                            e->args->precision ? ", or because of --precision; try fp32" : "");
    return CLV_OK;
}

clv_status cli_encode_run(cli_encode *e)
{
    cli_texts_await(&e->args->texts, e->args->common.quiet);
    const cli_pipeline pipeline = { &e->args->texts, e->tokenizer, &e->lines, CHUNK_LINES,
                                    CHUNK_BYTES };
    char what[80];
    snprintf(what, sizeof what, "%s: the first texts (the first time compiles kernels)",
             e->command->name);
    cli_doing(&e->args->common, what);
    const clv_status status = cli_pipeline_run(&pipeline, work, e);
    cli_doing(&e->args->common, NULL);
    return status || !e->in_steps ? status : cli_share_end();
}

/* ---- behind -------------------------------------------------------------------------------- */

static void note(const cli_encode *e)
{
    const cli_text_counts *c = &e->counts;
    const struct {
        const char *key;
        double value;
    } notes[] = { { "texts", (double)c->texts },
                  { "tokens", (double)c->tokens },
                  { "truncated", (double)c->truncated },
                  { "unknown_words", (double)c->unknown },
                  { "bytes_not_utf8", (double)c->replaced },
                  { "seconds", e->seconds },
                  { "tokenize_seconds", e->tokenizing },
                  { "encode_seconds", e->encoding } };
    for (size_t i = 0; i < CLV_LEN(notes); ++i)
        clv_report_note(e->report, notes[i].key, notes[i].value);
}

int cli_encode_end(cli_encode *e, FILE *out)
{
    char took[24];
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    e->seconds = clv_now() - e->started;
    note(e);
    const int code = cli_write_report(e->command, &e->args->common, e->context, e->report);
    if (code || e->args->common.quiet) return code;
    clv_tokenizer_get_info(e->tokenizer, &info);
    cli_text_warn(e->command, &e->counts, info.max_length);
    cli_say(out, "%llu text%s, %llu tokens in %s (%.0f tokens/s)",
            (unsigned long long)e->counts.texts, e->counts.texts == 1 ? "" : "s",
            (unsigned long long)e->counts.tokens, clv_format_seconds(e->seconds, took),
            (double)e->counts.tokens / (e->seconds > 1e-6 ? e->seconds : 1e-6));
    for (size_t i = 0, shown = 0; i < clv_report_share_count(e->report); ++i) {
        const clv_share share = clv_report_share(e->report, i);
        if (share.chunks) cli_say(out, "%s %s", shown++ ? "," : " on", share.device);
    }
    fputc('\n', out);
    return code;
}

void cli_encode_close(cli_encode *e)
{
    clv_encoder_close(e->encoder);
    clv_report_free(e->report), clv_context_free(e->context);
    clv_tokenizer_close(e->tokenizer), clv_model_close(e->model);
    clv_lines_close(&e->lines);
    clv_free(e->out);
}
