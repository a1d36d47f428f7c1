/* SPDX-License-Identifier: Apache-2.0 */
/* Computes linear regressions: a single step, or a training of many steps on the device or host that holds the data. */
#include "host/array/call.h"
#include "host/array/group.h"
#include "host/array/map.h"
#include "host/array/reduce.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RESIDUALS = CALL_SCRATCH, PARTS, LOSSES, GRADIENT, LOSS, LANES = 16 };

typedef struct regression {
    size_t rows, width, each, blocks, steps;
    float rate;
    clv_array *x, *y, *w, *loss, *gradient; /* for training, loss and gradient may be NULL */
    char kind[64];
} regression;

/* ---- on a device ----------------------------------------------------------------------------- */

typedef struct places {
    clv_buffer *residuals, *parts, *losses, *gradient, *loss;
} places;

static clv_status find_places(clv_engine *engine, const regression *t, places *p)
{
    const size_t one = sizeof(float);
    CLV_TRY(clv_engine_scratch(engine, RESIDUALS, t->rows * one, &p->residuals));
    CLV_TRY(clv_engine_scratch(engine, PARTS, t->blocks * t->width * one, &p->parts));
    CLV_TRY(clv_engine_scratch(engine, LOSSES, t->blocks * one, &p->losses));
    p->gradient = t->gradient ? t->gradient->at : NULL;
    p->loss = t->loss ? t->loss->at : NULL;
    if (!p->gradient) CLV_TRY(clv_engine_scratch(engine, GRADIENT, t->width * one, &p->gradient));
    if (!p->loss) CLV_TRY(clv_engine_scratch(engine, LOSS, t->steps * one, &p->loss));
    return CLV_OK;
}

static clv_status parts_by_block(clv_engine *engine, const regression *t, const places *p)
{
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_array_linear,
                                .kernel = "clv_linear_block",
                                .defines = { { "LANES", LANES } },
                                .global = { t->blocks },
                                .local = { 1 } };
    const clv_arg args[] = {
        clv_arg_buffer(t->x->at),       clv_arg_buffer(t->y->at),
        clv_arg_buffer(t->w->at),       clv_arg_buffer(p->residuals),
        clv_arg_buffer(p->parts),       clv_arg_buffer(p->losses),
        clv_arg_u32((uint32_t)t->rows), clv_arg_u32((uint32_t)t->width),
        clv_arg_u32((uint32_t)t->each),
    };
    return clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL);
}

static clv_status parts_by_item(clv_engine *engine, const regression *t, const places *p)
{
    const clv_device *device = clv_queue_device(engine->queue);
    const size_t group = clv_array_group(clv_device_facts(device), t->rows);
    const clv_array_grid grid = clv_array_grid_of(clv_device_facts(device), t->width, t->blocks);
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &clv_cl_array_linear,
                          .kernel = "clv_linear_residual",
                          .defines = { { "LANES", 1 } },
                          .global = { clv_round_up(t->rows, group) },
                          .local = { group } };
    const clv_arg rows = clv_arg_u32((uint32_t)t->rows), width = clv_arg_u32((uint32_t)t->width);
    const clv_arg first[] = { clv_arg_buffer(t->x->at),
                              clv_arg_buffer(t->y->at),
                              clv_arg_buffer(t->w->at),
                              clv_arg_buffer(p->residuals),
                              rows,
                              width };
    CLV_TRY(clv_launch_enqueue(engine->queue, &launch, first, CLV_LEN(first), NULL));
    launch.kernel = "clv_linear_gradient";
    launch.local[0] = grid.local[0], launch.local[1] = grid.local[1];
    launch.global[0] = grid.global[0], launch.global[1] = grid.global[1];
    const clv_arg second[] = { clv_arg_buffer(t->x->at),
                               clv_arg_buffer(p->residuals),
                               clv_arg_buffer(p->parts),
                               clv_arg_buffer(p->losses),
                               rows,
                               width,
                               clv_arg_u32((uint32_t)t->each) };
    return clv_launch_enqueue(engine->queue, &launch, second, CLV_LEN(second), NULL);
}

static clv_status on_device(clv_engine *engine, void *user)
{
    const regression *t = user;
    const bool core = clv_array_lanes(clv_queue_device(engine->queue)) > 1;
    places p;
    float high, low;
    CLV_TRY(find_places(engine, t, &p));
    clv_reduce_scale(t->rows, &high, &low);
    const size_t group =
        clv_array_group(clv_device_facts(clv_queue_device(engine->queue)), t->width);
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_array_linear,
                                .kernel = "clv_linear_join",
                                .defines = { { "LANES", core ? LANES : 1 } },
                                .global = { clv_round_up(t->width, group) },
                                .local = { group } };
    for (size_t step = 0; step < t->steps; ++step) {
        CLV_TRY(core ? parts_by_block(engine, t, &p) : parts_by_item(engine, t, &p));
        const clv_arg args[] = {
            clv_arg_buffer(p.parts),
            clv_arg_buffer(p.losses),
            clv_arg_buffer(p.gradient),
            clv_arg_buffer(t->w->at),
            clv_arg_buffer(p.loss),
            clv_arg_u32((uint32_t)t->width),
            clv_arg_u32((uint32_t)t->blocks),
            clv_arg_f32(high),
            clv_arg_f32(low),
            clv_arg_f32(t->rate),
            clv_arg_u32((uint32_t)step),
        };
        CLV_TRY(clv_launch_enqueue(engine->queue, &launch, args, CLV_LEN(args), NULL));
    }
    return CLV_OK;
}

#define ALWAYS __attribute__((always_inline))

/* ---- on the host, in the same order ------------------------------------------------------------ */

static inline ALWAYS float residual(const float *row, const float *w, float y, size_t width)
{
    float lane[LANES] = { 0 };
    size_t j = 0;
    for (; j + LANES <= width; j += LANES)
        for (size_t l = 0; l < LANES; ++l)
            lane[l] = fmaf(row[j + l], w[j + l], lane[l]);
    for (size_t l = 0; j + l < width; ++l)
        lane[l] = fmaf(row[j + l], w[j + l], lane[l]);
    float sum = lane[0];
    for (size_t l = 1; l < LANES; ++l)
        sum += lane[l];
    return sum - y;
}

typedef struct total {
    float a, e;
} total;

static inline ALWAYS void add(total *t, float v)
{
    const float sum = t->a + v, part = sum - t->a;
    t->e += (t->a - (sum - part)) + (v - part);
    t->a = sum;
}

static inline ALWAYS void step_body(const regression *t, float *part, float *gradient,
                                    total *totals, float *loss)
{
    const float *x = t->x->host, *y = t->y->host;
    float *w = t->w->host, high, low;
    total losses = { 0 };
    memset(totals, 0, t->width * sizeof *totals);
    for (size_t first = 0; first < t->rows; first += t->each) {
        const size_t last = CLV_MIN(t->rows, first + t->each);
        float square = 0;
        memset(part, 0, t->width * sizeof *part);
        for (size_t i = first; i < last; ++i) {
            const float *row = x + i * t->width, r = residual(row, w, y[i], t->width);
            square = fmaf(r, r, square);
            for (size_t j = 0; j < t->width; ++j)
                part[j] = fmaf(row[j], r, part[j]);
        }
        add(&losses, square);
        for (size_t j = 0; j < t->width; ++j)
            add(&totals[j], part[j]);
    }
    clv_reduce_scale(t->rows, &high, &low);
    for (size_t j = 0; j < t->width; ++j) {
        const float sum = 2 * (totals[j].a + totals[j].e);
        gradient[j] = fmaf(sum, high, sum * low);
        if (t->rate != 0) w[j] = fmaf(-t->rate, gradient[j], w[j]);
    }
    const float sum = losses.a + losses.e;
    *loss = fmaf(sum, high, sum * low);
}

static void plain_step(const regression *t, float *part, float *gradient, total *totals,
                       float *loss)
{
    step_body(t, part, gradient, totals, loss);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void
wide_step(const regression *t, float *part, float *gradient, total *totals, float *loss)
{
    step_body(t, part, gradient, totals, loss);
}
#endif

/* Does one training step. fma is one instruction if the processor has it, otherwise a function call; the bits are the
 * same. */
static void do_step(const regression *t, float *part, float *gradient, total *totals, float *loss)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        wide_step(t, part, gradient, totals, loss);
        return;
    }
#endif
    plain_step(t, part, gradient, totals, loss);
}

static clv_status on_host(void *user)
{
    const regression *t = user;
    float *room = clv_alloc(2 * t->width + t->steps, sizeof *room);
    total *totals = clv_alloc(t->width, sizeof *totals);
    if (!room || !totals) {
        clv_free(room);
        clv_free(totals);
        return clv_fail(CLV_E_MEMORY, "linear: out of memory");
    }
    float *gradient = t->gradient ? t->gradient->host : room + t->width;
    float *loss = t->loss ? t->loss->host : room + 2 * t->width;
    for (size_t step = 0; step < t->steps; ++step)
        do_step(t, room, gradient, totals, loss + step);
    clv_free(room);
    clv_free(totals);
    return CLV_OK;
}

/* ---- the public functions -------------------------------------------------------------------- */

static void lay_out(regression *t, size_t rows, size_t width)
{
    t->rows = rows, t->width = width;
    t->each = CLV_MAX((size_t)64, clv_round_up(rows / 2048 + 1, 64));
    t->blocks = (rows + t->each - 1) / t->each;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(regression *t, clv_array_call *c)
{
    const bool trains = t->rate != 0;
    const double elements = (double)t->x->elements;
    snprintf(t->kind, sizeof t->kind, "linear %s d%u s%u", trains ? "train" : "step",
             clv_call_octave(t->width), clv_call_octave(t->steps));
    c->call = (clv_call){ .operation = trains ? "linear train" : "linear step",
                          .work = { .kind = t->kind,
                                    .amount = elements,
                                    .shape = t->steps,
                                    .flops = 4 * elements * (double)t->steps,
                                    .least = (double)CLV_MAX((size_t)1024, t->width),
                                    .most = 1 << 23 },
                          .sample = sample };
    c->device = on_device;
    c->host = on_host;
    c->user = t;
    clv_array_call_add(c, t->x, true, false);
    clv_array_call_add(c, t->y, true, false);
    clv_array_call_add(c, t->w, true, trains);
    if (t->loss) clv_array_call_add(c, t->loss, false, true);
    if (t->gradient) clv_array_call_add(c, t->gradient, false, true);
}

/* Makes a sample of a few steps, from which the time of many is extrapolated. The number of steps is part of the
 * kind. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    enum { MOST_STEPS = 8 };
    const regression *t = ((const clv_array_call *)like->user)->user;
    const bool trains = t->rate != 0;
    const size_t width = t->width, rows = CLV_MAX((size_t)(amount / (double)width), (size_t)1);
    const size_t shape[2] = { rows, width };
    clv_array_sample *s = clv_array_sample_begin(context, t, sizeof *t);
    if (!s) return clv_fail(CLV_E_MEMORY, "linear: not enough memory for a trial run");
    regression *mine = (regression *)s->user;
    lay_out(mine, rows, width);
    mine->steps = CLV_MIN(t->steps, (size_t)MOST_STEPS);
    mine->rate = trains ? 1e-6f : 0;
    mine->loss = mine->gradient = NULL;
    clv_status status = clv_array_sample_add(s, 2, shape, 0, 1e-3f, &mine->x);
    if (!status) status = clv_array_sample_add(s, 1, &rows, 0, 1e-3f, &mine->y);
    if (!status) status = clv_array_sample_add(s, 1, &width, 0, 1e-3f, &mine->w);
    if (!status && !trains) status = clv_array_sample_add(s, 1, &width, 0, 0, &mine->gradient);
    if (!status && !trains) status = clv_array_sample_add(s, 0, NULL, 0, 0, &mine->loss);
    if (!status) describe(mine, &s->call);
    *out = (clv_sample){ .times = (double)t->steps / (double)mine->steps };
    /* training starts from the weights of the previous run, so results of two runs differ */
    if (!status && !trains)
        out->result = mine->gradient->host, out->results = width, out->tolerance = 1e-4;
    return clv_array_sample_end(s, status, out);
}

static clv_status run(clv_context *context, regression *t)
{
    clv_array *all[] = { t->x, t->y, t->w, t->loss, t->gradient };
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        if (i < 3 || all[i]) CLV_TRY(clv_array_check("linear", context, all[i]));
        const bool is_result = i > 2 || (i == 2 && t->rate != 0);
        for (size_t k = 0; k < i; ++k)
            if (is_result && all[i] && all[i] == all[k])
                return clv_fail(CLV_E_ARGUMENT, "linear: an array is given as a result and also as "
                                                "an operand or another result");
    }
    if (t->x->rank != 2 || t->y->elements != t->x->shape[0] || t->w->elements != t->x->shape[1])
        return clv_fail(CLV_E_SHAPE,
                        "linear: x must be [n,d], y [n] and w [d], but x has %zu axes, y %zu "
                        "elements and w %zu",
                        t->x->rank, t->y->elements, t->w->elements);
    if ((t->loss && t->loss->elements != t->steps) ||
        (t->gradient && t->gradient->elements != t->x->shape[1]))
        return clv_fail(CLV_E_SHAPE,
                        "linear: there must be one loss per step, and the gradient must be [%zu]",
                        t->x->shape[1]);
    lay_out(t, t->x->shape[0], t->x->shape[1]);
    clv_array_call call = { .count = 0 };
    describe(t, &call);
    return clv_array_call_run(context, &call);
}

clv_status clv_linear_step(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                           clv_array *loss, clv_array *gradient)
{
    if (!loss || !gradient) return clv_fail(CLV_E_ARGUMENT, "linear: loss or gradient is NULL");
    regression t = { .steps = 1, .x = x, .y = y, .w = w, .loss = loss, .gradient = gradient };
    return run(context, &t);
}

clv_status clv_linear_train(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                            float rate, size_t steps, clv_array *losses)
{
    if (!(rate != 0) || !isfinite(rate))
        return clv_fail(CLV_E_ARGUMENT,
                        "linear: the rate is %g, but it must be a finite number other than 0",
                        (double)rate);
    if (!steps || steps > UINT32_MAX)
        return clv_fail(CLV_E_ARGUMENT, "linear: got %zu steps, expected 1 to 2^32 - 1", steps);
    regression t = { .steps = steps, .rate = rate, .x = x, .y = y, .w = w, .loss = losses };
    return run(context, &t);
}
