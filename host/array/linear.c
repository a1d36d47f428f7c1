/* SPDX-License-Identifier: Apache-2.0 */
/* Linear regression: a step, and many steps that stay where the data is. */
#include "host/array/call.h"
#include "host/array/map.h"
#include "host/array/reduce.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cl_embedded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RESIDUALS = CALL_SCRATCH, PARTS, LOSSES, GRADIENT, LOSS, GROUP = 32, LANES = 16 };

typedef struct regression {
    size_t rows, width, each, blocks, steps;
    float rate;
    clv_array *x, *y, *w, *loss, *gradient; /* the last two may be NULL when it trains */
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
    const clv_launch launch = { .source = &clv_cl_array_linear,
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
    clv_launch launch = { .source = &clv_cl_array_linear,
                          .kernel = "clv_linear_residual",
                          .defines = { { "LANES", 1 } },
                          .global = { clv_round_up(t->rows, GROUP) },
                          .local = { GROUP } };
    const clv_arg rows = clv_arg_u32((uint32_t)t->rows), width = clv_arg_u32((uint32_t)t->width);
    const clv_arg first[] = { clv_arg_buffer(t->x->at),
                              clv_arg_buffer(t->y->at),
                              clv_arg_buffer(t->w->at),
                              clv_arg_buffer(p->residuals),
                              rows,
                              width };
    CLV_TRY(clv_launch_enqueue(engine->queue, &launch, first, CLV_LEN(first), NULL));
    launch.kernel = "clv_linear_gradient";
    launch.global[0] = clv_round_up(t->width, GROUP);
    launch.global[1] = t->blocks, launch.local[1] = 1;
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
    const clv_launch launch = { .source = &clv_cl_array_linear,
                                .kernel = "clv_linear_join",
                                .defines = { { "LANES", core ? LANES : 1 } },
                                .global = { clv_round_up(t->width, GROUP) },
                                .local = { GROUP } };
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

/* ---- the host, in the same order --------------------------------------------------------------- */

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

/* fma is one instruction where the processor has it, else a call: the same bits. */
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
    const bool there = room && totals;
    float *gradient = t->gradient ? t->gradient->host : room + t->width;
    float *loss = t->loss ? t->loss->host : room + 2 * t->width;
    for (size_t step = 0; there && step < t->steps; ++step)
        do_step(t, room, gradient, totals, loss + step);
    clv_free(room);
    clv_free(totals);
    return there ? CLV_OK : clv_fail(CLV_E_MEMORY, "linear: no memory");
}

/* ---- trials ---------------------------------------------------------------------------------- */

typedef struct trial {
    clv_context *context;
    clv_array *x, *y, *w, *loss, *gradient;
    size_t steps;
    bool trains;
} trial;

static clv_status trial_once(void *user)
{
    trial *t = user;
    return t->trains ? clv_linear_train(t->context, t->x, t->y, t->w, 1e-6f, t->steps, NULL)
                     : clv_linear_step(t->context, t->x, t->y, t->w, t->loss, t->gradient);
}

static clv_status try_linear(clv_context *context, double work, clv_side side, double *seconds,
                             void *user)
{
    const regression *r = user;
    (void)side;
    const size_t width = r->width, rows = CLV_MAX((size_t)(work / (double)width), (size_t)1);
    const size_t shape[2] = { rows, width };
    const size_t elements = rows * width + rows + 2 * width + 1;
    float *memory = clv_alloc_pages(elements * sizeof *memory);
    if (!memory) return clv_fail(CLV_E_MEMORY, "linear: no memory for a trial");
    for (size_t i = 0; i < elements; ++i)
        memory[i] = (float)(i * 37 % 997) * 1e-3f;
    trial t = { .context = context, .steps = CLV_MIN(r->steps, (size_t)8), .trains = r->rate != 0 };
    float *y = memory + rows * width, *w = y + rows, *gradient = w + width;
    clv_status status = clv_array_wrap(context, memory, 2, shape, &t.x);
    if (!status) status = clv_array_wrap(context, y, 1, &rows, &t.y);
    if (!status) status = clv_array_wrap(context, w, 1, &width, &t.w);
    if (!status) status = clv_array_wrap(context, gradient, 1, &width, &t.gradient);
    if (!status) status = clv_array_wrap(context, gradient + width, 0, NULL, &t.loss);
    if (!status) status = clv_offload_time(trial_once, &t, seconds);
    if (!status)
        *seconds *= (double)r->steps / (double)t.steps; /* whose number is told by the kind */
    clv_array_free(t.x), clv_array_free(t.y), clv_array_free(t.w);
    clv_array_free(t.loss), clv_array_free(t.gradient);
    clv_free(memory);
    return status;
}

/* ---- what others call ------------------------------------------------------------------------ */

static clv_status run(clv_context *context, regression *t)
{
    clv_array *all[] = { t->x, t->y, t->w, t->loss, t->gradient };
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        if (i < 3 || all[i]) CLV_TRY(clv_array_check("linear", context, all[i]));
        const bool is_result = i > 2 || (i == 2 && t->rate != 0);
        for (size_t k = 0; k < i; ++k)
            if (is_result && all[i] && all[i] == all[k])
                return clv_fail(CLV_E_ARGUMENT,
                                "linear: a result is an operand, or another result");
    }
    if (t->x->rank != 2 || t->y->elements != t->x->shape[0] || t->w->elements != t->x->shape[1])
        return clv_fail(CLV_E_SHAPE,
                        "linear: x is [n,d], y [n] and w [d]; %zu axes, %zu and %zu given",
                        t->x->rank, t->y->elements, t->w->elements);
    if ((t->loss && t->loss->elements != t->steps) ||
        (t->gradient && t->gradient->elements != t->x->shape[1]))
        return clv_fail(CLV_E_SHAPE, "linear: one loss a step and a gradient [%zu] expected",
                        t->x->shape[1]);
    t->rows = t->x->shape[0], t->width = t->x->shape[1];
    t->each = CLV_MAX((size_t)64, clv_round_up(t->rows / 2048 + 1, 64));
    t->blocks = (t->rows + t->each - 1) / t->each;
    char kind[64];
    snprintf(kind, sizeof kind, "linear %s d%u s%u", t->rate != 0 ? "train" : "step",
             clv_call_octave(t->width), clv_call_octave(t->steps));
    clv_call call = { .operation = t->rate != 0 ? "linear train" : "linear step",
                      .kind = kind,
                      .work = (double)t->x->elements,
                      .shape = t->steps,
                      .flops = 4 * (double)t->x->elements * (double)t->steps,
                      .least_work = (double)CLV_MAX((size_t)1024, t->width),
                      .most_work = 1 << 23,
                      .trial = try_linear,
                      .device = on_device,
                      .host = on_host,
                      .user = t };
    clv_call_add(&call, t->x, true, false);
    clv_call_add(&call, t->y, true, false);
    clv_call_add(&call, t->w, true, t->rate != 0);
    if (t->loss) clv_call_add(&call, t->loss, false, true);
    if (t->gradient) clv_call_add(&call, t->gradient, false, true);
    return clv_call_run(context, &call);
}

clv_status clv_linear_step(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                           clv_array *loss, clv_array *gradient)
{
    if (!loss || !gradient) return clv_fail(CLV_E_ARGUMENT, "linear: a NULL loss or gradient");
    regression t = { .steps = 1, .x = x, .y = y, .w = w, .loss = loss, .gradient = gradient };
    return run(context, &t);
}

clv_status clv_linear_train(clv_context *context, clv_array *x, clv_array *y, clv_array *w,
                            float rate, size_t steps, clv_array *losses)
{
    if (!(rate != 0) || !isfinite(rate))
        return clv_fail(CLV_E_ARGUMENT, "linear: rate %g, a number other than 0 expected",
                        (double)rate);
    if (!steps || steps > UINT32_MAX)
        return clv_fail(CLV_E_ARGUMENT, "linear: %zu steps, 1 to 2^32 - 1 expected", steps);
    regression t = { .steps = steps, .rate = rate, .x = x, .y = y, .w = w, .loss = losses };
    return run(context, &t);
}
