/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of Thrift's compact protocol. */
#include "host/io/tables/parquet_thrift.h"

#include "host/io/tables/parquet_parts.h"

enum { MOST_DEPTH = 16 };

unsigned clv_thrift_byte(clv_thrift *t)
{
    if (t->bad || t->at == t->end) {
        t->bad = true;
        return 0;
    }
    return *t->at++;
}

uint64_t clv_thrift_varint(clv_thrift *t)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned byte = clv_thrift_byte(t);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return value;
    }
    t->bad = true;
    return 0;
}

int64_t clv_thrift_int(clv_thrift *t)
{
    const uint64_t value = clv_thrift_varint(t);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

void clv_thrift_skip(clv_thrift *t, uint64_t count)
{
    if (t->bad || count > (uint64_t)(t->end - t->at))
        t->bad = true;
    else
        t->at += count;
}

unsigned clv_thrift_field(clv_thrift *t, unsigned *field)
{
    const unsigned head = clv_thrift_byte(t), type = head & 15;
    if (type == THRIFT_STOP || t->bad) return THRIFT_STOP;
    *field = head >> 4 ? *field + (head >> 4) : (unsigned)(clv_thrift_int(t) & 0x7FFF);
    return type;
}

size_t clv_thrift_list(clv_thrift *t, unsigned *type)
{
    const unsigned head = clv_thrift_byte(t);
    *type = head & 15;
    const uint64_t count = head >> 4 == 15 ? clv_thrift_varint(t) : head >> 4;
    if (count > (uint64_t)(t->end - t->at)) t->bad = true; /* each element takes at least a byte */
    return t->bad ? 0 : (size_t)count;
}

static void skip_within(clv_thrift *t, unsigned type, int depth)
{
    unsigned inner, field = 0;
    if (depth > MOST_DEPTH) t->bad = true;
    if (t->bad) return;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        return;
    case THRIFT_BYTE:
        clv_thrift_skip(t, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        clv_thrift_varint(t);
        return;
    case THRIFT_DOUBLE:
        clv_thrift_skip(t, 8);
        return;
    case THRIFT_BINARY:
        clv_thrift_skip(t, clv_thrift_varint(t));
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        for (size_t left = clv_thrift_list(t, &inner); left && !t->bad; --left)
            /* in lists, each truth value is a byte */
            if (inner == THRIFT_TRUE || inner == THRIFT_FALSE)
                clv_thrift_skip(t, 1);
            else
                skip_within(t, inner, depth + 1);
        return;
    case THRIFT_STRUCT:
        while ((inner = clv_thrift_field(t, &field)) != THRIFT_STOP)
            skip_within(t, inner, depth + 1);
        return;
    default: /* maps do not occur in the structs that Cleave reads */
        t->bad = true;
    }
}

void clv_thrift_skip_value(clv_thrift *t, unsigned type)
{
    skip_within(t, type, 0);
}
