/* SPDX-License-Identifier: Apache-2.0 */
/* clv_normalize: scales columns to mean 0 and standard deviation 1, and computes the products of all pairs of rows. */
#include "host/array/call.h"
#include "host/array/group.h"
#include "host/array/map.h"
#include "host/array/product.h"
#include "host/array/reduce.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <stdio.h>
#include <string.h>

enum { MEAN = CALL_SCRATCH + REDUCE_KEYS, STD, PRODUCT };

typedef struct normalisation {
    clv_reduce_shape shape; /* 1, rows, columns */
    clv_array *x, *z, *gram, *mean, *std;
    char kind[64];
} normalisation;

static clv_status scale(clv_engine *engine, const normalisation *t, const clv_buffer *mean,
                        const clv_buffer *std)
{
    const clv_device *device = clv_queue_device(engine->queue);
    const size_t lanes = clv_array_lanes(device);
    const size_t rows = t->shape.len, width = t->shape.inner;
    const size_t cols = lanes > 1 ? CLV_MIN(clv_round_up(width, 16), (size_t)4096) : 1;
    size_t each = lanes > 1 ? CLV_MAX((size_t)4096 / width, (size_t)1) : 1;
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &clv_cl_array_normalize,
                          .kernel = "clv_normalize",
                          .defines = { { "LANES", (long)lanes } },
                          .global = { (width + cols - 1) / cols, (rows + each - 1) / each },
                          .local = { 1, 1 } };
    if (lanes == 1) {
        const clv_array_grid grid = clv_array_grid_of(clv_device_facts(device), width, rows);
        launch.local[0] = grid.local[0], launch.local[1] = grid.local[1];
        launch.global[0] = grid.global[0], launch.global[1] = grid.global[1];
        each = grid.each;
    }
    const clv_arg args[] = { clv_arg_buffer(t->x->at),    clv_arg_buffer(mean),
                             clv_arg_buffer(std),         clv_arg_buffer(t->z->at),
                             clv_arg_u32((uint32_t)rows), clv_arg_u32((uint32_t)width),
                             clv_arg_u32((uint32_t)cols), clv_arg_u32((uint32_t)each) };
    return clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status on_device(clv_engine *engine, void *user)
{
    const normalisation *t = user;
    const size_t rows = t->shape.len, width = t->shape.inner;
    clv_buffer *mean = t->mean ? t->mean->at : NULL, *std = t->std ? t->std->at : NULL;
    if (!mean) CLV_TRY(clv_engine_scratch(engine, MEAN, width * sizeof(float), &mean));
    if (!std) CLV_TRY(clv_engine_scratch(engine, STD, width * sizeof(float), &std));
    CLV_TRY(clv_reduce_enqueue(engine, CALL_SCRATCH, CLV_REDUCE_MEAN, &t->shape, t->x->at, mean));
    CLV_TRY(clv_reduce_enqueue(engine, CALL_SCRATCH, CLV_REDUCE_STD, &t->shape, t->x->at, std));
    CLV_TRY(scale(engine, t, mean, std));
    if (!t->gram) return CLV_OK;
    const clv_matrix a = { t->z->at, 0, width, 1, 0 }, b = { t->z->at, 0, 1, width, 0 };
    return clv_product_enqueue(engine, PRODUCT, rows, rows, width, 1, &a, &b, t->gram->at);
}

static clv_status on_host(void *user)
{
    const normalisation *t = user;
    const size_t rows = t->shape.len, width = t->shape.inner;
    float *own = clv_alloc(2 * width, sizeof *own);
    if (!own) return clv_fail(CLV_E_MEMORY, "normalize: out of memory");
    float *mean = t->mean ? t->mean->host : own, *std = t->std ? t->std->host : own + width;
    clv_status status = clv_reduce_host(CLV_REDUCE_MEAN, &t->shape, t->x->host, mean);
    if (!status) status = clv_reduce_host(CLV_REDUCE_STD, &t->shape, t->x->host, std);
    for (size_t r = 0; r < rows && !status; ++r)
        for (size_t c = 0; c < width; ++c)
            t->z->host[r * width + c] = (t->x->host[r * width + c] - mean[c]) / std[c];
    if (!status && t->gram) {
        const clv_matmul_options o = { .size = sizeof(clv_matmul_options),
                                       .b_row = 1,
                                       .b_col = width };
        status = clv_matmul_host(rows, rows, width, t->z->host, t->z->host, &o, t->gram->host);
    }
    clv_free(own);
    return status;
}

/* ---- the public functions -------------------------------------------------------------------- */

static clv_status check_shapes(const normalisation *t)
{
    const clv_array *x = t->x;
    if (x->rank != 2 || t->z->rank != 2 || memcmp(x->shape, t->z->shape, sizeof x->shape) != 0)
        return clv_fail(CLV_E_SHAPE,
                        "normalize: x and z must both be [rows, columns], of the same shape");
    if (t->gram && (t->gram->rank != 2 || t->gram->shape[0] != x->shape[0] ||
                    t->gram->shape[1] != x->shape[0]))
        return clv_fail(CLV_E_SHAPE, "normalize: gram must be [%zu,%zu]", x->shape[0], x->shape[0]);
    if ((t->mean && t->mean->elements != x->shape[1]) ||
        (t->std && t->std->elements != x->shape[1]))
        return clv_fail(CLV_E_SHAPE, "normalize: mean and std must be [%zu]", x->shape[1]);
    return CLV_OK;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(normalisation *t, clv_array_call *c)
{
    const size_t rows = t->shape.len, width = t->shape.inner;
    const double elements = (double)t->x->elements;
    snprintf(t->kind, sizeof t->kind, "normalize w%u%s", clv_call_octave(width),
             t->gram ? " gram" : "");
    c->call =
        (clv_call){ .operation = "normalize",
                    .work = { .kind = t->kind,
                              .amount = elements,
                              .flops = 25 * elements + (t->gram ? 2 * (double)rows * elements : 0),
                              .host_flops = t->gram ? 10e9 : 0,
                              .least = (double)CLV_MAX((size_t)512, 2 * width),
                              .most = t->gram ? 1 << 20 : 1 << 23 },
                    .sample = sample };
    c->device = on_device;
    c->host = on_host;
    c->user = t;
    clv_array *const results[] = { t->z, t->gram, t->mean, t->std };
    clv_array_call_add(c, t->x, true, false);
    for (size_t i = 0; i < CLV_LEN(results); ++i)
        if (results[i]) clv_array_call_add(c, results[i], false, true);
}

static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const normalisation *t = ((const clv_array_call *)like->user)->user;
    const size_t width = t->shape.inner;
    const size_t rows = CLV_MAX((size_t)(amount / (double)width), (size_t)2);
    const size_t shape[2] = { rows, width }, square[2] = { rows, rows };
    clv_array_sample *s = clv_array_sample_begin(context, t, sizeof *t);
    if (!s) return clv_fail(CLV_E_MEMORY, "normalize: not enough memory for a trial run");
    normalisation *mine = (normalisation *)s->user;
    mine->shape.len = rows;
    mine->mean = mine->std = NULL;
    clv_status status = clv_array_sample_add(s, 2, shape, 0, 0.03f, &mine->x);
    if (!status) status = clv_array_sample_add(s, 2, shape, 0, 0, &mine->z);
    if (!status && t->gram) status = clv_array_sample_add(s, 2, square, 0, 0, &mine->gram);
    if (!status) describe(mine, &s->call);
    *out = (clv_sample){ .result = status ? NULL : mine->z->host,
                         .results = rows * width,
                         .tolerance = 1e-4 };
    return clv_array_sample_end(s, status, out);
}

clv_status clv_normalize(clv_context *context, clv_array *x, clv_array *z, clv_array *gram,
                         clv_array *mean, clv_array *std)
{
    clv_array *all[] = { x, z, gram, mean, std };
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        if (i < 2 || all[i]) CLV_TRY(clv_array_check("normalize", context, all[i]));
        for (size_t k = 0; k < i; ++k)
            if (all[i] && all[i] == all[k])
                return clv_fail(CLV_E_ARGUMENT, "normalize: two arguments are the same array");
    }
    normalisation t = { .shape = { 1, x->shape[0], x->shape[1] },
                        .x = x,
                        .z = z,
                        .gram = gram,
                        .mean = mean,
                        .std = std };
    CLV_TRY(check_shapes(&t));
    clv_array_call call = { .count = 0 };
    describe(&t, &call);
    return clv_array_call_run(context, &call);
}
