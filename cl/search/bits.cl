/* search/bits.cl -- compares the bits of many rows with those of each query, on CPU cores.
 *
 *   S[q, r] = width - 2 (number of bits in which Q[query + q] and X[r] differ)
 *
 * This is the product of the two rows where a bit 1 stands for 1 and a bit 0 for -1. A work-item takes STRIP rows.
 *
 * clv_search_bits_few: counts bits in one word after the other; reads a row once for all queries.
 * clv_search_bits: lane j of a register belongs to query j of a block of BLOCK queries. Full adders reduce six words
 * and a carried-over word to three words whose bits count 1, 2 and 4; only the bits of the last two are counted at
 * once. The counts of BLOCK rows are transposed, so that neighbouring rows are stored together.
 *
 * Launch   1-D: global (strips of rows), local 1.
 * Defines  WORDS: 64-bit words of a row, rounded up.
 * Needs    OpenCL C 1.2, a little-endian device. X [rows, bytes] may have any alignment; nothing beyond `bytes` is
 *          read. The bits beyond `width` are 0 in X and in Q. Q is [blocks of queries, WORDS, BLOCK], and `query` a
 *          multiple of BLOCK. Rows of S have room for a multiple of BLOCK.
 * Out      whole numbers, exact in float32. */
#define LANES 8
#include "common/lanes.clh"
#include "search/shared.clh"

#define UNROLL _Pragma("unroll")
#define STRIP CLV_SEARCH_STRIP
#define BLOCK CLV_SEARCH_BITS_BLOCK
#define ADDED 6 /* words at a time */

typedef ulong __attribute__((aligned(1))) loose_word;
typedef ulong8 __attribute__((aligned(8))) loose_words;

static ulong word_of(__global const uchar *x, uint at, uint bytes)
{
    if (at + 8 <= bytes) return *(__global const loose_word *)(x + at);
    ulong word = 0;
    for (uint b = at; b < bytes; ++b) word |= (ulong)x[b] << 8 * (b - at);
    return word;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_search_bits_few(__global const uchar *restrict X, ulong x_offset, ulong x_row, __global const ulong *restrict Q,
                    uint query, __global float *restrict S, uint s_row, uint count, uint bytes, uint width,
                    uint queries)
{
    const uint first = get_global_id(0) * STRIP, last = min(first + STRIP, count);
    for (uint r = first; r < last; ++r) {
        __global const uchar *x = X + x_offset + r * x_row;
        for (uint q = 0; q < queries; ++q) {
            __global const ulong *y = Q + (size_t)(query + q) / BLOCK * BLOCK * WORDS + (query + q) % BLOCK;
            ulong differ = 0;
            for (uint w = 0; w < WORDS; ++w) differ += popcount(word_of(x, 8 * w, bytes) ^ y[BLOCK * w]);
            S[(size_t)q * s_row + r] = (float)((int)width - 2 * (int)differ);
        }
    }
}

/* popcount() in the form that compilers know: PoCL makes 8 single counts of the function with that name. */
static ulong8 count_bits(ulong8 x)
{
    x -= x >> 1 & 0x5555555555555555ul;
    x = (x & 0x3333333333333333ul) + (x >> 2 & 0x3333333333333333ul);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0ful;
    return x * 0x0101010101010101ul >> 56;
}

/* Computes a + b + c = sum + 2 carry, bit by bit; the sum replaces a. */
#define FULL_ADD(a, b, c, carry)           \
    do {                                   \
        carry = (a & b) | (c & (a | b));   \
        a = a ^ b ^ c;                     \
    } while (0)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
clv_search_bits(__global const uchar *restrict X, ulong x_offset, ulong x_row, __global const ulong *restrict Q,
                uint query, __global float *restrict S, uint s_row, uint count, uint bytes, uint width, uint queries)
{
    const uint first = get_global_id(0) * STRIP, last = min(first + STRIP, count);
    for (uint r = first; r < last; r += BLOCK) {
        ulong word[BLOCK][WORDS];
        UNROLL for (int i = 0; i < BLOCK; ++i)
        {
            __global const uchar *x = X + x_offset + min(r + i, last - 1) * x_row;
            for (uint w = 0; w < WORDS; ++w) word[i][w] = word_of(x, 8 * w, bytes);
        }
        for (uint q = 0; q < queries; q += BLOCK) {
            __global const ulong *y = Q + (size_t)(query + q) * WORDS;
            fvec product[BLOCK];
            UNROLL for (int i = 0; i < BLOCK; ++i)
            {
                ulong8 ones = (ulong8)(0), more = (ulong8)(0);
                UNROLL for (int w = 0; w < WORDS; w += ADDED)
                {
                    ulong8 d[ADDED];
                    UNROLL for (int k = 0; k < ADDED; ++k)
                        d[k] = w + k < WORDS ? word[i][w + k] ^ *(__global const loose_words *)(y + BLOCK * (w + k))
                                             : (ulong8)(0);
                    ulong8 a, b, c, fours;
                    FULL_ADD(ones, d[0], d[1], a);
                    FULL_ADD(ones, d[2], d[3], b);
                    FULL_ADD(ones, d[4], d[5], c);
                    FULL_ADD(a, b, c, fours);
                    more += count_bits(a) + 2 * count_bits(fours);
                }
                const int8 differ = convert_int8(2 * more + count_bits(ones));
                product[i] = convert_float8((int)width - 2 * differ);
            }
            turn_eight(product);
            UNROLL for (int j = 0; j < BLOCK; ++j)
                if (q + j < queries) lanes_store(product[j], S + (size_t)(q + j) * s_row + r);
        }
    }
}
