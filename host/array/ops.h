/* SPDX-License-Identifier: Apache-2.0 */
/* Has the table of the operations that clv_array_apply computes. The texts of the last three columns are compiled
 * twice: by the C compiler for the host (apply_ops.c) and as part of kernels (apply_kernel.c). They use x, y and z of
 * one type, and functions that apply_ops.c and cl/array/apply.clh both define. NONE: the operation has no meaning for
 * the type. Functions whose names begin with HOST_ exist on the host only.
 *
 * Classes: SAME, the result has the operands' type; TRUTH, the result is bool; FLOAT, integers are computed as float64;
 * PART, complex operands have a real result. */
#ifndef CLEAVE_HOST_ARRAY_OPS_H
#define CLEAVE_HOST_ARRAY_OPS_H

/* OP(enumerator, name, operands, class, integers, reals, complex numbers) */
#define CLV_OPS_DO(OP)                                                                             \
    OP(COPY, copy, 1, SAME, x, x, x)                                                               \
    OP(ADD, add, 2, SAME, int_add(x, y), x + y, x + y)                                             \
    OP(SUBTRACT, subtract, 2, SAME, int_subtract(x, y), x - y, x - y)                              \
    OP(MULTIPLY, multiply, 2, SAME, int_multiply(x, y), x *y, c_multiply(x, y))                    \
    OP(DIVIDE, divide, 2, FLOAT, NONE, x / y, c_divide(x, y))                                      \
    OP(FLOOR_DIVIDE, floor_divide, 2, SAME, int_floor_divide(x, y), real_floor_divide(x, y), NONE) \
    OP(REMAINDER, remainder, 2, SAME, int_remainder(x, y), real_remainder(x, y), NONE)             \
    OP(POW, pow, 2, SAME, int_pow(x, y), pow(x, y), HOST_cpow(x, y))                               \
    OP(EQUAL, equal, 2, TRUTH, x == y, x == y, c_equal(x, y))                                      \
    OP(NOT_EQUAL, not_equal, 2, TRUTH, x != y, x != y, !c_equal(x, y))                             \
    OP(LESS, less, 2, TRUTH, x < y, x < y, NONE)                                                   \
    OP(LESS_EQUAL, less_equal, 2, TRUTH, x <= y, x <= y, NONE)                                     \
    OP(GREATER, greater, 2, TRUTH, x > y, x > y, NONE)                                             \
    OP(GREATER_EQUAL, greater_equal, 2, TRUTH, x >= y, x >= y, NONE)                               \
    OP(LOGICAL_AND, logical_and, 2, TRUTH, x &&y, x &&y, c_true(x) && c_true(y))                   \
    OP(LOGICAL_OR, logical_or, 2, TRUTH, x || y, x || y, c_true(x) || c_true(y))                   \
    OP(LOGICAL_XOR, logical_xor, 2, TRUTH, !x != !y, !x != !y, c_true(x) != c_true(y))             \
    OP(LOGICAL_NOT, logical_not, 1, TRUTH, !x, !x, !c_true(x))                                     \
    OP(BIT_AND, bit_and, 2, SAME, x &y, NONE, NONE)                                                \
    OP(BIT_OR, bit_or, 2, SAME, x | y, NONE, NONE)                                                 \
    OP(BIT_XOR, bit_xor, 2, SAME, x ^ y, NONE, NONE)                                               \
    OP(BIT_NOT, bit_not, 1, SAME, ~x, NONE, NONE)                                                  \
    OP(SHIFT_LEFT, shift_left, 2, SAME, int_shift_left(x, y), NONE, NONE)                          \
    OP(SHIFT_RIGHT, shift_right, 2, SAME, int_shift_right(x, y), NONE, NONE)                       \
    OP(MINIMUM, minimum, 2, SAME, y < x ? y : x, x != x || x < y ? x : y, NONE)                    \
    OP(MAXIMUM, maximum, 2, SAME, y > x ? y : x, x != x || x > y ? x : y, NONE)                    \
    OP(FMIN, fmin, 2, SAME, y < x ? y : x, fmin(x, y), NONE)                                       \
    OP(FMAX, fmax, 2, SAME, y > x ? y : x, fmax(x, y), NONE)                                       \
    OP(ATAN2, atan2, 2, FLOAT, NONE, atan2(x, y), NONE)                                            \
    OP(HYPOT, hypot, 2, FLOAT, NONE, hypot(x, y), NONE)                                            \
    OP(COPYSIGN, copysign, 2, FLOAT, NONE, copysign(x, y), NONE)                                   \
    OP(NEXTAFTER, nextafter, 2, FLOAT, NONE, nextafter(x, y), NONE)                                \
    OP(LOGADDEXP, logaddexp, 2, FLOAT, NONE, real_logaddexp(x, y), NONE)                           \
    OP(NEGATE, negate, 1, SAME, int_subtract(0, x), -x, -x)                                        \
    OP(ABS, abs, 1, PART, int_abs(x), fabs(x), c_abs(x))                                           \
    OP(SIGN, sign, 1, SAME, (x > 0) - (x < 0), x != x ? x : (x > 0) - (x < 0), c_sign(x))          \
    OP(SQUARE, square, 1, SAME, int_multiply(x, x), x *x, c_multiply(x, x))                        \
    OP(RECIPROCAL, reciprocal, 1, FLOAT, NONE, 1 / x, c_divide(c_of(1, 0), x))                     \
    OP(SQRT, sqrt, 1, FLOAT, NONE, sqrt(x), HOST_csqrt(x))                                         \
    OP(EXP, exp, 1, FLOAT, NONE, exp(x), HOST_cexp(x))                                             \
    OP(EXP2, exp2, 1, FLOAT, NONE, exp2(x), NONE)                                                  \
    OP(EXPM1, expm1, 1, FLOAT, NONE, expm1(x), HOST_cexpm1(x))                                     \
    OP(LOG, log, 1, FLOAT, NONE, log(x), HOST_clog(x))                                             \
    OP(LOG2, log2, 1, FLOAT, NONE, log2(x), HOST_clog2(x))                                         \
    OP(LOG10, log10, 1, FLOAT, NONE, log10(x), HOST_clog10(x))                                     \
    OP(LOG1P, log1p, 1, FLOAT, NONE, log1p(x), HOST_clog1p(x))                                     \
    OP(SIN, sin, 1, FLOAT, NONE, sin(x), HOST_csin(x))                                             \
    OP(COS, cos, 1, FLOAT, NONE, cos(x), HOST_ccos(x))                                             \
    OP(TAN, tan, 1, FLOAT, NONE, tan(x), HOST_ctan(x))                                             \
    OP(ASIN, asin, 1, FLOAT, NONE, asin(x), HOST_casin(x))                                         \
    OP(ACOS, acos, 1, FLOAT, NONE, acos(x), HOST_cacos(x))                                         \
    OP(ATAN, atan, 1, FLOAT, NONE, atan(x), HOST_catan(x))                                         \
    OP(SINH, sinh, 1, FLOAT, NONE, sinh(x), HOST_csinh(x))                                         \
    OP(COSH, cosh, 1, FLOAT, NONE, cosh(x), HOST_ccosh(x))                                         \
    OP(TANH, tanh, 1, FLOAT, NONE, tanh(x), HOST_ctanh(x))                                         \
    OP(ASINH, asinh, 1, FLOAT, NONE, asinh(x), HOST_casinh(x))                                     \
    OP(ACOSH, acosh, 1, FLOAT, NONE, acosh(x), HOST_cacosh(x))                                     \
    OP(ATANH, atanh, 1, FLOAT, NONE, atanh(x), HOST_catanh(x))                                     \
    OP(FLOOR, floor, 1, SAME, x, floor(x), NONE)                                                   \
    OP(CEIL, ceil, 1, SAME, x, ceil(x), NONE)                                                      \
    OP(TRUNC, trunc, 1, SAME, x, trunc(x), NONE)                                                   \
    OP(ROUND, round, 1, SAME, x, rint(x), c_of(rint(c_re(x)), rint(c_im(x))))                      \
    OP(ISNAN, isnan, 1, TRUTH, 0, isnan(x), isnan(c_re(x)) || isnan(c_im(x)))                      \
    OP(ISINF, isinf, 1, TRUTH, 0, isinf(x), isinf(c_re(x)) || isinf(c_im(x)))                      \
    OP(ISFINITE, isfinite, 1, TRUTH, 1, isfinite(x), isfinite(c_re(x)) && isfinite(c_im(x)))       \
    OP(SIGNBIT, signbit, 1, TRUTH, x < 0, signbit(x), NONE)                                        \
    OP(CONJ, conj, 1, SAME, x, x, c_of(c_re(x), -c_im(x)))                                         \
    OP(REAL, real, 1, PART, x, x, c_re(x))                                                         \
    OP(IMAG, imag, 1, PART, 0, 0, c_im(x))                                                         \
    OP(WHERE, where, 3, SAME, x ? y : z, x != 0 ? y : z, c_true(x) ? y : z)                        \
    OP(RAMP, ramp, 2, SAME, int_add(x, int_multiply(y, PLACE)), x + y * PLACE, NONE)

#endif
