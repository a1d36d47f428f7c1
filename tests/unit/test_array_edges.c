/* SPDX-License-Identifier: Apache-2.0 */
/* What plain C computes of every pair of edge values, as integers and as real numbers: each operation agrees with a
 * formula of its own here, which uses wider numbers (128-bit integers, long double). */
#include "test.h"

#include "base/alloc.h"
#include "host/array/apply.h"
#include "host/array/ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wrapping;
typedef long double real;

enum { PLACE = 3 };
typedef enum class { SAME, TRUTH, FLOAT, PART } class;
#define CLASS_OF(NAME, name, inputs, kind, ...) [CLV_OP_##NAME] = kind,
static const class class_of[CLV_OPS] = { CLV_OPS_DO(CLASS_OF) };

/* ---- integers ------------------------------------------------------------------------------------ */

static const int64_t integers[] = {
    0,  1,  -1, 2,  -2,  3,          -3,           7,         -7,        10,
    62, 63, 64, 65, -64, 3037000500, -12345678901, INT64_MAX, INT64_MIN, INT64_MIN + 1
};

/* The greatest whole number that is not above x / y. */
static wide below(wide x, wide y)
{
    if (y < 0) return below(-x, -y);
    return x >= 0 ? x / y : -((-x + y - 1) / y);
}

/* Powers wrap as 64-bit numbers do, and negative powers are cut to whole numbers. */
static wide whole_power(wide x, wide y)
{
    uint64_t power = 1;
    if (y < 0) return x == 1 || x == -1 ? whole_power(x, -y) : 0;
    for (int bit = 63; bit >= 0; --bit) {
        power *= power;
        if (y >> bit & 1) power *= (uint64_t)x;
    }
    return (wide)power;
}

/* Combines the bits of two numbers by a table of truth: bit 2 a + b of it is the result of the bits a and b. */
static wide bits_by(unsigned truth, uint64_t x, uint64_t y)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 64; ++i)
        result |= (uint64_t)(truth >> (2 * (x >> i & 1) + (y >> i & 1)) & 1) << i;
    return (wide)result;
}

/* *known becomes false if the operation has no meaning for integers. */
static wide of_integers(clv_op op, wide x, wide y, wide z, wide place, bool *known)
{
    const wide least = x - y < 0 ? x : y, greatest = x - y < 0 ? y : x;
    switch (op) {
    case CLV_OP_COPY:
    case CLV_OP_FLOOR:
    case CLV_OP_CEIL:
    case CLV_OP_TRUNC:
    case CLV_OP_ROUND:
    case CLV_OP_CONJ:
    case CLV_OP_REAL:
        return x;
    case CLV_OP_IMAG:
    case CLV_OP_ISNAN:
    case CLV_OP_ISINF:
        return 0;
    case CLV_OP_ISFINITE:
        return 1;
    case CLV_OP_SIGNBIT:
        return -x > 0;
    case CLV_OP_ADD:
        return x + y;
    case CLV_OP_SUBTRACT:
        return x - y;
    case CLV_OP_MULTIPLY:
        return (wide)((wrapping)x * (wrapping)y);
    case CLV_OP_SQUARE:
        return (wide)((wrapping)x * (wrapping)x);
    case CLV_OP_NEGATE:
        return -x;
    case CLV_OP_ABS:
        return x < 0 ? -x : x;
    case CLV_OP_SIGN:
        return x == 0 ? 0 : x < 0 ? -1 : 1;
    case CLV_OP_FLOOR_DIVIDE:
        return y == 0 ? 0 : below(x, y);
    case CLV_OP_REMAINDER:
        return y == 0 ? 0 : x - y * below(x, y);
    case CLV_OP_POW:
        return whole_power(x, y);
    case CLV_OP_EQUAL:
        return !(x ^ y);
    case CLV_OP_NOT_EQUAL:
        return !!(x ^ y);
    case CLV_OP_LESS:
        return x - y < 0;
    case CLV_OP_LESS_EQUAL:
        return x - y < 1;
    case CLV_OP_GREATER:
        return x - y > 0;
    case CLV_OP_GREATER_EQUAL:
        return x - y > -1;
    case CLV_OP_LOGICAL_AND:
        return (x != 0) * (y != 0);
    case CLV_OP_LOGICAL_OR:
        return (x != 0) + (y != 0) > 0;
    case CLV_OP_LOGICAL_XOR:
        return (x != 0) + (y != 0) == 1;
    case CLV_OP_LOGICAL_NOT:
        return x == 0;
    case CLV_OP_BIT_AND:
        return bits_by(8, (uint64_t)x, (uint64_t)y);
    case CLV_OP_BIT_OR:
        return bits_by(14, (uint64_t)x, (uint64_t)y);
    case CLV_OP_BIT_XOR:
        return bits_by(6, (uint64_t)x, (uint64_t)y);
    case CLV_OP_BIT_NOT:
        return -x - 1;
    case CLV_OP_SHIFT_LEFT:
        return y < 0 || y > 63 ? 0 : (wide)((wrapping)x << y);
    case CLV_OP_SHIFT_RIGHT:
        return y < 0 || y > 63 ? -(x < 0) : below(x, (wide)1 << y);
    case CLV_OP_MINIMUM:
    case CLV_OP_FMIN:
        return least;
    case CLV_OP_MAXIMUM:
    case CLV_OP_FMAX:
        return greatest;
    case CLV_OP_WHERE:
        return x == 0 ? z : y;
    case CLV_OP_RAMP:
        return x + y * place;
    default:
        *known = false;
        return 0;
    }
}

static void try_integers(clv_op op, clv_number_kind kind)
{
    enum { SIDE = CLV_LEN(integers) };
    static uint64_t x[SIDE * SIDE], y[SIDE * SIDE], z[SIDE * SIDE], got[SIDE * SIDE];
    const bool known = clv_op_text(op, clv_kind_type(kind)) != NULL;
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        x[i] = (uint64_t)integers[i / SIDE], y[i] = (uint64_t)integers[i % SIDE], z[i] = 1000 + i;
    if (known) clv_apply_block(op, kind, x, y, z, PLACE, SIDE * SIDE, got);
    for (size_t i = 0; i < SIDE * SIDE; ++i) {
        const bool is_signed = kind == KIND_INT;
        const wide a = is_signed ? (wide)(int64_t)x[i] : (wide)x[i],
                   b = is_signed ? (wide)(int64_t)y[i] : (wide)y[i];
        bool expected = true;
        const wide want = of_integers(op, a, b, (wide)z[i], (wide)(PLACE + i), &expected);
        assert_int_equal(expected, known);
        if (known && got[i] != (uint64_t)want)
            fail_msg("%s of %s integers %lld, %lld: %lld, expected %lld", clv_op_name(op),
                     is_signed ? "signed" : "unsigned", (long long)x[i], (long long)y[i],
                     (long long)got[i], (long long)want);
    }
}

static void integers_are_right(void **state)
{
    (void)state;
    for (int op = 0; op < CLV_OPS; ++op) {
        try_integers((clv_op)op, KIND_INT);
        try_integers((clv_op)op, KIND_UINT);
    }
}

/* ---- real numbers -------------------------------------------------------------------------------- */

/* Limits of float and double, halves, fractions that are not binary, infinities and NaN. */
static const double reals[] = {
    0,       -0.0,      1,        -1,        0.5,     -0.5,     1.5,     2.5,
    -2.5,    3,         -3,       0.1,       -0.1,    1e-30,    -7.25,   100.75,
    -1e4,    8388609,   FLT_MAX,  -FLT_MAX,  FLT_MIN, 0x1p-149, DBL_MAX, -DBL_MAX,
    DBL_MIN, 0x1p-1074, INFINITY, -INFINITY, NAN,
};

/* The neighbour of x in the direction of y, by the bits of a float or a double. */
static real neighbour(clv_number_kind kind, real x, real y)
{
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return y;
    const bool away = x == 0 || (x < y) == (x > 0);
    const real towards = x == 0 ? y : x;
    if (kind == KIND_FLOAT) {
        const float size = (float)fabsl(x);
        uint32_t bits;
        float moved;
        memcpy(&bits, &size, sizeof bits);
        bits += away ? 1 : UINT32_MAX;
        memcpy(&moved, &bits, sizeof moved);
        return copysignl(moved, towards);
    }
    const double size = (double)fabsl(x);
    uint64_t bits;
    double moved;
    memcpy(&bits, &size, sizeof bits);
    bits += away ? 1 : UINT64_MAX;
    memcpy(&moved, &bits, sizeof moved);
    return copysignl(moved, towards);
}

static real whole_below(real x)
{
    if (!isfinite(x)) return x;
    const real part = fmodl(x, 1), whole = x - part - (part < 0);
    return whole == 0 ? copysignl(0, x) : whole;
}

/* x - y floor(x / y), with the sign of y. */
static real rest(real x, real y)
{
    const real nearest = remainderl(x, y);
    return nearest == 0 ? copysignl(0, y) : (nearest < 0) == (y < 0) ? nearest : nearest + y;
}

static real floor_of_quotient(real x, real y)
{
    if (isinf(x) && y != 0) return NAN; /* its remainder is no number */
    const real quotient = x / y;
    if (quotient == 0 && x != 0 && signbit(quotient)) return -1;
    return whole_below(quotient);
}

static real log_of_sum(real x, real y)
{
    const real large = x > y ? x : y;
    if (isnan(x) || isnan(y)) return NAN;
    if (fabsl(large) < 11000) return logl(expl(x) + expl(y)); /* exp does not overflow */
    return x == y ? x + logl(2) : large;
}

static real of_reals(clv_op op, clv_number_kind kind, real x, real y, real z, real place,
                     bool *known)
{
    switch (op) {
    case CLV_OP_COPY:
    case CLV_OP_CONJ:
    case CLV_OP_REAL:
        return x;
    case CLV_OP_IMAG:
        return 0;
    case CLV_OP_ADD:
        return x - -y;
    case CLV_OP_SUBTRACT:
        return x + -y;
    case CLV_OP_MULTIPLY:
        return x * y;
    case CLV_OP_SQUARE:
        return x * x;
    case CLV_OP_DIVIDE:
        return x / y;
    case CLV_OP_RECIPROCAL:
        return 1 / x;
    case CLV_OP_FLOOR_DIVIDE:
        return floor_of_quotient(x, y);
    case CLV_OP_REMAINDER:
        return rest(x, y);
    case CLV_OP_POW:
        return powl(x, y);
    case CLV_OP_EQUAL:
        return !(islessgreater(x, y) || isunordered(x, y));
    case CLV_OP_NOT_EQUAL:
        return islessgreater(x, y) || isunordered(x, y);
    case CLV_OP_LESS:
        return isless(x, y);
    case CLV_OP_LESS_EQUAL:
        return islessequal(x, y);
    case CLV_OP_GREATER:
        return isgreater(x, y);
    case CLV_OP_GREATER_EQUAL:
        return isgreaterequal(x, y);
    case CLV_OP_LOGICAL_AND:
        return (x != 0) * (y != 0);
    case CLV_OP_LOGICAL_OR:
        return (x != 0) + (y != 0) > 0;
    case CLV_OP_LOGICAL_XOR:
        return (x != 0) + (y != 0) == 1;
    case CLV_OP_LOGICAL_NOT:
        return x == 0;
    case CLV_OP_MINIMUM:
        return isunordered(x, y) ? NAN : isless(y, x) ? y : x;
    case CLV_OP_MAXIMUM:
        return isunordered(x, y) ? NAN : isless(x, y) ? y : x;
    case CLV_OP_FMIN:
        return isnan(x) || isless(y, x) ? y : x;
    case CLV_OP_FMAX:
        return isnan(x) || isless(x, y) ? y : x;
    case CLV_OP_ATAN2:
        return atan2l(x, y);
    case CLV_OP_HYPOT:
        return hypotl(x, y);
    case CLV_OP_COPYSIGN:
        return signbit(y) ? -fabsl(x) : fabsl(x);
    case CLV_OP_NEXTAFTER:
        return neighbour(kind, x, y);
    case CLV_OP_LOGADDEXP:
        return log_of_sum(x, y);
    case CLV_OP_NEGATE:
        return copysignl(x, signbit(x) ? 1 : -1);
    case CLV_OP_ABS:
        return copysignl(x, 1);
    case CLV_OP_SIGN:
        return isnan(x) ? x : x == 0 ? 0 : copysignl(1, x);
    case CLV_OP_SQRT:
        return sqrtl(x);
    case CLV_OP_EXP:
        return expl(x);
    case CLV_OP_EXP2:
        return exp2l(x);
    case CLV_OP_EXPM1:
        return expm1l(x);
    case CLV_OP_LOG:
        return logl(x);
    case CLV_OP_LOG2:
        return log2l(x);
    case CLV_OP_LOG10:
        return log10l(x);
    case CLV_OP_LOG1P:
        return log1pl(x);
    case CLV_OP_SIN:
        return sinl(x);
    case CLV_OP_COS:
        return cosl(x);
    case CLV_OP_TAN:
        return tanl(x);
    case CLV_OP_ASIN:
        return asinl(x);
    case CLV_OP_ACOS:
        return acosl(x);
    case CLV_OP_ATAN:
        return atanl(x);
    case CLV_OP_SINH:
        return sinhl(x);
    case CLV_OP_COSH:
        return coshl(x);
    case CLV_OP_TANH:
        return tanhl(x);
    case CLV_OP_ASINH:
        return asinhl(x);
    case CLV_OP_ACOSH:
        return acoshl(x);
    case CLV_OP_ATANH:
        return atanhl(x);
    case CLV_OP_FLOOR:
        return whole_below(x);
    case CLV_OP_CEIL:
        return -whole_below(-x);
    case CLV_OP_TRUNC:
        return copysignl(whole_below(fabsl(x)), x);
    case CLV_OP_ROUND:
        return isfinite(x) ? copysignl(x - remainderl(x, 1), x) : x;
    case CLV_OP_ISNAN:
        return isunordered(x, x);
    case CLV_OP_ISINF:
        return fabsl(x) > LDBL_MAX;
    case CLV_OP_ISFINITE:
        return fabsl(x) <= LDBL_MAX;
    case CLV_OP_SIGNBIT:
        return copysignl(1, x) < 0;
    case CLV_OP_WHERE:
        return x == 0 ? z : y;
    case CLV_OP_RAMP:
        return x + y * place;
    default:
        *known = false;
        return 0;
    }
}

/* The size of the largest term that rounding may spoil. */
static real size_of(clv_op op, real x, real y, real place, real want)
{
    const real size = op == CLV_OP_RAMP        ? fabsl(x) + fabsl(y * place)
                      : op == CLV_OP_LOGADDEXP ? 1 + fabsl(x > y ? x : y)
                                               : 0;
    return isfinite(size) && size > fabsl(want) ? size : fabsl(want);
}

/* Within four units in the last place of `size`. Zeros have the right sign, unless either will do. */
static bool is_near(clv_op op, clv_number_kind kind, real want, real size, real got)
{
    const bool single = kind == KIND_FLOAT;
    const real last = single ? FLT_EPSILON : DBL_EPSILON, least = single ? 0x1p-149L : 0x1p-1074L;
    const double rounded = single ? (double)(float)want : (double)want;
    if (op == CLV_OP_RAMP && !isfinite(rounded))
        return !isfinite(got); /* its product may overflow */
    if (isnan(want)) return isnan(got);
    if (class_of[op] == TRUTH || isinf(rounded) || isinf(got)) return got == (real)rounded;
    if (want == 0 && got == 0)
        return (op >= CLV_OP_MINIMUM && op <= CLV_OP_FMAX) || !signbit(want) == !signbit(got);
    return fabsl(want - got) <= 4 * fmaxl(last / 2 * size, least);
}

static void try_reals(clv_op op, clv_number_kind kind)
{
    enum { SIDE = CLV_LEN(reals), COUNT = SIDE * SIDE };
    static double held[3][COUNT], in[3][COUNT], out[COUNT], got[COUNT];
    const bool known = clv_op_text(op, clv_kind_type(kind)) != NULL;
    for (size_t i = 0; i < COUNT; ++i)
        held[0][i] = reals[i / SIDE], held[1][i] = reals[i % SIDE], held[2][i] = (double)i + 1000;
    for (size_t k = 0; k < 3; ++k) {
        clv_apply_load(CLV_F64, kind, held[k], 1, COUNT, in[k]);
        clv_apply_store(kind, CLV_F64, in[k], COUNT, held[k], 1); /* as the kind rounds them */
    }
    if (known) clv_apply_block(op, kind, in[0], in[1], in[2], PLACE, COUNT, out);
    clv_apply_store(class_of[op] == TRUTH ? KIND_UINT : kind, CLV_F64, out, COUNT, got, 1);
    for (size_t i = 0; i < COUNT; ++i) {
        bool expected = true;
        const real x = held[0][i], y = held[1][i], place = (real)(PLACE + i);
        const real want = of_reals(op, kind, x, y, held[2][i], place, &expected);
        assert_int_equal(expected, known);
        if (known && !is_near(op, kind, want, size_of(op, x, y, place, want), got[i]))
            fail_msg("%s of %s numbers %.17g, %.17g: %.17g, expected %.20Lg", clv_op_name(op),
                     kind == KIND_FLOAT ? "single" : "double", held[0][i], held[1][i], got[i],
                     want);
    }
}

static void real_numbers_are_right(void **state)
{
    (void)state;
    for (int op = 0; op < CLV_OPS; ++op) {
        try_reals((clv_op)op, KIND_FLOAT);
        try_reals((clv_op)op, KIND_DOUBLE);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_right),
        cmocka_unit_test(real_numbers_are_right),
    };
    return cmocka_run_group_tests_name("array_edges", tests, NULL, NULL);
}
