/* SPDX-License-Identifier: Apache-2.0 */
/* The texts whose vectors are searched, in the order of the vectors: counts them, and fetches those that were found. */
#ifndef CLEAVE_HOST_CLI_TEXT_PASSAGES_H
#define CLEAVE_HOST_CLI_TEXT_PASSAGES_H

#include "host/cli/texts.h"

typedef struct cli_passages {
    const cli_command *command;
    const char *path; /* lines, a table or JSON lines */
    int64_t *rows;    /* those that are wanted, without repetitions, upwards */
    char **texts;     /* of these */
    size_t count;
} cli_passages;

/* Checks that the file has `rows` texts. Returns 0, else the exit code. */
int cli_passages_check(cli_passages *passages, size_t rows, bool quiet);
/* Reads the texts of the rows [count]; -1 is none. Returns 0, else the exit code. */
int cli_passages_fetch(cli_passages *passages, const int64_t *rows, size_t count);
/* Returns the text of a row that was fetched. */
const char *cli_passages_text(const cli_passages *passages, int64_t row);
void cli_passages_clear(cli_passages *passages);

#endif
