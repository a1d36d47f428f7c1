/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that read texts share: where texts come from and how they become tokens. */
#ifndef CLEAVE_HOST_CLI_TEXTS_H
#define CLEAVE_HOST_CLI_TEXTS_H

#include "host/cli/clash.h"
#include "host/io/lines.h"

#include <cleave/tokenizer.h>

typedef struct cli_texts {
    const char *input;          /* "-": standard input */
    int format;                 /* CLI_TEXTS_... */
    const char *column, *field; /* of tables and JSON; NULL: chosen */
    const char *prefix;         /* in front of every text; may be NULL */
    uint64_t max_length;        /* 0: as the model says */
    bool max_length_given;
    int invalid;      /* 0: an error, 1: left out, 2: replaced */
    bool bare;        /* nothing around a text that the model would put there */
    uint64_t threads; /* 0: all cores that we may use */
} cli_texts;

/* As --input-format lists them. */
enum { CLI_TEXTS_AUTO, CLI_TEXTS_LINES, CLI_TEXTS_CSV, CLI_TEXTS_TSV, CLI_TEXTS_JSONL };

enum { CLI_TEXT_OPTIONS = 7 };
/* Fills `table` (CLI_TEXT_OPTIONS + 1 rows) with options that write into `texts`. */
void cli_texts_table(cli_texts *texts, cli_option *table);

/* Checks the options. Returns -1 to go on, else the exit code. */
int cli_texts_check(const cli_command *command, const cli_texts *texts);
/* Opens the input by the name's ending or as --input-format says, finds the field that holds the texts, and says
 * which one that is unless `quiet`. 0, else the exit code; clv_lines_close in any case. */
int cli_texts_open(const cli_command *command, const cli_texts *texts, bool quiet,
                   clv_lines *lines);
/* Who waits at a terminal for a command that reads from it should know. */
void cli_texts_await(const cli_texts *texts, bool quiet);
/* The tokenizer of a model folder, with these options. */
clv_status cli_texts_tokenizer(const cli_texts *texts, const char *folder, bool unlimited,
                               clv_tokenizer **out);

/* What a model's folder may have, for cli_check_files. */
enum { CLI_MODEL_FILES = 8 };
void cli_model_files(const char *option, const char *folder, cli_file files[CLI_MODEL_FILES]);

/* Sums over chunks, for messages and reports. */
typedef struct cli_text_counts {
    uint64_t texts, tokens, truncated, unknown, replaced;
} cli_text_counts;

void cli_text_count(cli_text_counts *counts, const clv_token_rows *rows);
/* "3 of 32 texts cut at 256 tokens" and the like, as warnings; nothing when there is nothing. */
void cli_text_warn(const cli_command *command, const cli_text_counts *counts, size_t max_length);

/* The tokens of the lines in hand. */
clv_status cli_texts_tokenize(const cli_texts *texts, const clv_tokenizer *tokenizer,
                              const clv_lines *lines, clv_token_rows *rows);

#endif
