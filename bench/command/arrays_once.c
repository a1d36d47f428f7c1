/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the operands of an operation on arrays, and runs the operation once. */
#include "bench/command/arrays.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/blas.h>

#include <string.h>

static const char expression[] = "k * sqrt(x*x + y*y) * exp(-x) + where(x > y, x, y)";
static const double SIGMA = 2;

/* Extents of operands and results, outermost first; rank 3 with a first extent of 0 ends the list. */
typedef struct extents {
    size_t rank, shape[3], operands; /* `operands`: set in the first entry only */
} extents;

static size_t list_memory(const bench_case *c, extents *e)
{
    const size_t a = c->size[0], b = c->size[1], k = c->size[2];
    size_t count = 0, operands = 1;
#define HAVE(...) (e[count++] = (extents){ __VA_ARGS__ })
    switch ((arrays_kind)c->variant) {
    case ARRAYS_MATMUL:
        HAVE(2, { a, k }), HAVE(2, { k, b }), HAVE(2, { a, b }), operands = 2;
        break;
    case ARRAYS_BATCHED:
        HAVE(3, { a, b, b }), HAVE(3, { a, b, b }), HAVE(3, { a, b, b }), operands = 2;
        break;
    case ARRAYS_CONVOLVE:
    case ARRAYS_GAUSSIAN: {
        const size_t side = c->variant == ARRAYS_CONVOLVE ? k : 2 * k + 1;
        HAVE(2, { a, b }), HAVE(2, { side, side }), HAVE(2, { a, b }), operands = 2;
        break;
    }
    case ARRAYS_NORMALIZE:
        HAVE(2, { a, b }), HAVE(2, { a, b }), HAVE(2, { a, a });
        break;
    case ARRAYS_STEP:
    case ARRAYS_LOOP:
        HAVE(2, { a, b }), HAVE(1, { a }), HAVE(1, { b }), operands = 3;
        HAVE(1, { c->variant == ARRAYS_LOOP ? k : 1 }), HAVE(1, { b });
        break;
    case ARRAYS_PI:
        operands = 0;
        break;
    case ARRAYS_EIGVALSH:
    case ARRAYS_EIGVALS:
        HAVE(3, { a, b, b }), HAVE(2, { a, b }), HAVE(2, { a, b });
        break;
    case ARRAYS_MAP:
        HAVE(1, { a }), HAVE(1, { a }), HAVE(1, { a }), operands = 2;
        break;
    case ARRAYS_SUM:
        HAVE(2, { a, b }), HAVE(0, { 1 });
        break;
    case ARRAYS_VAR:
        HAVE(2, { a, b }), HAVE(1, { b });
    }
#undef HAVE
    e[0].operands = operands;
    return count;
}

static void fill(float *out, size_t count, uint32_t state)
{
    for (size_t i = 0; i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) * 0x1p-24f;
    }
}

clv_status arrays_open(arrays_trial *t)
{
    extents e[ARRAYS_MOST] = { 0 };
    const size_t count = list_memory(t->c, e);
    for (size_t i = 0; i < count; ++i) {
        size_t floats = 1;
        for (size_t axis = 0; axis < e[i].rank; ++axis)
            floats *= e[i].shape[axis];
        t->memory[i] = clv_alloc(floats, sizeof(float));
        if (!t->memory[i]) return clv_fail(CLV_E_MEMORY, "not enough memory for %s", t->c->name);
        if (i < e[0].operands)
            fill(t->memory[i], floats, (uint32_t)i + 1);
        else
            memset(t->memory[i], 0, floats * sizeof(float));
        CLV_TRY(clv_array_wrap(t->context, t->memory[i], e[i].rank, e[i].shape, &t->array[i]));
    }
    if (t->c->variant == ARRAYS_GAUSSIAN)
        CLV_TRY(clv_gaussian_2d(SIGMA, t->c->size[2], t->memory[1]));
    if (t->c->variant == ARRAYS_LOOP) /* weights start at 0; repetitions continue them */
        memset(t->memory[2], 0, t->c->size[1] * sizeof(float));
    return CLV_OK;
}

void arrays_close(arrays_trial *t)
{
    for (size_t i = 0; i < ARRAYS_MOST; ++i)
        clv_array_free(t->array[i]), clv_free(t->memory[i]);
}

static clv_status filter(const arrays_trial *t, size_t side)
{
    const size_t *s = t->c->size;
    return clv_convolve_2d(t->context, t->memory[0], s[0], s[1], t->memory[1], side, side, NULL,
                           t->memory[2], NULL);
}

static clv_status multiply_batch(const arrays_trial *t)
{
    const size_t n = t->c->size[1];
    const clv_matmul_options o = {
        .size = sizeof o, .batch = t->c->size[0], .a_batch = n * n, .b_batch = n * n
    };
    return clv_matmul(t->context, n, n, n, t->memory[0], t->memory[1], &o, t->memory[2]);
}

static clv_status compute(const arrays_trial *t)
{
    const clv_map_input in[] = { { "x", t->array[0], 0 },
                                 { "y", t->array[1], 0 },
                                 { "k", NULL, 2.5f } };
    return clv_map(t->context, expression, in, CLV_LEN(in), t->array[2]);
}

static clv_status run(const arrays_trial *t)
{
    const size_t *s = t->c->size;
    clv_context *context = t->context;
    float *const *m = t->memory;
    clv_array *const *a = t->array;
    uint64_t inside;
    switch ((arrays_kind)t->c->variant) {
    case ARRAYS_MATMUL:
        return clv_matmul_f32(context, s[0], s[1], s[2], m[0], m[1], m[2]);
    case ARRAYS_BATCHED:
        return multiply_batch(t);
    case ARRAYS_CONVOLVE:
        return filter(t, s[2]);
    case ARRAYS_GAUSSIAN:
        return filter(t, 2 * s[2] + 1);
    case ARRAYS_NORMALIZE:
        return clv_normalize(context, a[0], a[1], a[2], NULL, NULL);
    case ARRAYS_STEP:
        return clv_linear_step(context, a[0], a[1], a[2], a[3], a[4]);
    case ARRAYS_LOOP:
        return clv_linear_train(context, a[0], a[1], a[2], 0.01f, s[2], a[3]);
    case ARRAYS_PI:
        return clv_monte_carlo_pi(context, (uint64_t)s[0] * 1000, NULL, &inside, NULL);
    case ARRAYS_EIGVALSH:
        return clv_eigvalsh(context, m[0], s[0], s[1], NULL, m[1], NULL);
    case ARRAYS_EIGVALS:
        return clv_eigvals(context, m[0], s[0], s[1], NULL, m[1], m[2], NULL);
    case ARRAYS_MAP:
        return compute(t);
    case ARRAYS_SUM:
        return clv_reduce(context, CLV_REDUCE_SUM, a[0], -1, a[1]);
    case ARRAYS_VAR:
        return clv_reduce(context, CLV_REDUCE_VAR, a[0], 0, a[1]);
    }
    return clv_fail(CLV_E_INTERNAL, "%s: no such operation", t->c->name);
}

clv_status arrays_once(void *user, double *seconds)
{
    const double started = clv_now();
    const clv_status status = run(user);
    *seconds = clv_now() - started;
    return status;
}
