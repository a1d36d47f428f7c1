/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of tokens as text: a JSON list of lists, lines of numbers, or lines of pieces. */
#include "host/cli/text/ids.h"

#include "base/error.h"

#include <string.h>

static void add_number(clv_text *text, int32_t number)
{
    char digits[12];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10); /* ids are never negative */
    clv_text_bytes(text, digits + at, sizeof digits - at);
}

static void add_row(cli_ids *d, const int32_t *ids, size_t count)
{
    const char *between = d->format == CLI_IDS_JSON ? "," : " ";
    if (d->format == CLI_IDS_JSON) clv_text_bytes(&d->text, d->rows ? ",\n[" : "[\n[", 3);
    for (size_t i = 0; i < count; ++i) {
        if (i) clv_text_bytes(&d->text, between, 1);
        if (d->format == CLI_IDS_PIECES) {
            const char *piece = clv_tokenizer_piece(d->tokenizer, ids[i]);
            clv_text_bytes(&d->text, piece, strlen(piece));
        } else {
            add_number(&d->text, ids[i]);
        }
    }
    clv_text_bytes(&d->text, d->format == CLI_IDS_JSON ? "]" : "\n", 1);
    ++d->rows;
}

clv_status cli_ids_open(cli_ids *d, const char *path)
{
    return clv_output_open(&d->output, path, false);
}

clv_status cli_ids_add(cli_ids *d, const clv_token_rows *rows)
{
    d->text.length = 0;
    for (size_t i = 0; i < rows->rows; ++i)
        add_row(d, rows->ids + rows->offsets[i], rows->offsets[i + 1] - rows->offsets[i]);
    if (d->text.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu rows", rows->rows);
    return clv_output_write(&d->output, d->text.data, d->text.length);
}

clv_status cli_ids_finish(cli_ids *d)
{
    clv_status status = CLV_OK;
    if (d->format == CLI_IDS_JSON)
        status = d->rows ? clv_output_write(&d->output, "\n]\n", 3)
                         : clv_output_write(&d->output, "[]\n", 3);
    if (!status) status = clv_output_finish(&d->output);
    cli_ids_abandon(d);
    return status;
}

void cli_ids_abandon(cli_ids *d)
{
    clv_output_abandon(&d->output);
    clv_text_clear(&d->text);
    d->rows = 0;
}
