/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the pieces of a vocabulary: a hash table maps texts to ids, an array maps ids to texts. */
#ifndef CLEAVE_HOST_TOKENIZER_PIECES_H
#define CLEAVE_HOST_TOKENIZER_PIECES_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest id, and the length in bytes of the longest accepted piece. Real vocabularies have pieces of up to 1024
 * bytes (512 spaces, each written as two bytes). The work for a text grows with its length times that of the longest
 * piece, so that without a limit a small file could take hours. */
enum { CLV_PIECE_ID_MAX = (1 << 24) - 1, CLV_PIECE_BYTES_MAX = 4096 };

/* The two kinds of pieces: heads, and tails, which continue a word ("##ing") and are stored without their mark. The
 * hash of a piece is computed byte by byte, so that one pass over a word gives the hashes of all its prefixes. Heads
 * and tails have different start values of the hash. */
enum { CLV_PIECE_HEAD = 0, CLV_PIECE_TAIL = 1 };

static inline uint64_t clv_piece_step(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * 0xFF51AFD7ED558CCDu;
}

typedef struct clv_piece_slot {
    uint32_t tag; /* upper half of the hash */
    int32_t id;   /* -1: free */
    uint32_t text, length;
} clv_piece_slot;

typedef struct clv_pieces {
    char *texts; /* the texts of all pieces, each with a NUL at its end */
    size_t text_used, text_room;
    size_t *start; /* [ids]: offset in texts; SIZE_MAX: no such id */
    size_t ids, id_room;
    clv_piece_slot *slots;
    size_t slot_count; /* a power of two */
    uint64_t seed;     /* drawn at random: nobody can make a vocabulary whose pieces share a slot */
    size_t longest[2]; /* bytes of the longest head and tail */
    bool lengths[CLV_PIECE_BYTES_MAX + 1]; /* whether a head or a tail has this length in bytes */

    char tail_mark[16]; /* "##" */
} clv_pieces;

/* Returns the hash of an empty piece of the kind `kind`, from which clv_piece_step continues. */
static inline uint64_t clv_piece_start(const clv_pieces *p, int kind)
{
    return p->seed ^ (kind == CLV_PIECE_HEAD ? 0x9E3779B97F4A7C15u : 0xC2B2AE3D27D4EB4Fu);
}

/* Adds a piece. If the same text is added again, the later id replaces the earlier one. Returns CLV_E_FORMAT if the id
 * is taken or out of range, or if the text contains a NUL or has more than CLV_PIECE_BYTES_MAX bytes. `what` names the
 * file in messages. */
clv_status clv_pieces_add(clv_pieces *pieces, const char *what, const char *text, size_t length,
                          int64_t id);
/* Fails for a piece or an added token of more than CLV_PIECE_BYTES_MAX bytes. `kind`, such as "piece", names it in the
 * message. */
clv_status clv_pieces_check_length(const char *what, const char *kind, const char *text,
                                   size_t length);
/* Builds the hash table; call it once, after the last piece. Pieces that begin with `mark` continue a word; if `mark`
 * is NULL, no piece does. */
clv_status clv_pieces_finish(clv_pieces *pieces, const char *what, const char *mark);
void clv_pieces_clear(clv_pieces *pieces);

const char *clv_pieces_text(const clv_pieces *pieces, int32_t id); /* NULL: no such id */
/* a head, in the form in which it is stored; -1: none */
int32_t clv_pieces_find(const clv_pieces *pieces, const char *text, size_t length);

static inline int32_t clv_pieces_match(const clv_pieces *p, uint64_t hash, const char *text,
                                       size_t length)
{
    const size_t mask = p->slot_count - 1;
    for (size_t at = (size_t)(hash >> 20) & mask;; at = (at + 1) & mask) {
        const clv_piece_slot *slot = &p->slots[at];
        if (slot->id < 0) return -1;
        if (slot->tag != (uint32_t)(hash >> 32) || slot->length != length) continue;
        const char *stored = p->texts + slot->text;
        size_t i = 0;
        while (i < length && stored[i] == text[i])
            ++i;
        if (i == length) return slot->id;
    }
}

#endif
