/* SPDX-License-Identifier: Apache-2.0 */
/* Runs both passes of `cleave search --first-pass`: first over the codes of all vectors, then over the vectors of
 * the candidates. */
#ifndef CLEAVE_HOST_CLI_TEXT_FIRST_PASS_H
#define CLEAVE_HOST_CLI_TEXT_FIRST_PASS_H

#include "host/cli/cli.h"
#include "host/io/formats/npy_rows.h"

#include <cleave/search.h>

typedef struct cli_first_pass {
    const cli_command *command;
    clv_codes codes;
    const char *path; /* file of the codes; NULL: they are computed and not kept */
    bool write;       /* the file does not exist yet */
    clv_npy_rows *vectors;
    const char *vectors_path;
} cli_first_pass;

/* Finds out whether the file of codes exists, and if so, whether it may belong to the vectors. Returns 0, else the exit
 * code. */
int cli_first_pass_check(cli_first_pass *pass);

/* Adds the codes of all vectors, read from the file or computed, to the search, and then the vectors of the
 * candidates. *done counts the rows of finished blocks. */
clv_status cli_first_pass_run(const cli_first_pass *pass, clv_search *search, size_t *done,
                              clv_report *report);

#endif
