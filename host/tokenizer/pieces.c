/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the pieces of a vocabulary: a hash table with open addressing maps texts to ids, an array maps ids to
 * texts. */
#include "host/tokenizer/pieces.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>
#include <sys/random.h>

clv_status clv_pieces_check_length(const char *what, const char *kind, const char *text,
                                   size_t length)
{
    if (length <= CLV_PIECE_BYTES_MAX) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the %s \"%.40s...\" has %zu bytes; at most %d are supported, because the "
                    "work for a text grows with the length of the longest one",
                    what, kind, text, length, CLV_PIECE_BYTES_MAX);
}

clv_status clv_pieces_add(clv_pieces *p, const char *what, const char *text, size_t length,
                          int64_t id)
{
    if (id < 0 || id > CLV_PIECE_ID_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: piece \"%.60s\" has the id %lld, expected 0 to %d", what,
                        text, (long long)id, CLV_PIECE_ID_MAX);
    CLV_TRY(clv_pieces_check_length(what, "piece", text, length));
    if (memchr(text, '\0', length))
        return clv_fail(CLV_E_FORMAT, "%s: the piece with id %lld has a NUL byte", what,
                        (long long)id);
    const size_t wanted = (size_t)id + 1;
    if (!clv_reserve(&p->start, &p->id_room, wanted, sizeof *p->start) ||
        !clv_reserve(&p->texts, &p->text_room, p->text_used + length + 1, 1))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the vocabulary", what);
    for (; p->ids < wanted; ++p->ids)
        p->start[p->ids] = SIZE_MAX;
    if (p->start[id] != SIZE_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: pieces \"%.60s\" and \"%.60s\" have the same id %lld",
                        what, p->texts + p->start[id], text, (long long)id);
    p->start[id] = p->text_used;
    memcpy(p->texts + p->text_used, text, length);
    p->texts[p->text_used + length] = '\0';
    p->text_used += length + 1;
    return CLV_OK;
}

static uint64_t hash_of(const clv_pieces *p, const char *text, size_t length, int kind)
{
    uint64_t hash = clv_piece_start(p, kind);
    for (size_t i = 0; i < length; ++i)
        hash = clv_piece_step(hash, (unsigned char)text[i]);
    return hash;
}

static void file_piece(clv_pieces *p, const char *text, size_t length, int kind, int32_t id)
{
    const uint64_t hash = hash_of(p, text, length, kind);
    const size_t mask = p->slot_count - 1;
    size_t at = (size_t)(hash >> 20) & mask;
    for (; p->slots[at].id >= 0; at = (at + 1) & mask) {
        const clv_piece_slot *slot = &p->slots[at];
        if (slot->tag == (uint32_t)(hash >> 32) && slot->length == length &&
            memcmp(p->texts + slot->text, text, length) == 0)
            break; /* the text occurs twice: the later id replaces the earlier one */
    }
    p->slots[at] = (clv_piece_slot){ .tag = (uint32_t)(hash >> 32),
                                     .id = id,
                                     .text = (uint32_t)(text - p->texts),
                                     .length = (uint32_t)length };
    if (p->longest[kind] < length) p->longest[kind] = length;
    p->lengths[length] = true;
}

clv_status clv_pieces_finish(clv_pieces *p, const char *what, const char *mark)
{
    const size_t mark_length = mark ? strlen(mark) : 0;
    if (!p->ids) return clv_fail(CLV_E_FORMAT, "%s: the vocabulary is empty", what);
    if (mark && (!mark_length || mark_length >= sizeof p->tail_mark))
        return clv_fail(CLV_E_FORMAT,
                        "%s: continuing_subword_prefix is \"%.60s\"; expected 1 to %zu bytes", what,
                        mark, sizeof p->tail_mark - 1);
    if (p->text_used > UINT32_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: the vocabulary has more than 4 GB", what);
    if (mark) memcpy(p->tail_mark, mark, mark_length + 1);
    for (p->slot_count = 64; p->slot_count < 4 * p->ids;)
        p->slot_count *= 2;
    p->slots = clv_alloc(p->slot_count, sizeof *p->slots);
    if (!p->slots) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the vocabulary", what);
    for (size_t i = 0; i < p->slot_count; ++i)
        p->slots[i] = (clv_piece_slot){ .id = -1 };
    if (getrandom(&p->seed, sizeof p->seed, 0) != sizeof p->seed) p->seed = (uintptr_t)p->slots;
    for (size_t id = 0; id < p->ids; ++id) {
        if (p->start[id] == SIZE_MAX) continue;
        const char *text = p->texts + p->start[id];
        const size_t length = strlen(text);
        if (!length) continue; /* an empty line never matches */
        if (mark && length > mark_length && memcmp(text, mark, mark_length) == 0)
            file_piece(p, text + mark_length, length - mark_length, CLV_PIECE_TAIL, (int32_t)id);
        /* Every piece is also filed as a head. No word begins with the mark "##", since words are split at
         * punctuation. */
        file_piece(p, text, length, CLV_PIECE_HEAD, (int32_t)id);
    }
    return CLV_OK;
}

void clv_pieces_clear(clv_pieces *p)
{
    clv_free(p->texts);
    clv_free(p->start);
    clv_free(p->slots);
    *p = (clv_pieces){ 0 };
}

const char *clv_pieces_text(const clv_pieces *p, int32_t id)
{
    if (id < 0 || (size_t)id >= p->ids || p->start[id] == SIZE_MAX) return NULL;
    return p->texts + p->start[id];
}

int32_t clv_pieces_find(const clv_pieces *p, const char *text, size_t length)
{
    return clv_pieces_match(p, hash_of(p, text, length, CLV_PIECE_HEAD), text, length);
}
