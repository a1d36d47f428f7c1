/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the tables of a vocabulary for byte pair encoding when all pieces are known, and reads the special tokens of
 * tokenizer_config.json. */
#include "host/tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <stdio.h>
#include <string.h>

/* Fills byte_ids with the piece of every byte; -1: none. */
static void find_bytes(clv_tokenizer *t)
{
    for (unsigned byte = 0; byte < 256; ++byte) {
        char text[8];
        size_t length = 0;
        if (t->byte_level)
            length = clv_utf8_encode(clv_byte_char((unsigned char)byte), text);
        else if (t->bytes_as_hex)
            length = (size_t)snprintf(text, sizeof text, "<0x%02X>", byte);
        const int32_t id = length ? clv_pieces_find(&t->pieces, text, length) : -1;
        t->byte_ids[byte] = id;
        if (id >= 0 && t->bytes_as_hex && t->types) t->types[id] = CLV_TOKEN_BYTE;
    }
}

clv_status clv_bpe_finish(clv_tokenizer *t, const char *what)
{
    CLV_TRY(clv_pieces_finish(&t->pieces, what, NULL));
    CLV_TRY(clv_specials_finish(t, what));
    find_bytes(t);
    t->max_length = SIZE_MAX;
    return CLV_OK;
}

/* Returns the id of a special token in tokenizer_config.json, whose value is a string or an object that contains it; -1
 * if there is none. */
static int32_t named(const clv_tokenizer *t, const clv_json *config, const char *key)
{
    const clv_json *value = clv_json_get(config, key);
    if (clv_json_is_object(value)) value = clv_json_get(value, "content");
    const char *text = clv_json_string(value, NULL);
    return text ? clv_pieces_find(&t->pieces, text, strlen(text)) : -1;
}

/* Sets whether the token `id` is put around texts at `frame`, if the member `key` of tokenizer_config.json says so;
 * else tokenizer.json's rule stays. */
static clv_status set_frame(const char *what, const clv_json *config, const char *key, int32_t id,
                            int32_t *frame, size_t *count)
{
    bool adds;
    if (!clv_json_is_bool(clv_json_get(config, key))) return CLV_OK;
    CLV_TRY(clv_tokenizer_flag(what, config, key, false, &adds));
    if (adds && id < 0)
        return clv_fail(CLV_E_FORMAT,
                        "%s/tokenizer_config.json: %s is true, but the token is not "
                        "in the vocabulary",
                        what, key);
    *count = adds;
    frame[0] = id;
    return CLV_OK;
}

clv_status clv_bpe_take_config(clv_tokenizer *t, const char *folder, const clv_json *config)
{
    t->bos = named(t, config, "bos_token");
    t->eos = named(t, config, "eos_token");
    t->pad = named(t, config, "pad_token");
    t->cls = named(t, config, "cls_token");
    t->sep = named(t, config, "sep_token");
    t->mask = named(t, config, "mask_token");
    if (t->unk < 0) t->unk = named(t, config, "unk_token");
    CLV_TRY(set_frame(folder, config, "add_bos_token", t->bos, t->before, &t->before_count));
    CLV_TRY(set_frame(folder, config, "add_eos_token", t->eos, t->after, &t->after_count));
    if (t->bos < 0 && t->before_count) t->bos = t->before[0];
    return CLV_OK;
}
