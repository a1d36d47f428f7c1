/* SPDX-License-Identifier: Apache-2.0 */
/* Computes reductions and running sums on the host, in the order of cl/array/fold.cl. */
#include "host/array/fold.h"

#include <complex.h>
#include <string.h>

/* For every block of `width` elements after the first one: all[k] = all[k] op block[k]. W is the unsigned type, whose
 * sums and products wrap. */
#define JOIN(value)                                            \
    for (size_t t = 1; t < blocks; ++t) {                      \
        const size_t some = t + 1 < blocks ? width : rest;     \
        for (size_t k = 0; k < some; ++k) {                    \
            const W x = (W)all[k], y = (W)from[t * width + k]; \
            (void)y;                                           \
            all[k] = (number)(value);                          \
        }                                                      \
    }                                                          \
    break

#define ROWS(name, NUMBER, WRAPS, LEAST, MOST)                                              \
    static void fold_##name(clv_fold what, clv_fold_shape s, size_t chunks, const void *in, \
                            void *out)                                                      \
    {                                                                                       \
        typedef NUMBER number;                                                              \
        typedef WRAPS W;                                                                    \
        const size_t width = chunks * s.inner, row = s.len * s.inner;                       \
        const size_t blocks = (row + width - 1) / width, rest = row - (blocks - 1) * width; \
        for (size_t o = 0; o < s.outer; ++o) {                                              \
            const number *from = (const number *)in + o * row;                              \
            number *all = (number *)out + o * width;                                        \
            memcpy(all, from, width * sizeof *all);                                         \
            switch (what) {                                                                 \
            case CLV_FOLD_SUM:                                                              \
                JOIN(x + y);                                                                \
            case CLV_FOLD_PROD:                                                             \
                JOIN(x *y);                                                                 \
            case CLV_FOLD_MIN:                                                              \
                JOIN(LEAST);                                                                \
            case CLV_FOLD_MAX:                                                              \
                JOIN(MOST);                                                                 \
            case CLV_FOLD_ANY:                                                              \
                JOIN(x != 0 || y != 0);                                                     \
            case CLV_FOLD_ALL:                                                              \
                JOIN(x != 0 && y != 0);                                                     \
            }                                                                               \
        }                                                                                   \
    }                                                                                       \
    static void scan_##name(bool products, clv_fold_shape s, const void *in, void *out)     \
    {                                                                                       \
        const size_t row = s.len * s.inner;                                                 \
        for (size_t o = 0; o < s.outer; ++o) {                                              \
            const NUMBER *from = (const NUMBER *)in + o * row;                              \
            NUMBER *to = (NUMBER *)out + o * row;                                           \
            memmove(to, from, s.inner * sizeof *to);                                        \
            for (size_t k = s.inner; k < row; ++k) {                                        \
                const WRAPS x = (WRAPS)to[k - s.inner], y = (WRAPS)from[k];                 \
                to[k] = (NUMBER)(products ? x * y : x + y);                                 \
            }                                                                               \
        }                                                                                   \
    }

/* Computes small integers in 32 bits, where products of two of them do not overflow. */
#define WHOLE(name, NUMBER, WRAPS) \
    ROWS(name, NUMBER, WRAPS, (number)y<(number)x ? y : x, (number)y>(number) x ? y : x)
#define REAL(name, NUMBER) \
    ROWS(name, NUMBER, NUMBER, x != x || x < y ? x : y, x != x || x > y ? x : y)
WHOLE(u8, uint8_t, uint32_t)
WHOLE(i8, int8_t, uint32_t)
WHOLE(i16, int16_t, uint32_t)
WHOLE(u16, uint16_t, uint32_t)
WHOLE(i32, int32_t, uint32_t)
WHOLE(u32, uint32_t, uint32_t)
WHOLE(i64, int64_t, uint64_t)
WHOLE(u64, uint64_t, uint64_t)
REAL(f32, float)
REAL(f64, double)
ROWS(c64, float complex, float complex, x, x) /* extremes are refused earlier */
ROWS(c128, double complex, double complex, x, x)

#define EACH_TYPE(DO)   \
    switch (type) {     \
    case CLV_F32:       \
        DO(f32);        \
    case CLV_I8:        \
        DO(i8);         \
    case CLV_I16:       \
        DO(i16);        \
    case CLV_I32:       \
        DO(i32);        \
    case CLV_I64:       \
        DO(i64);        \
    case CLV_U16:       \
        DO(u16);        \
    case CLV_U32:       \
        DO(u32);        \
    case CLV_U64:       \
        DO(u64);        \
    case CLV_F64:       \
        DO(f64);        \
    case CLV_C64:       \
        DO(c64);        \
    case CLV_C128:      \
        DO(c128);       \
    default: /* bool */ \
        DO(u8);         \
    }

void clv_fold_level(clv_fold what, clv_dtype type, clv_fold_shape shape, size_t chunks,
                    const void *in, void *out)
{
#define FOLD(name)                             \
    fold_##name(what, shape, chunks, in, out); \
    break
    EACH_TYPE(FOLD)
}

void clv_scan_rows(bool products, clv_dtype type, clv_fold_shape shape, const void *in, void *out)
{
#define SCAN(name)                         \
    scan_##name(products, shape, in, out); \
    break
    EACH_TYPE(SCAN)
}
