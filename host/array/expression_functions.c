/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the functions that an expression may call, in plain C and in OpenCL C. */
#include "host/array/expression.h"

#include "base/alloc.h"

#include <math.h>

#define UNARY(name, value)                                                                        \
    static void name##_(float *out, const float *a, const float *b, const float *c, size_t count) \
    {                                                                                             \
        (void)b, (void)c;                                                                         \
        for (size_t i = 0; i < count; ++i) {                                                      \
            const float x = a[i];                                                                 \
            out[i] = (value);                                                                     \
        }                                                                                         \
    }
#define BINARY(name, value)                                                                       \
    static void name##_(float *out, const float *a, const float *b, const float *c, size_t count) \
    {                                                                                             \
        (void)c;                                                                                  \
        for (size_t i = 0; i < count; ++i) {                                                      \
            const float x = a[i], y = b[i];                                                       \
            out[i] = (value);                                                                     \
        }                                                                                         \
    }
#define TERNARY(name, value)                                                                      \
    static void name##_(float *out, const float *a, const float *b, const float *c, size_t count) \
    {                                                                                             \
        for (size_t i = 0; i < count; ++i) {                                                      \
            const float x = a[i], y = b[i], z = c[i];                                             \
            out[i] = (value);                                                                     \
        }                                                                                         \
    }

UNARY(abs, fabsf(x))
UNARY(acos, acosf(x))
UNARY(asin, asinf(x))
UNARY(atan, atanf(x))
BINARY(atan2, atan2f(x, y))
UNARY(ceil, ceilf(x))
TERNARY(clamp, fminf(fmaxf(x, y), z))
UNARY(cos, cosf(x))
UNARY(cosh, coshf(x))
UNARY(erf, erff(x))
UNARY(exp, expf(x))
UNARY(exp2, exp2f(x))
UNARY(expm1, expm1f(x))
UNARY(floor, floorf(x))
TERNARY(fma, fmaf(x, y, z))
BINARY(hypot, hypotf(x, y))
UNARY(isfinite, isfinite(x) ? 1.0f : 0.0f)
UNARY(isinf, isinf(x) ? 1.0f : 0.0f)
UNARY(isnan, isnan(x) ? 1.0f : 0.0f)
UNARY(log, logf(x))
UNARY(log10, log10f(x))
UNARY(log1p, log1pf(x))
UNARY(log2, log2f(x))
BINARY(max, fmaxf(x, y))
BINARY(min, fminf(x, y))
BINARY(pow, powf(x, y))
UNARY(round, rintf(x))
UNARY(rsqrt, 1.0f / sqrtf(x))
UNARY(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : isnan(x) ? 0.0f : x)
UNARY(sin, sinf(x))
UNARY(sinh, sinhf(x))
UNARY(sqrt, sqrtf(x))
UNARY(tan, tanf(x))
UNARY(tanh, tanhf(x))
UNARY(trunc, truncf(x))
TERNARY(where, x != 0 ? y : z)

const clv_function clv_functions[] = {
    { "abs", 1, 1, "fabs", abs_ },
    { "acos", 1, 20, "acos", acos_ },
    { "asin", 1, 20, "asin", asin_ },
    { "atan", 1, 20, "atan", atan_ },
    { "atan2", 2, 30, "atan2", atan2_ },
    { "ceil", 1, 1, "ceil", ceil_ },
    { "clamp", 3, 2, "CLAMP", clamp_ },
    { "cos", 1, 20, "cos", cos_ },
    { "cosh", 1, 25, "cosh", cosh_ },
    { "erf", 1, 25, "erf", erf_ },
    { "exp", 1, 15, "exp", exp_ },
    { "exp2", 1, 15, "exp2", exp2_ },
    { "expm1", 1, 20, "expm1", expm1_ },
    { "floor", 1, 1, "floor", floor_ },
    { "fma", 3, 2, "fma", fma_ },
    { "hypot", 2, 15, "hypot", hypot_ },
    { "isfinite", 1, 1, "IS_FINITE", isfinite_ },
    { "isinf", 1, 1, "IS_INF", isinf_ },
    { "isnan", 1, 1, "IS_NAN", isnan_ },
    { "log", 1, 15, "log", log_ },
    { "log10", 1, 18, "log10", log10_ },
    { "log1p", 1, 20, "log1p", log1p_ },
    { "log2", 1, 15, "log2", log2_ },
    { "max", 2, 1, "fmax", max_ },
    { "min", 2, 1, "fmin", min_ },
    { "pow", 2, 40, "pow", pow_ },
    { "round", 1, 1, "rint", round_ },
    { "rsqrt", 1, 8, "rsqrt", rsqrt_ },
    { "sign", 1, 1, "sign", sign_ },
    { "sin", 1, 20, "sin", sin_ },
    { "sinh", 1, 25, "sinh", sinh_ },
    { "sqrt", 1, 4, "sqrt", sqrt_ },
    { "tan", 1, 25, "tan", tan_ },
    { "tanh", 1, 25, "tanh", tanh_ },
    { "trunc", 1, 1, "trunc", trunc_ },
    { "where", 3, 1, "WHERE", where_ },
};
const unsigned clv_function_count = CLV_LEN(clv_functions);
