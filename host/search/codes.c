/* SPDX-License-Identifier: Apache-2.0 */
/* Makes codes, which are short forms of vectors: int8 numbers or bits. */
#include "host/search/search.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl/search/shared.clh"

#include <math.h>
#include <string.h>

enum { BLOCK = CLV_SEARCH_BITS_BLOCK, WORD_BYTES = 8 };

size_t clv_codes_bytes(clv_codes codes, size_t width)
{
    return codes == CLV_CODES_INT8     ? width
           : codes == CLV_CODES_BINARY ? width / 8 + (width % 8 != 0)
                                       : 0;
}

static void make_bytes(const float *row, size_t width, int8_t *out)
{
    float most = 0;
    bool finite = true;
    for (size_t i = 0; i < width; ++i) {
        const float size = fabsf(row[i]);
        finite &= isfinite(row[i]) != 0;
        most = size > most ? size : most;
    }
    const double scale = finite && most > 0 ? 127 / (double)most : 0;
    for (size_t i = 0; i < width; ++i)
        out[i] = scale > 0 ? (int8_t)lrint((double)row[i] * scale) : 0;
}

static void make_bits(const float *row, size_t width, uint8_t *out)
{
    for (size_t i = 0; i < width; i += 8) {
        unsigned bits = 0;
        for (size_t b = 0; b < 8 && i + b < width; ++b)
            bits |= (unsigned)(row[i + b] > 0) << (7 - b);
        out[i / 8] = (uint8_t)bits;
    }
}

clv_status clv_codes_make(clv_codes codes, const float *rows, size_t count, size_t width,
                          size_t stride, void *out)
{
    const size_t bytes = clv_codes_bytes(codes, width);
    if (codes != CLV_CODES_INT8 && codes != CLV_CODES_BINARY)
        return clv_fail(CLV_E_ARGUMENT, "codes: %d is neither CLV_CODES_INT8 nor CLV_CODES_BINARY",
                        (int)codes);
    if (count && (!rows || !out)) return clv_fail(CLV_E_ARGUMENT, "codes: rows or out is NULL");
    if (!stride) stride = width;
    if (!width || stride < width)
        return clv_fail(
            CLV_E_SHAPE,
            "codes: the width is %zu and the stride %zu, but they must satisfy 0 < width <= stride",
            width, stride);
    for (size_t r = 0; r < count; ++r)
        if (codes == CLV_CODES_INT8)
            make_bytes(rows + r * stride, width, (int8_t *)out + r * bytes);
        else
            make_bits(rows + r * stride, width, (uint8_t *)out + r * bytes);
    return CLV_OK;
}

clv_status clv_search_pack_queries(clv_search *s)
{
    const size_t bytes = clv_codes_bytes(CLV_CODES_BINARY, s->width);
    s->words = (bytes + WORD_BYTES - 1) / WORD_BYTES;
    s->bits = clv_zalloc(clv_round_up(s->queries, BLOCK) * s->words, sizeof *s->bits);
    uint8_t *code = clv_alloc(bytes, 1);
    const bool enough = s->bits && code;
    for (size_t q = 0; q < s->queries && enough; ++q) {
        uint64_t *block = s->bits + q / BLOCK * BLOCK * s->words + q % BLOCK;
        make_bits(s->given + q * s->width, s->width, code);
        for (size_t b = 0; b < bytes; ++b)
            block[b / WORD_BYTES * BLOCK] |= (uint64_t)code[b] << 8 * (b % WORD_BYTES);
    }
    clv_free(code);
    return enough ? CLV_OK
                  : clv_fail(CLV_E_MEMORY, "search: not enough memory for the codes of %zu queries",
                             s->queries);
}

static unsigned count_bits(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(x * 0x0101010101010101u >> 56);
}

int64_t clv_search_bits_product(const clv_search *s, size_t q, const uint8_t *row)
{
    const size_t bytes = clv_codes_bytes(CLV_CODES_BINARY, s->width);
    const uint64_t *block = s->bits + q / BLOCK * BLOCK * s->words + q % BLOCK;
    int64_t differ = 0;
    for (size_t w = 0; w < s->words; ++w) {
        uint64_t word = 0;
        for (size_t b = 0; b < WORD_BYTES && w * WORD_BYTES + b < bytes; ++b)
            word |= (uint64_t)row[w * WORD_BYTES + b] << 8 * b;
        differ += count_bits(word ^ block[w * BLOCK]);
    }
    return (int64_t)s->width - 2 * differ;
}
