/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of tokens as text: a JSON list of lists, lines of numbers, or lines of pieces. */
#ifndef CLEAVE_HOST_CLI_TEXT_IDS_H
#define CLEAVE_HOST_CLI_TEXT_IDS_H

#include "base/text.h"
#include "host/io/output.h"

#include <cleave/tokenizer.h>

enum { CLI_IDS_JSON, CLI_IDS_NUMBERS, CLI_IDS_PIECES };

typedef struct cli_ids {
    const clv_tokenizer *tokenizer;
    int format;
    clv_output output;
    uint64_t rows;
    clv_text text;
} cli_ids;

/* Zero-initialise, then set tokenizer and format. */
clv_status cli_ids_open(cli_ids *ids, const char *path);
clv_status cli_ids_add(cli_ids *ids, const clv_token_rows *rows);
clv_status cli_ids_finish(cli_ids *ids); /* the file is complete afterwards, or absent */
void cli_ids_abandon(cli_ids *ids);      /* accepts one that was never opened */

#endif
