/* SPDX-License-Identifier: Apache-2.0 */
/* Converts blocks of quantised weights to floats.
 *
 * The formats are those of the GGUF files of the llama.cpp project. All numbers are little-endian. A block
 * is a scale, sometimes a minimum, and small whole numbers. The K types have 256 weights in groups of 16 or
 * 32, which have scales of their own, again as small whole numbers. */
#include "base/quant.h"

#include "base/alloc.h"
#include "base/half.h"

#include <string.h>

static const clv_quant_facts facts[] = {
    [0] = { "F32", 1, 4, true },          [1] = { "F16", 1, 2, true },
    [2] = { "Q4_0", 32, 18, true },       [3] = { "Q4_1", 32, 20, true },
    [6] = { "Q5_0", 32, 22, true },       [7] = { "Q5_1", 32, 24, true },
    [8] = { "Q8_0", 32, 34, true },       [9] = { "Q8_1", 32, 40, false },
    [10] = { "Q2_K", 256, 84, true },     [11] = { "Q3_K", 256, 110, true },
    [12] = { "Q4_K", 256, 144, true },    [13] = { "Q5_K", 256, 176, true },
    [14] = { "Q6_K", 256, 210, true },    [15] = { "Q8_K", 256, 292, false },
    [16] = { "IQ2_XXS", 256, 66, false }, [17] = { "IQ2_XS", 256, 74, false },
    [18] = { "IQ3_XXS", 256, 98, false }, [19] = { "IQ1_S", 256, 50, false },
    [20] = { "IQ4_NL", 32, 18, true },    [21] = { "IQ3_S", 256, 110, false },
    [22] = { "IQ2_S", 256, 82, false },   [23] = { "IQ4_XS", 256, 136, true },
    [24] = { "I8", 1, 1, false },         [25] = { "I16", 1, 2, false },
    [26] = { "I32", 1, 4, false },        [27] = { "I64", 1, 8, false },
    [28] = { "F64", 1, 8, false },        [29] = { "IQ1_M", 256, 56, false },
    [30] = { "BF16", 1, 2, true },        [34] = { "TQ1_0", 256, 54, false },
    [35] = { "TQ2_0", 256, 66, false },   [39] = { "MXFP4", 32, 17, false },
    [40] = { "NVFP4", 64, 36, false },    [41] = { "Q1_0", 128, 18, false },
};

const int8_t clv_quant_uneven[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

const clv_quant_facts *clv_quant_get_facts(uint32_t type)
{
    return type < CLV_LEN(facts) && facts[type].name ? &facts[type] : NULL;
}

static float half_at(const uint8_t *p)
{
    return clv_half_to_float((uint16_t)(p[0] | p[1] << 8));
}

static uint32_t word_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns value i of 32 nibbles: the low halves of 16 bytes come first, then the high halves. */
static int nibble(const uint8_t *q, size_t i)
{
    return i < 16 ? q[i] & 15 : q[i - 16] >> 4;
}

/* ---- blocks of 32 ------------------------------------------------------------------------------ */

static void four_bits(const uint8_t *p, bool has_minimum, float *out)
{
    const float d = half_at(p), m = has_minimum ? half_at(p + 2) : -8 * d;
    for (size_t i = 0; i < 32; ++i)
        out[i] = d * (float)nibble(p + (has_minimum ? 4 : 2), i) + m;
}

static void five_bits(const uint8_t *p, bool has_minimum, float *out)
{
    const float d = half_at(p), m = has_minimum ? half_at(p + 2) : -16 * d;
    const uint8_t *high = p + (has_minimum ? 4 : 2);
    const uint32_t fifth = word_at(high);
    for (size_t i = 0; i < 32; ++i)
        out[i] = d * (float)(nibble(high + 4, i) | (int)(fifth >> i & 1) << 4) + m;
}

static void eight_bits(const uint8_t *p, float *out)
{
    const float d = half_at(p);
    for (size_t i = 0; i < 32; ++i)
        out[i] = d * (float)(int8_t)p[2 + i];
}

static void uneven(float d, const uint8_t *q, float *out)
{
    for (size_t i = 0; i < 32; ++i)
        out[i] = d * (float)clv_quant_uneven[nibble(q, i)];
}

/* ---- blocks of 256 ----------------------------------------------------------------------------- */

static void two_bits_k(const uint8_t *p, float *out)
{
    const float d = half_at(p + 80), m = half_at(p + 82);
    for (size_t i = 0; i < 256; ++i) {
        const size_t part = i / 128, shift = i / 32 % 4, l = i % 32;
        const int scale = p[i / 16], q = p[16 + 32 * part + l] >> 2 * shift & 3;
        out[i] = d * (float)(scale & 15) * (float)q - m * (float)(scale >> 4);
    }
}

static void three_bits_k(const uint8_t *p, float *out)
{
    const uint8_t *scales = p + 96;
    const float d = half_at(p + 108);
    for (size_t i = 0; i < 256; ++i) {
        const size_t part = i / 128, shift = i / 32 % 4, l = i % 32, g = i / 16;
        const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
        const int scale = low | (scales[8 + g % 4] >> 2 * (g / 4) & 3) << 4;
        const int q = p[32 + 32 * part + l] >> 2 * shift & 3, third = p[l] >> i / 32 & 1;
        out[i] = d * (float)(scale - 32) * (float)(q - (third ? 0 : 4));
    }
}

/* Reads the 6-bit scale and minimum of group g from twelve bytes. */
static void six_bit_pair(const uint8_t *k, size_t g, float *scale, float *minimum)
{
    *scale = (float)(g < 4 ? k[g] & 63 : (k[g + 4] & 15) | k[g - 4] >> 6 << 4);
    *minimum = (float)(g < 4 ? k[g + 4] & 63 : k[g + 4] >> 4 | k[g] >> 6 << 4);
}

static void four_bits_k(const uint8_t *p, bool has_fifth, float *out)
{
    const float d = half_at(p), m = half_at(p + 2);
    const uint8_t *high = p + 16, *q = has_fifth ? p + 48 : p + 16;
    for (size_t g = 0; g < 8; ++g) {
        float scale, minimum;
        six_bit_pair(p + 4, g, &scale, &minimum);
        for (size_t l = 0; l < 32; ++l) {
            int v = q[32 * (g / 2) + l] >> 4 * (g % 2) & 15;
            if (has_fifth) v |= (high[l] >> g & 1) << 4;
            out[32 * g + l] = d * scale * (float)v - m * minimum;
        }
    }
}

static void six_bits_k(const uint8_t *p, float *out)
{
    const float d = half_at(p + 208);
    for (size_t i = 0; i < 256; ++i) {
        const size_t part = i / 128, j = i / 32 % 4, l = i % 32;
        const int low = p[64 * part + 32 * (j % 2) + l] >> 4 * (j / 2) & 15;
        const int v = low | (p[128 + 32 * part + l] >> 2 * j & 3) << 4;
        out[i] = d * (float)(int8_t)p[192 + i / 16] * (float)(v - 32);
    }
}

static void uneven_k(const uint8_t *p, float *out)
{
    const float d = half_at(p);
    const unsigned high = p[2] | (unsigned)p[3] << 8;
    for (size_t g = 0; g < 8; ++g) {
        const int scale = (p[4 + g / 2] >> 4 * (g % 2) & 15) | (int)(high >> 2 * g & 3) << 4;
        uneven(d * (float)(scale - 32), p + 8 + 16 * g, out + 32 * g);
    }
}

static void widen_block(clv_quant type, const uint8_t *p, float *out)
{
    switch (type) {
    case CLV_QUANT_F32:
        *out = float_of(word_at(p));
        break;
    case CLV_QUANT_F16:
        *out = half_at(p);
        break;
    case CLV_QUANT_BF16:
        *out = float_of((uint32_t)p[0] << 16 | (uint32_t)p[1] << 24);
        break;
    case CLV_QUANT_Q4_0:
        four_bits(p, false, out);
        break;
    case CLV_QUANT_Q4_1:
        four_bits(p, true, out);
        break;
    case CLV_QUANT_Q5_0:
        five_bits(p, false, out);
        break;
    case CLV_QUANT_Q5_1:
        five_bits(p, true, out);
        break;
    case CLV_QUANT_Q8_0:
        eight_bits(p, out);
        break;
    case CLV_QUANT_IQ4_NL:
        uneven(half_at(p), p + 2, out);
        break;
    case CLV_QUANT_Q2_K:
        two_bits_k(p, out);
        break;
    case CLV_QUANT_Q3_K:
        three_bits_k(p, out);
        break;
    case CLV_QUANT_Q4_K:
        four_bits_k(p, false, out);
        break;
    case CLV_QUANT_Q5_K:
        four_bits_k(p, true, out);
        break;
    case CLV_QUANT_Q6_K:
        six_bits_k(p, out);
        break;
    case CLV_QUANT_IQ4_XS:
        uneven_k(p, out);
        break;
    }
}

void clv_quant_widen(clv_quant type, const void *bytes, size_t blocks, float *out)
{
    const uint8_t *p = bytes;
    const clv_quant_facts *f = &facts[type];
    for (size_t b = 0; b < blocks; ++b)
        widen_block(type, p + b * f->bytes, out + b * f->count);
}
