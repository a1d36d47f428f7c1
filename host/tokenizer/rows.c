/* SPDX-License-Identifier: Apache-2.0 */
/* Appends tokens to rows of tokens. */
#include "base/alloc.h"
#include "host/tokenizer/tokenizer.h"

bool clv_token_push(clv_token_rows *rows, int32_t id)
{
    if (!clv_reserve(&rows->ids, &rows->id_room, rows->tokens + 1, sizeof *rows->ids)) return false;
    rows->ids[rows->tokens++] = id;
    return true;
}
