/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave embed`: turns texts into vectors. */
#include "host/cli/endings.h"
#include "host/cli/text/encode.h"
#include "host/cli/text/ids.h"
#include "host/cli/text/vectors.h"

#include "base/alloc.h"
#include "base/error.h"

#include <unistd.h>

typedef struct embed_args {
    cli_encode_args encode;
    const char *output, *tokens_output;
    bool normalize;
    int format;
} embed_args;

typedef struct embed_state {
    const embed_args *args;
    cli_encode encode;
    cli_vectors vectors;
    cli_ids ids;
} embed_state;

static clv_status take(void *user, const clv_token_rows *rows, const float *vectors)
{
    embed_state *s = user;
    CLV_TRY(cli_encode_finite(&s->encode, rows, vectors));
    CLV_TRY(cli_vectors_add(&s->vectors, vectors, rows->rows));
    return s->args->tokens_output ? cli_ids_add(&s->ids, rows) : CLV_OK;
}

/* Returns the name of the output's format if it is not text, else NULL. */
static const char *binary_format(const embed_args *a)
{
    static const char *const names[] = { [CLI_VECTORS_AUTO] = "NPY",
                                         [CLI_VECTORS_NPY] = "NPY",
                                         [CLI_VECTORS_SAFETENSORS] = "safetensors",
                                         [CLI_VECTORS_PARQUET] = "Parquet" };
    return (size_t)a->format < CLV_LEN(names) ? names[a->format] : NULL;
}

static clv_status encode_all(embed_state *s)
{
    const embed_args *a = s->args;
    const size_t width = s->encode.width;
    clv_status status = cli_vectors_open(&s->vectors, a->output, a->format, width);
    s->ids = (cli_ids){ .tokenizer = s->encode.tokenizer, .format = CLI_IDS_JSON };
    if (!status && a->tokens_output) status = cli_ids_open(&s->ids, a->tokens_output);
    if (!status) status = cli_encode_run(&s->encode);
    if (!status && a->tokens_output) status = cli_ids_finish(&s->ids);
    if (!status) status = cli_vectors_finish(&s->vectors);
    cli_ids_abandon(&s->ids);
    cli_vectors_abandon(&s->vectors);
    return status;
}

static int embed(embed_state *s)
{
    const embed_args *a = s->args;
    static const unsigned formats[] = { [CLI_VECTORS_AUTO] =
                                            CLI_NPY | CLI_CSV | CLI_TSV | CLI_WEIGHTS | CLI_PARQUET,
                                        [CLI_VECTORS_NPY] = CLI_NPY | CLI_SAID,
                                        [CLI_VECTORS_CSV] = CLI_CSV | CLI_SAID,
                                        [CLI_VECTORS_TSV] = CLI_TSV | CLI_SAID,
                                        [CLI_VECTORS_SAFETENSORS] = CLI_WEIGHTS | CLI_SAID,
                                        [CLI_VECTORS_PARQUET] = CLI_PARQUET | CLI_SAID };
    const cli_file outputs[] = { { "-o", a->output, NULL, formats[a->format] },
                                 { "--tokens-out", a->tokens_output, NULL, CLI_JSON } };
    int code = cli_encode_open(&s->encode, outputs, CLV_LEN(outputs));
    if (!code) {
        clv_model_config config = *clv_model_get_config(s->encode.model);
        config.normalize = config.normalize || a->normalize;
        code = cli_encode_start(&s->encode, &config);
    }
    if (!code) code = cli_status(&cli_embed, encode_all(s));
    return code
               ? code
               : cli_encode_end(&s->encode, cli_news(&a->encode.common, outputs, CLV_LEN(outputs)));
}

static int run(int argc, char **argv)
{
    embed_args a = { .encode = { .texts.input = "-", .prompts = true } };
    const cli_option own[] = {
        { "o,output", CLI_TEXT, &a.output, "FILE", "the vectors; - is standard output", NULL },
        { "format", CLI_CHOICE, &a.format, "auto,npy,csv,tsv,safetensors,parquet",
          "format of the output [by the ending of its name, else npy]", NULL },
        { "prompt", CLI_ANY_TEXT, &a.encode.prompt, "NAME|TEXT",
          "put this prompt of the model, or this text, before every text; \"\": none [the default "
          "of the model]",
          NULL },
        { "normalize", CLI_FLAG, &a.normalize, NULL,
          "scale every vector to length 1, even if the model does not", NULL },
        { "tokens-out", CLI_TEXT, &a.tokens_output, "FILE", "write the token numbers as JSON",
          NULL },
        { NULL },
    };
    int code = cli_encode_parse(&cli_embed, &a.encode, own, "MODEL_DIR", argc, argv);
    if (code >= 0) return code;
    if (!a.output)
        return cli_error(&cli_embed, CLI_USAGE,
                         "-o FILE is missing: the file for the vectors, such as -o vectors.npy");
    if (cli_is_stream(a.output) && binary_format(&a) && isatty(STDOUT_FILENO))
        return cli_error(&cli_embed, CLI_USAGE,
                         "-o -: %s is binary and cannot go to a terminal; expected a file, a pipe "
                         "or --format csv",
                         binary_format(&a));
    embed_state s = { .args = &a,
                      .encode = { .command = &cli_embed,
                                  .args = &a.encode,
                                  .folder = argv[1],
                                  .take = take,
                                  .in_steps = true } };
    s.encode.user = &s;
    code = embed(&s);
    cli_encode_close(&s.encode);
    return code;
}

const cli_command cli_embed = {
    .name = "embed",
    .summary = "turn texts into vectors with an encoder (BERT, RoBERTa and the like)",
    .operands = "MODEL_DIR [-i TEXTS] -o VECTORS.npy [OPTION...]",
    .description =
        "Every text of the input becomes one row of float32: the pooled output of the encoder, of\n"
        "length 1 if the model normalises its vectors. Texts are lines, or a column of a table\n"
        "(.csv, .tsv), or a member of JSON lines (.jsonl). MODEL_DIR is a folder in the form of\n"
        "sentence-transformers: config.json, model.safetensors, tokenizer.json or vocab.txt.\n"
        "Lines are tokenized while the devices compute, and results are written as they come, so\n"
        "memory does not grow with the input. Formats: NPY, CSV (with a header), TSV (without),\n"
        "safetensors (one tensor, embeddings), Parquet (a column for each number: v0, v1, ...).",
    .run = run,
};
