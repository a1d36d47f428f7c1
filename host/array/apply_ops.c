/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the operations of ops.h as loops over blocks, for the five kinds of numbers in which the host computes. */
#include "host/array/apply.h"
#include "host/array/complex.h"
#include "host/array/ops.h"

#include <math.h>
#include <tgmath.h>

/* The type of NONE tells when a program is compiled that an operation has no meaning for a kind of numbers, so that no
 * code is made for it. */
#define NONE ((struct none *)NULL)
#define IS_GIVEN(value) _Generic((value), struct none * : false, default : true)
#define VALUE(value) _Generic((value), struct none * : 0, default : (value))

/* ---- integers: results wrap -------------------------------------------------------------------- */

#define int_add(x, y) ((uint64_t)(x) + (uint64_t)(y))
#define int_subtract(x, y) ((uint64_t)(x) - (uint64_t)(y))
#define int_multiply(x, y) ((uint64_t)(x) * (uint64_t)(y))
#define BY_SIGN(x, function) _Generic((x), int64_t : function##_i, uint64_t : function##_u)
#define int_floor_divide(x, y) BY_SIGN(x, floor_divide)(x, y)
#define int_remainder(x, y) BY_SIGN(x, remainder)(x, y)
#define int_abs(x) BY_SIGN(x, abs)(x)
#define int_pow(x, y) BY_SIGN(x, pow)(x, y)
#define int_shift_left(x, y) ((uint64_t)(y) < 64 ? (uint64_t)(x) << (y) : 0)
#define int_shift_right(x, y) BY_SIGN(x, shift_right)(x, y)

static int64_t floor_divide_i(int64_t x, int64_t y)
{
    if (!y) return 0;
    /* dividing the least int64 by -1 would overflow */
    if (y == -1) return (int64_t)int_subtract(0, x);
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static uint64_t floor_divide_u(uint64_t x, uint64_t y)
{
    return y ? x / y : 0;
}

static int64_t remainder_i(int64_t x, int64_t y)
{
    if (!y || y == -1) return 0;
    const int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static uint64_t remainder_u(uint64_t x, uint64_t y)
{
    return y ? x % y : 0;
}

static int64_t abs_i(int64_t x)
{
    return x < 0 ? (int64_t)int_subtract(0, x) : x;
}

static uint64_t abs_u(uint64_t x)
{
    return x;
}

static uint64_t pow_u(uint64_t x, uint64_t y)
{
    uint64_t result = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) result *= x;
    return result;
}

static int64_t pow_i(int64_t x, int64_t y)
{
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    return (int64_t)pow_u((uint64_t)x, (uint64_t)y);
}

static int64_t shift_right_i(int64_t x, int64_t y)
{
    return (uint64_t)y < 64 ? x >> y : x >> 63;
}

static uint64_t shift_right_u(uint64_t x, uint64_t y)
{
    return y < 64 ? x >> y : 0;
}

/* ---- reals --------------------------------------------------------------------------------------- */

#define REALS(T, suffix)                                                                        \
    static T remainder_##suffix(T x, T y)                                                       \
    {                                                                                           \
        const T r = fmod(x, y);                                                                 \
        if (r == 0) return copysign(r, y);                                                      \
        return (r < 0) != (y < 0) ? r + y : r;                                                  \
    }                                                                                           \
    static T floor_divide_##suffix(T x, T y)                                                    \
    {                                                                                           \
        if (y == 0) return x / y;                                                               \
        const T r = fmod(x, y), whole = (x - r) / y - (r != 0 && (r < 0) != (y < 0) ? 1 : 0);   \
        if (whole == 0) return copysign((T)0, x / y);                                           \
        const T below = floor(whole);                                                           \
        return whole - below > (T)0.5 ? below + 1 : below;                                      \
    }                                                                                           \
    static T logaddexp_##suffix(T x, T y)                                                       \
    {                                                                                           \
        if (x == y) return x + log((T)2);                                                       \
        const T apart = x - y;                                                                  \
        return apart > 0 ? x + log1p(exp(-apart)) : apart <= 0 ? y + log1p(exp(apart)) : apart; \
    }
REALS(float, f)
REALS(double, d)
#define BY_SIZE(x, function) _Generic((x), float : function##_f, double : function##_d)
#define real_remainder(x, y) BY_SIZE(x, remainder)(x, y)
#define real_floor_divide(x, y) BY_SIZE(x, floor_divide)(x, y)
#define real_logaddexp(x, y) BY_SIZE(x, logaddexp)(x, y)

/* ---- complex numbers ----------------------------------------------------------------------------- */

#define c_of(re, im) clv_complex(re, im)
#define c_re(x) creal(x)
#define c_im(x) cimag(x)
#define c_abs(x) cabs(x)
#define c_multiply(x, y) ((x) * (y))
#define c_divide(x, y) ((x) / (y))
#define HOST_cpow(x, y) cpow(x, y)
#define c_equal(x, y) ((x) == (y))
#define c_true(x) ((x) != 0)
#define HOST_csqrt(x) csqrt(x)
#define HOST_cexp(x) cexp(x)
#define HOST_clog(x) clog(x)
#define HOST_csin(x) csin(x)
#define HOST_ccos(x) ccos(x)
#define HOST_ctan(x) ctan(x)
#define HOST_casin(x) casin(x)
#define HOST_cacos(x) cacos(x)
#define HOST_catan(x) catan(x)
#define HOST_csinh(x) csinh(x)
#define HOST_ccosh(x) ccosh(x)
#define HOST_ctanh(x) ctanh(x)
#define HOST_casinh(x) casinh(x)
#define HOST_cacosh(x) cacosh(x)
#define HOST_catanh(x) catanh(x)

static double complex HOST_clog2(double complex x)
{
    const double complex l = clog(x);
    return clv_complex(creal(l) * 1.4426950408889634074, cimag(l) * 1.4426950408889634074);
}

static double complex HOST_clog10(double complex x)
{
    const double complex l = clog(x);
    return clv_complex(creal(l) * 0.43429448190325182765, cimag(l) * 0.43429448190325182765);
}

/* Computes log(1 + x) without loss of digits for small x: |1 + x|^2 - 1 = re (2 + re) + im^2. */
static double complex HOST_clog1p(double complex x)
{
    const double re = creal(x), im = cimag(x);
    if (!(fabs(re) < 0.5 && fabs(im) < 0.5)) return clog(clv_complex(1 + re, im));
    return clv_complex(0.5 * log1p(re * (2 + re) + im * im), atan2(im, 1 + re));
}

/* Computes exp(x) - 1 without loss of digits: its real part is expm1(re) cos(im) - 2 sin(im/2)^2. */
static double complex HOST_cexpm1(double complex x)
{
    const double re = creal(x), im = cimag(x), half = sin(0.5 * im);
    return clv_complex(expm1(re) * cos(im) - 2 * half * half, im == 0 ? im : exp(re) * sin(im));
}

static double complex c_sign(double complex x)
{
    const double size = cabs(x);
    return size == 0 ? clv_complex(0, 0) : clv_complex(creal(x) / size, cimag(x) / size);
}

/* ---- loops --------------------------------------------------------------------------------------- */

#define TYPE_SAME(T) T
#define TYPE_TRUTH(T) uint64_t
#define TYPE_FLOAT(T) T
#define TYPE_PART(T) T
#define TYPE_C_SAME double complex
#define TYPE_C_TRUTH uint64_t
#define TYPE_C_FLOAT double complex
#define TYPE_C_PART double
/* C's isinf and signbit may return any number for true, but whoever computes with a truth expects 1. */
#define AS_SAME(value) (value)
#define AS_TRUTH(value) ((value) != 0)
#define AS_FLOAT(value) (value)
#define AS_PART(value) (value)

#define PLACE ((number)(place + i))
#define LOOP(KIND, T, R, AS, value)                                         \
    {                                                                       \
        typedef T number;                                                   \
        number x = 0, y = 0, z = 0;                                         \
        size_t i = 0;                                                       \
        (void)x, (void)y, (void)z, (void)i;                                 \
        if (IS_GIVEN(value) && kind == (KIND)) {                            \
            const number *a = px, *b = py, *c = pz;                         \
            R *out = to;                                                    \
            for (; i < count; ++i)                                          \
                x = a[i], y = b[i], z = c[i], out[i] = (R)AS(VALUE(value)); \
        }                                                                   \
    }

#define FUNCTION(NAME, name, inputs, class, integers, reals, complexes)                         \
    static void do_##name(clv_number_kind kind, const void *px, const void *py, const void *pz, \
                          size_t place, size_t count, void *to)                                 \
    {                                                                                           \
        (void)place;                                                                            \
        LOOP(KIND_INT, int64_t, TYPE_##class(int64_t), AS_##class, integers)                    \
        LOOP(KIND_UINT, uint64_t, TYPE_##class(uint64_t), AS_##class, integers)                 \
        LOOP(KIND_FLOAT, float, TYPE_##class(float), AS_##class, reals)                         \
        LOOP(KIND_DOUBLE, double, TYPE_##class(double), AS_##class, reals)                      \
        LOOP(KIND_COMPLEX, double complex, TYPE_C_##class, AS_##class, complexes)               \
    }
/* the macros compare unsigned numbers with zero, which is intended */
#pragma GCC diagnostic ignored "-Wtype-limits"
CLV_OPS_DO(FUNCTION)

#define ENTRY(NAME, name, ...) [CLV_OP_##NAME] = do_##name,

void clv_apply_block(clv_op op, clv_number_kind kind, const void *x, const void *y, const void *z,
                     size_t place, size_t count, void *out)
{
    static void (*const functions[CLV_OPS])(clv_number_kind, const void *, const void *,
                                            const void *, size_t, size_t,
                                            void *) = { CLV_OPS_DO(ENTRY) };
    functions[op](kind, x, y, z, place, count, out);
}
