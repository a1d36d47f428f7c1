/* SPDX-License-Identifier: Apache-2.0 */
/* Returns the types of tokens. */
#include "host/tokenizer/tokenizer.h"

clv_token_type clv_tokenizer_type(const clv_tokenizer *t, int32_t id)
{
    if (!t || !clv_pieces_text(&t->pieces, id)) return CLV_TOKEN_NONE;
    if (t->types) return (clv_token_type)t->types[id];
    for (size_t i = 0; i < t->special_count; ++i)
        if (t->specials[i].id == id) return CLV_TOKEN_CONTROL;
    return id == t->unk ? CLV_TOKEN_UNKNOWN : CLV_TOKEN_NORMAL;
}
