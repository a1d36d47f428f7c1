/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the texts whose vectors are searched, and reads the texts of the rows that were found. The texts are in the
 * order of the vectors. */
#ifndef CLEAVE_HOST_CLI_TEXT_PASSAGES_H
#define CLEAVE_HOST_CLI_TEXT_PASSAGES_H

#include "host/cli/texts.h"

typedef struct cli_passages {
    const cli_command *command;
    const char *path; /* lines, a table or JSON lines */
    int64_t *rows;    /* rows to read: ascending, without repetitions */
    char **texts;     /* texts of these rows */
    size_t count;
} cli_passages;

/* Checks that the file has `rows` texts. Returns 0, else the exit code. */
int cli_passages_check(cli_passages *passages, size_t rows, bool quiet);
/* Reads the texts of `rows` [count]; a row of -1 stands for no text. Returns 0, else the exit code. */
int cli_passages_fetch(cli_passages *passages, const int64_t *rows, size_t count);
/* Returns the text of a row that was fetched. */
const char *cli_passages_text(const cli_passages *passages, int64_t row);
void cli_passages_clear(cli_passages *passages);

#endif
