/* SPDX-License-Identifier: Apache-2.0 */
/* Turns lines of text into rows of vectors, for the commands that send texts through an encoder. */
#ifndef CLEAVE_HOST_CLI_TEXT_ENCODE_H
#define CLEAVE_HOST_CLI_TEXT_ENCODE_H

#include "host/cli/texts.h"

#include <cleave/model.h>
#include <cleave/transformer.h>

typedef struct cli_encode_args {
    cli_texts texts;
    cli_common common;
    int precision;      /* 1: fp16, 2: fp16-products */
    bool prompts;       /* put the model's default prompt, or `prompt`, before every text */
    const char *prompt; /* name of a prompt or the text itself; NULL: the default one */
    uint64_t batch_tokens;
} cli_encode_args;

/* Reads the command's own options, the shared ones, and one operand, argv[1], which messages call `operand`. Returns -1
 * to continue, else the exit code. */
int cli_encode_parse(const cli_command *command, cli_encode_args *args, const cli_option *own,
                     const char *operand, int argc, char **argv);

/* Receives the vectors of the next texts, in order, on the caller's thread. */
typedef clv_status cli_encode_take(void *user, const clv_token_rows *rows, const float *vectors);

typedef struct cli_encode {
    const cli_command *command;
    const cli_encode_args *args;
    const char *folder;
    const char *folder_name; /* in messages; NULL: "MODEL_DIR" */
    cli_encode_take *take;
    void *user;
    bool in_steps; /* every chunk of texts is a step of its own, see host/cli/share.h */
    clv_model *model;
    clv_tokenizer *tokenizer;
    clv_lines lines;
    clv_context *context;
    clv_encoder *encoder;
    size_t skipped; /* tokens of a prompt that the pooling leaves out */
    size_t width;   /* of a vector; known once the encoder has started */
    clv_report *report;
    cli_text_counts counts;
    float *out;
    size_t out_room;
    double drawn, started, seconds, tokenizing, encoding;
    bool show;
} cli_encode;

/* Call these functions in this order while each one succeeds, and always call _close at the end. _open opens input,
 * tokenizer and model (`outputs` must not be among their files). _start opens the devices and the encoder, with the
 * model's configuration or another one. _end writes the report, and one line of figures to `out`. */
int cli_encode_open(cli_encode *encode, const cli_file *outputs, size_t output_count);
int cli_encode_start(cli_encode *encode, const clv_model_config *config);
/* Passes the vectors of every text to `take`. */
clv_status cli_encode_run(cli_encode *encode);
int cli_encode_end(cli_encode *encode, FILE *out);
/* Fails if one of the vectors that `take` received, and that are used as they are, has numbers that are not finite. */
clv_status cli_encode_finite(const cli_encode *encode, const clv_token_rows *rows,
                             const float *vectors);
void cli_encode_close(cli_encode *encode);

#endif
