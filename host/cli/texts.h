/* SPDX-License-Identifier: Apache-2.0 */
/* Reads texts and turns them into tokens, for the commands whose input is texts. */
#ifndef CLEAVE_HOST_CLI_TEXTS_H
#define CLEAVE_HOST_CLI_TEXTS_H

#include "host/cli/clash.h"
#include "host/io/lines.h"

#include <cleave/tokenizer.h>

typedef struct cli_texts {
    const char *input;          /* "-": standard input */
    int format;                 /* CLI_TEXTS_... */
    const char *column, *field; /* in tables and JSON; NULL: chosen automatically */
    const char *prefix;         /* put before every text; may be NULL */
    uint64_t max_length;        /* 0: the model's own limit */
    bool max_length_given;
    int invalid;      /* 0: an error, 1: skipped, 2: replaced */
    bool bare;        /* the model's special tokens around a text are left out */
    uint64_t threads; /* 0: all cores available to us */
} cli_texts;

/* The formats, in the order of the choices of --input-format. */
enum { CLI_TEXTS_AUTO, CLI_TEXTS_LINES, CLI_TEXTS_CSV, CLI_TEXTS_TSV, CLI_TEXTS_JSONL };

enum { CLI_TEXT_OPTIONS = 7 };
/* Fills `table` (CLI_TEXT_OPTIONS + 1 rows) with options that write into `texts`. */
void cli_texts_table(cli_texts *texts, cli_option *table);

/* Checks the options. Returns -1 to continue, else the exit code. */
int cli_texts_check(const cli_command *command, const cli_texts *texts);
/* Opens the input with the format of its name's ending or of --input-format, finds the field that holds the texts, and
 * prints which one that is unless `quiet`. Returns 0, else the exit code; call clv_lines_close in either case. */
int cli_texts_open(const cli_command *command, const cli_texts *texts, bool quiet,
                   clv_lines *lines);
/* Tells a user at a terminal that the command is waiting for texts from standard input. */
void cli_texts_await(const cli_texts *texts, bool quiet);
/* Loads the tokenizer of a model folder with these options. */
clv_status cli_texts_tokenizer(const cli_texts *texts, const char *folder, bool unlimited,
                               clv_tokenizer **out);

/* Lists files that a model's folder may contain. cli_check_files also protects the folder's weights and settings
 * that have other names. */
enum { CLI_MODEL_FILES = 12 };
void cli_model_files(const char *option, const char *folder, cli_file files[CLI_MODEL_FILES]);

/* Counts over all chunks of texts, for messages and reports. */
typedef struct cli_text_counts {
    uint64_t texts, tokens, truncated, unknown, replaced;
} cli_text_counts;

void cli_text_count(cli_text_counts *counts, const clv_token_rows *rows);
/* Prints warnings such as "3 of 32 texts cut at 256 tokens"; prints nothing if all counts are zero. */
void cli_text_warn(const cli_command *command, const cli_text_counts *counts, size_t max_length);

/* Tokenizes the lines that are currently loaded. */
clv_status cli_texts_tokenize(const cli_texts *texts, const clv_tokenizer *tokenizer,
                              const clv_lines *lines, clv_token_rows *rows);

#endif
