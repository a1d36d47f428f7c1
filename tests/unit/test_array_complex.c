/* SPDX-License-Identifier: Apache-2.0 */
/* What plain C computes of every pair of complex edge values: each operation agrees with a formula in long double. */
#include "test.h"

#include "base/alloc.h"
#include "host/array/apply.h"
#include "host/array/complex.h"
#include "host/array/ops.h"

#include <float.h>
#include <math.h>

typedef long double real;
typedef long double complex wide;

typedef enum class { SAME, TRUTH, FLOAT, PART } class;
#define CLASS_OF(NAME, name, inputs, kind, ...) [CLV_OP_##NAME] = kind,
static const class class_of[CLV_OPS] = { CLV_OPS_DO(CLASS_OF) };

/* On both sides of the cuts of the functions, near and far from zero, and with parts that are not finite. */
static const double values[][2] = {
    { 0, 0 },         { -0.0, 0 },      { 0, -0.0 },     { 1, 0 },      { -1, 0 },
    { 0, 1 },         { 0, -1 },        { 0.5, -0.5 },   { 2, 0.0 },    { 2, -0.0 },
    { -2, 0.0 },      { -2, -0.0 },     { 0.25, 2 },     { -0.25, -2 }, { 1e-9, -2e-9 },
    { -1e-9, 1e-12 }, { 1.5, 2.5 },     { -2.5, 3.5 },   { 300, -20 },  { 12345.5, 6789 },
    { INFINITY, 0 },  { -INFINITY, 1 }, { 0, INFINITY }, { NAN, 0 },    { 0, NAN },
    { 0.25, -0.0 },   { -0.25, 0.0 },
};

static wide of(real re, real im)
{
    const union {
        real parts[2];
        wide whole;
    } both = { { re, im } };
    return both.whole;
}

static wide over(wide x, real by)
{
    return of(creall(x) / by, cimagl(x) / by);
}

/* x + s x^2 + t x^3, where it is exact enough. */
static bool by_series(wide x, real s, real t, wide *sum)
{
    if (!(cabsl(x) < 1e-6L)) return false;
    const wide square = x * x, rest = s * square + t * square * x;
    *sum = of(creall(x) + creall(rest), cimagl(x) + cimagl(rest));
    return true;
}

static wide log_1p(wide x)
{
    wide sum;
    return by_series(x, -0.5L, 1 / 3.0L, &sum) ? sum : clogl(of(1 + creall(x), cimagl(x)));
}

static wide exp_m1(wide x)
{
    wide sum;
    if (by_series(x, 0.5L, 1 / 6.0L, &sum)) return sum;
    const wide whole = cexpl(x);
    return of(creall(whole) - 1, cimagl(whole));
}

static real half_to_even(real x)
{
    return isfinite(x) ? copysignl(x - remainderl(x, 1), x) : x;
}

/* *known becomes false if the operation has no meaning for complex numbers. */
static wide of_complex(clv_op op, wide x, wide y, wide z, bool *known)
{
    const real re = creall(x), im = cimagl(x);
    const bool equal = re == creall(y) && im == cimagl(y);
    const int x_true = re == 0 && im == 0 ? 0 : 1,
              y_true = creall(y) == 0 && cimagl(y) == 0 ? 0 : 1;
    switch (op) {
    case CLV_OP_COPY:
        return x;
    case CLV_OP_ADD:
        return of(re + creall(y), im + cimagl(y));
    case CLV_OP_SUBTRACT:
        return of(re - creall(y), im - cimagl(y));
    case CLV_OP_MULTIPLY:
        return x * y;
    case CLV_OP_DIVIDE:
        return x / y;
    case CLV_OP_POW:
        return cpowl(x, y);
    case CLV_OP_EQUAL:
        return equal;
    case CLV_OP_NOT_EQUAL:
        return !equal;
    case CLV_OP_LOGICAL_AND:
        return x_true + y_true == 2;
    case CLV_OP_LOGICAL_OR:
        return x_true + y_true > 0;
    case CLV_OP_LOGICAL_XOR:
        return x_true + y_true == 1;
    case CLV_OP_LOGICAL_NOT:
        return 1 - x_true;
    case CLV_OP_NEGATE:
        return of(-re, -im);
    case CLV_OP_ABS:
        return hypotl(re, im);
    case CLV_OP_SIGN:
        return x_true ? over(x, hypotl(re, im)) : 0;
    case CLV_OP_SQUARE:
        return x * x;
    case CLV_OP_RECIPROCAL:
        return 1 / x;
    case CLV_OP_SQRT:
        return csqrtl(x);
    case CLV_OP_EXP:
        return cexpl(x);
    case CLV_OP_EXPM1:
        return exp_m1(x);
    case CLV_OP_LOG:
        return clogl(x);
    case CLV_OP_LOG2:
        return over(clogl(x), logl(2));
    case CLV_OP_LOG10:
        return over(clogl(x), logl(10));
    case CLV_OP_LOG1P:
        return log_1p(x);
    case CLV_OP_SIN:
        return csinl(x);
    case CLV_OP_COS:
        return ccosl(x);
    case CLV_OP_TAN:
        return ctanl(x);
    case CLV_OP_ASIN:
        return casinl(x);
    case CLV_OP_ACOS:
        return cacosl(x);
    case CLV_OP_ATAN:
        return catanl(x);
    case CLV_OP_SINH:
        return csinhl(x);
    case CLV_OP_COSH:
        return ccoshl(x);
    case CLV_OP_TANH:
        return ctanhl(x);
    case CLV_OP_ASINH:
        return casinhl(x);
    case CLV_OP_ACOSH:
        return cacoshl(x);
    case CLV_OP_ATANH:
        return catanhl(x);
    case CLV_OP_ROUND:
        return of(half_to_even(re), half_to_even(im));
    case CLV_OP_ISNAN:
        return isunordered(re, im);
    case CLV_OP_ISINF:
        return fabsl(re) > LDBL_MAX || fabsl(im) > LDBL_MAX;
    case CLV_OP_ISFINITE:
        return fabsl(re) <= LDBL_MAX && fabsl(im) <= LDBL_MAX;
    case CLV_OP_CONJ:
        return of(re, -im);
    case CLV_OP_REAL:
        return re;
    case CLV_OP_IMAG:
        return im;
    case CLV_OP_WHERE:
        return x_true ? y : z;
    default:
        *known = false;
        return 0;
    }
}

/* Within a few units in the last place of the size, for powers multiplied by the size of the logarithm. C leaves open
 * which parts of a result that is not finite are NaN and which are infinite. */
static bool is_near(wide want, real logarithm, double complex got)
{
    const double re = (double)creall(want), im = (double)cimagl(want); /* may become infinite */
    if (!isfinite(re) || !isfinite(im)) return !isfinite(creal(got)) || !isfinite(cimag(got));
    return cabsl(of(creal(got) - creall(want), cimag(got) - cimagl(want))) <=
           16 * DBL_EPSILON * (1 + (isfinite(logarithm) ? logarithm : 0)) * cabsl(want) + DBL_MIN;
}

static void try_operation(clv_op op)
{
    enum { SIDE = CLV_LEN(values), COUNT = SIDE * SIDE };
    static double complex x[COUNT], y[COUNT], z[COUNT], out[COUNT], got[COUNT];
    const bool known = clv_op_text(op, CLV_C128) != NULL;
    const clv_number_kind kind = class_of[op] == TRUTH  ? KIND_UINT
                                 : class_of[op] == PART ? KIND_DOUBLE
                                                        : KIND_COMPLEX;
    for (size_t i = 0; i < COUNT; ++i) {
        x[i] = clv_complex(values[i / SIDE][0], values[i / SIDE][1]);
        y[i] = clv_complex(values[i % SIDE][0], values[i % SIDE][1]);
        z[i] = clv_complex((double)i + 1000, -1);
    }
    if (known) clv_apply_block(op, KIND_COMPLEX, x, y, z, 0, COUNT, out);
    clv_apply_store(kind, CLV_C128, out, COUNT, got, 1);
    for (size_t i = 0; i < COUNT; ++i) {
        bool expected = true;
        const wide want = of_complex(op, x[i], y[i], z[i], &expected);
        assert_int_equal(expected, known);
        const real logarithm = op == CLV_OP_POW && x[i] != 0 ? cabsl(y[i] * clogl(x[i])) : 0;
        if (known && !is_near(want, logarithm, got[i]))
            fail_msg("%s of %g %+gi, %g %+gi: %.17g %+.17gi, expected %.17Lg %+.17Lgi",
                     clv_op_name(op), creal(x[i]), cimag(x[i]), creal(y[i]), cimag(y[i]),
                     creal(got[i]), cimag(got[i]), creall(want), cimagl(want));
    }
}

static void complex_numbers_are_right(void **state)
{
    (void)state;
    for (int op = 0; op < CLV_OPS; ++op)
        try_operation((clv_op)op);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(complex_numbers_are_right) };
    return cmocka_run_group_tests_name("array_complex", tests, NULL, NULL);
}
