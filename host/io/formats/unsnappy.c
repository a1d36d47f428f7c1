/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks Snappy data without frames, as Parquet uses them: the unpacked length as a varint, then literals and copies
 * of bytes that were unpacked before. Written from Google's description of the format (format_description.txt). */
#include "host/io/formats/unpack.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The kind of an element: the low two bits of its first byte. */
enum { LITERAL = 0, COPY_NEAR = 1, COPY_FAR = 2, COPY_FARTHEST = 3 };

typedef struct snappy {
    const unsigned char *at, *end;
    unsigned char *out;
    size_t made, wanted;
} snappy;

/* Reads a number of `count` bytes, the lowest byte first. Returns false if the data end before. */
static bool take(snappy *s, size_t count, uint32_t *value)
{
    if ((size_t)(s->end - s->at) < count) return false;
    *value = 0;
    for (size_t i = 0; i < count; ++i)
        *value |= (uint32_t)*s->at++ << 8 * i;
    return true;
}

static bool take_length(snappy *s)
{
    uint64_t length = 0;
    uint32_t byte = 0x80;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 28 || !take(s, 1, &byte)) return false;
        length |= (uint64_t)(byte & 0x7F) << shift;
    }
    return length == s->wanted;
}

static bool put_literal(snappy *s, uint32_t tag)
{
    uint32_t length = tag >> 2;
    if (length >= 60 && !take(s, length - 59, &length)) return false;
    if (length >= (size_t)(s->end - s->at) || length >= s->wanted - s->made) return false;
    memcpy(s->out + s->made, s->at, (size_t)length + 1);
    s->at += (size_t)length + 1, s->made += (size_t)length + 1;
    return true;
}

/* Appends `length` bytes that begin `offset` bytes before the end of the output. They may include bytes that this call
 * writes. */
static bool put_copy(snappy *s, size_t offset, size_t length)
{
    if (!offset || offset > s->made || length > s->wanted - s->made) return false;
    for (size_t i = 0; i < length; ++i, ++s->made)
        s->out[s->made] = s->out[s->made - offset];
    return true;
}

static bool put_element(snappy *s)
{
    uint32_t tag, low;
    if (!take(s, 1, &tag)) return false;
    switch (tag & 3) {
    case LITERAL:
        return put_literal(s, tag);
    case COPY_NEAR:
        return take(s, 1, &low) && put_copy(s, (size_t)(tag >> 5) << 8 | low, (tag >> 2 & 7) + 4);
    case COPY_FAR:
        return take(s, 2, &low) && put_copy(s, low, (tag >> 2) + 1);
    default: /* COPY_FARTHEST */
        return take(s, 4, &low) && put_copy(s, low, (tag >> 2) + 1);
    }
}

clv_status clv_unpack_snappy(const char *path, const void *in, size_t length, void *out,
                             size_t wanted)
{
    snappy s = { .at = in, .out = out, .wanted = wanted };
    s.end = s.at + length;
    bool good = take_length(&s);
    while (good && s.at < s.end)
        good = put_element(&s);
    if (!good || s.made != wanted)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the Snappy data are damaged, or do not unpack to %zu bytes", path,
                        wanted);
    return CLV_OK;
}
