/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the types in memory and the five kinds of numbers in which the host computes. */
#include "host/array/apply.h"

#include "base/half.h"

#include <complex.h>

int64_t clv_to_int(double x)
{
    return !(x >= -0x1p63) ? (x != x ? 0 : INT64_MIN) : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

uint64_t clv_to_uint(double x)
{
    if (x < 0 || x != x) return (uint64_t)clv_to_int(x);
    return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/* ---- loads ------------------------------------------------------------------------------------- */

#define EACH(type, value)                              \
    do {                                               \
        type *d = to;                                  \
        for (size_t i = 0; i < count; ++i) {           \
            const source v = s[(ptrdiff_t)i * stride]; \
            d[i] = (type)(value);                      \
        }                                              \
    } while (0)

/* Loads elements of type T. AS_INT, AS_UINT, AS_REAL and AS_COMPLEX turn an element `v` into a number of each kind. */
#define LOADER(name, T, AS_INT, AS_UINT, AS_REAL, AS_COMPLEX)                         \
    static void load_##name(clv_number_kind kind, const void *from, ptrdiff_t stride, \
                            size_t count, void *to)                                   \
    {                                                                                 \
        typedef T source;                                                             \
        const source *s = from;                                                       \
        switch (kind) {                                                               \
        case KIND_INT:                                                                \
            EACH(int64_t, AS_INT);                                                    \
            break;                                                                    \
        case KIND_UINT:                                                               \
            EACH(uint64_t, AS_UINT);                                                  \
            break;                                                                    \
        case KIND_FLOAT:                                                              \
            EACH(float, AS_REAL);                                                     \
            break;                                                                    \
        case KIND_DOUBLE:                                                             \
            EACH(double, AS_REAL);                                                    \
            break;                                                                    \
        case KIND_COMPLEX:                                                            \
            EACH(double complex, AS_COMPLEX);                                         \
            break;                                                                    \
        }                                                                             \
    }
#define WHOLE_LOADER(name, T) LOADER(name, T, v, v, v, (double)v)
WHOLE_LOADER(i8, int8_t)
WHOLE_LOADER(i16, int16_t)
WHOLE_LOADER(i32, int32_t)
WHOLE_LOADER(i64, int64_t)
WHOLE_LOADER(u8, uint8_t)
WHOLE_LOADER(u16, uint16_t)
WHOLE_LOADER(u32, uint32_t)
WHOLE_LOADER(u64, uint64_t)
LOADER(f32, float, clv_to_int((double)v), clv_to_uint((double)v), v, (double)v)
LOADER(f64, double, clv_to_int(v), clv_to_uint(v), v, v)
LOADER(f16, uint16_t, clv_to_int((double)clv_half_to_float(v)),
       clv_to_uint((double)clv_half_to_float(v)), clv_half_to_float(v),
       (double)clv_half_to_float(v))
LOADER(c64, float complex, clv_to_int((double)crealf(v)), clv_to_uint((double)crealf(v)), crealf(v),
       v)
LOADER(c128, double complex, clv_to_int(creal(v)), clv_to_uint(creal(v)), creal(v), v)

void clv_apply_load(clv_dtype type, clv_number_kind kind, const void *from, ptrdiff_t stride,
                    size_t count, void *to)
{
    static void (*const loaders[CLV_DTYPES])(clv_number_kind, const void *, ptrdiff_t, size_t,
                                             void *) = {
        [CLV_F32] = load_f32, [CLV_BOOL] = load_u8,  [CLV_I8] = load_i8,   [CLV_I16] = load_i16,
        [CLV_I32] = load_i32, [CLV_I64] = load_i64,  [CLV_U8] = load_u8,   [CLV_U16] = load_u16,
        [CLV_U32] = load_u32, [CLV_U64] = load_u64,  [CLV_F16] = load_f16, [CLV_F64] = load_f64,
        [CLV_C64] = load_c64, [CLV_C128] = load_c128
    };
    loaders[type](kind, from, stride, count, to);
}

/* ---- stores ------------------------------------------------------------------------------------ */

#define PUT(type, value)                                \
    do {                                                \
        const type *s = from;                           \
        for (size_t i = 0; i < count; ++i) {            \
            const type v = s[i];                        \
            d[(ptrdiff_t)i * stride] = (target)(value); \
        }                                               \
    } while (0)

#define STORER(name, T, OF_WHOLE, OF_FLOAT, OF_DOUBLE, OF_COMPLEX)                           \
    static void store_##name(clv_number_kind kind, const void *from, size_t count, void *to, \
                             ptrdiff_t stride)                                               \
    {                                                                                        \
        typedef T target;                                                                    \
        target *d = to;                                                                      \
        switch (kind) {                                                                      \
        case KIND_INT:                                                                       \
            PUT(int64_t, OF_WHOLE);                                                          \
            break;                                                                           \
        case KIND_UINT:                                                                      \
            PUT(uint64_t, OF_WHOLE);                                                         \
            break;                                                                           \
        case KIND_FLOAT:                                                                     \
            PUT(float, OF_FLOAT);                                                            \
            break;                                                                           \
        case KIND_DOUBLE:                                                                    \
            PUT(double, OF_DOUBLE);                                                          \
            break;                                                                           \
        case KIND_COMPLEX:                                                                   \
            PUT(double complex, OF_COMPLEX);                                                 \
            break;                                                                           \
        }                                                                                    \
    }
#define INT_STORER(name, T) \
    STORER(name, T, v, clv_to_int((double)v), clv_to_int(v), clv_to_int(creal(v)))
#define UINT_STORER(name, T) \
    STORER(name, T, v, clv_to_uint((double)v), clv_to_uint(v), clv_to_uint(creal(v)))
INT_STORER(i8, int8_t)
INT_STORER(i16, int16_t)
INT_STORER(i32, int32_t)
INT_STORER(i64, int64_t)
UINT_STORER(u8, uint8_t)
UINT_STORER(u16, uint16_t)
UINT_STORER(u32, uint32_t)
UINT_STORER(u64, uint64_t)
STORER(bool, uint8_t, v != 0, v != 0, v != 0, v != 0)
STORER(f32, float, v, v, v, creal(v))
STORER(f64, double, v, v, v, creal(v))
STORER(f16, uint16_t, clv_half_of((float)v), clv_half_of(v), clv_half_of((float)v),
       clv_half_of((float)creal(v)))
STORER(c64, float complex, (float)v, v, (float)v, v)
STORER(c128, double complex, (double)v, (double)v, v, v)

void clv_apply_store(clv_number_kind kind, clv_dtype type, const void *from, size_t count, void *to,
                     ptrdiff_t stride)
{
    static void (*const storers[CLV_DTYPES])(
        clv_number_kind, const void *, size_t, void *,
        ptrdiff_t) = { [CLV_F32] = store_f32, [CLV_BOOL] = store_bool, [CLV_I8] = store_i8,
                       [CLV_I16] = store_i16, [CLV_I32] = store_i32,   [CLV_I64] = store_i64,
                       [CLV_U8] = store_u8,   [CLV_U16] = store_u16,   [CLV_U32] = store_u32,
                       [CLV_U64] = store_u64, [CLV_F16] = store_f16,   [CLV_F64] = store_f64,
                       [CLV_C64] = store_c64, [CLV_C128] = store_c128 };
    storers[type](kind, from, count, to, stride);
}
