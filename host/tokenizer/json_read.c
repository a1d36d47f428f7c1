/* SPDX-License-Identifier: Apache-2.0 */
/* Reads parts of tokenizer.json that all kinds of tokenizers have, and refuses parts that are not supported. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "host/tokenizer/tokenizer.h"

#include <stdio.h>
#include <string.h>

clv_status clv_tokenizer_refuse(const char *what, const char *part, const clv_json *found,
                                const char *expected)
{
    return clv_fail(CLV_E_FORMAT, "%s: %s is %.60s, expected %s", what, part,
                    clv_json_string(found, clv_folder_kind(found)), expected);
}

clv_status clv_tokenizer_flag(const char *what, const clv_json *object, const char *key,
                              bool fallback, bool *out)
{
    const clv_json *value = clv_json_get(object, key);
    *out = clv_json_bool(value, fallback);
    if (clv_json_is_bool(value) || !value || strcmp(clv_folder_kind(value), "null") == 0)
        return CLV_OK;
    return clv_tokenizer_refuse(what, key, value, "true or false");
}

clv_status clv_tokenizer_take_pieces(clv_tokenizer *t, const char *what, const clv_json *vocabulary)
{
    if (!clv_json_is_object(vocabulary))
        return clv_tokenizer_refuse(what, "vocab", vocabulary, "an object");
    for (const char *piece = NULL; (piece = clv_json_next_key(vocabulary, piece));) {
        const clv_json *id = clv_json_get(vocabulary, piece);
        if (!clv_json_is_int(id))
            return clv_fail(CLV_E_FORMAT,
                            "%s: the id of piece \"%.60s\" is %s, expected a whole "
                            "number",
                            what, piece, clv_folder_kind(id));
        CLV_TRY(clv_pieces_add(&t->pieces, what, piece, strlen(piece), clv_json_int(id, -1)));
    }
    return CLV_OK;
}
