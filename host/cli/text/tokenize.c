/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave tokenize`: turns texts into token numbers. It needs no device. */
#include "host/cli/endings.h"
#include "host/cli/text/ids.h"
#include "host/cli/text/pipeline.h"

#include <cleave/init.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

enum { CHUNK_LINES = 1 << 16, CHUNK_BYTES = 1 << 22 };

typedef struct tokenize_args {
    const char *folder, *output;
    cli_texts texts;
    int format;
    bool no_limit, null, quiet;
} tokenize_args;

typedef struct convert_state {
    cli_ids ids;
    cli_text_counts counts;
} convert_state;

static clv_status work(const cli_chunk *chunk, void *user)
{
    convert_state *s = user;
    cli_text_count(&s->counts, &chunk->rows);
    return cli_ids_add(&s->ids, &chunk->rows);
}

static clv_status convert(const tokenize_args *a, const clv_tokenizer *t, clv_lines *lines,
                          cli_text_counts *counts)
{
    const cli_pipeline pipeline = { &a->texts, t, lines, CHUNK_LINES, CHUNK_BYTES };
    convert_state s = { .ids = { .tokenizer = t, .format = a->format } };
    clv_status status = cli_ids_open(&s.ids, a->output);
    if (!status) status = cli_pipeline_run(&pipeline, work, &s);
    if (!status) status = cli_ids_finish(&s.ids);
    cli_ids_abandon(&s.ids);
    *counts = s.counts;
    return status;
}

static int check_files(const tokenize_args *a, const char *folder)
{
    const unsigned formats = a->format == CLI_IDS_JSON ? CLI_JSON : CLI_LINES | CLI_SAID;
    const cli_file output = { "-o", a->output, NULL, formats };
    cli_file inputs[CLI_MODEL_FILES + 1] = { [CLI_MODEL_FILES] = { "-i", a->texts.input, NULL,
                                                                   CLI_STREAM } };
    cli_model_files("MODEL", folder, inputs);
    return cli_check_files(&cli_tokenize, NULL, inputs, CLV_LEN(inputs), &output, 1);
}

static int run(int argc, char **argv)
{
    tokenize_args a = { .output = "-", .texts = { .input = "-" } };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE", "file for the tokens; - is standard output [-]",
          NULL },
        { "format", CLI_CHOICE, &a.format, "json,ids,tokens",
          "json: a list of lists; ids: lines of numbers; tokens: lines of pieces [json]", NULL },
        { "no-limit", CLI_FLAG, &a.no_limit, NULL, "do not cut long texts", NULL },
        { "null", CLI_FLAG, &a.null, NULL, "separate texts by NUL bytes instead of newlines",
          NULL },
        { "no-bos", CLI_FLAG, &a.texts.bare, NULL,
          "leave out the tokens that the model adds at the start and end of a text", NULL },
        { "q,quiet", CLI_FLAG, &a.quiet, NULL, "print no messages except errors", NULL },
        { NULL },
    };
    cli_option input[CLI_TEXT_OPTIONS + 1];
    cli_texts_table(&a.texts, input);
    const cli_option *const tables[] = { input, own, NULL };
    int operands, code = cli_parse(&cli_tokenize, tables, argc, argv, &operands);
    if (code < 0) code = cli_texts_check(&cli_tokenize, &a.texts);
    if (code >= 0) return code;
    if ((code = cli_check_operands(&cli_tokenize, "MODEL", operands, argv + 1)) >= 0) return code;
    if (a.no_limit && a.texts.max_length)
        return cli_error(&cli_tokenize, CLI_USAGE,
                         "--no-limit and --max-length cannot be used together");
    if ((code = check_files(&a, argv[1])) >= 0) return code;

    clv_tokenizer *t = NULL;
    cli_text_counts counts = { 0 };
    const double started = clv_now();
    cli_catch_interrupts();
    cli_listen(a.quiet, false);
    code = cli_input_status(&cli_tokenize, cli_texts_tokenizer(&a.texts, argv[1], a.no_limit, &t));
    if (code) return code;
    clv_lines lines;
    code = cli_texts_open(&cli_tokenize, &a.texts, a.quiet, &lines);
    if (a.null) lines.end = '\0';
    if (!code) cli_texts_await(&a.texts, a.quiet);
    if (!code) code = cli_status(&cli_tokenize, convert(&a, t, &lines, &counts));
    clv_lines_close(&lines);
    if (!code && !a.quiet) {
        clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
        char took[24];
        clv_tokenizer_get_info(t, &info);
        cli_text_warn(&cli_tokenize, &counts, info.max_length);
        cli_say(stderr, "%llu text%s, %llu tokens, %llu unknown word%s, %s\n",
                (unsigned long long)counts.texts, counts.texts == 1 ? "" : "s",
                (unsigned long long)counts.tokens, (unsigned long long)counts.unknown,
                counts.unknown == 1 ? "" : "s", clv_format_seconds(clv_now() - started, took));
    }
    clv_tokenizer_close(t);
    return code;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "split texts into the token numbers of a model",
    .operands = "MODEL [-i TEXTS] [-o IDS.json] [OPTION...]",
    .description =
        "Splits every line of the input into the tokens of a model. MODEL is a folder with\n"
        "tokenizer.json or vocab.txt, or a GGUF file (one that holds only a vocabulary will do).\n"
        "BERT's WordPiece, byte-level BPE (GPT-2, SmolLM, Llama 3, Qwen2) and SentencePiece "
        "(Llama\n"
        "2, Mistral) are supported. The numbers are exactly those of the Hugging Face library\n"
        "tokenizers, with the tokens that the model puts around a text ([CLS] and [SEP], a token\n"
        "that begins a text). Lines end at LF; memory does not grow with the input. `cleave\n"
        "detokenize` does the reverse.",
    .run = run,
};
