/* SPDX-License-Identifier: Apache-2.0 */
/* Convolves an image: the host adds the borders, and each unit of the job is a row. */
#include "host/array/convolve.h"
#include "host/array/edge.h"
#include "host/array/group.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "cl/array/shared.clh"
#include "cl_embedded.h"
#include "runtime/device/spare.h"
#include "runtime/job/results.h"
#include "runtime/offload/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    IMAGE, /* slot input */
    OUT,   /* slot output */
    WEIGHTS = 0,
    ROWS = CLV_CONVOLVE_ROWS,
    LANES = 16, /* columns of a vector on CPU cores; a block has twice as many */
    MOST_ELEMENTS = 4096
};

typedef clv_filter filter;

/* A call. The filter comes first because the job's functions receive a pointer to the filter only. */
typedef struct task {
    filter filter;
    clv_context *context;
    const float *in, *kernel;
    size_t stride, padded_bytes;
    const clv_convolve_options *options;
    clv_job job;
    char kind[64];
} task;

static bool is_core(const clv_device *device)
{
    return clv_device_facts(device)->device_class == CLV_CLASS_CPU;
}

static size_t weight_bytes(const filter *f)
{
    return f->kernel_height * f->kernel_width * sizeof(float);
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    (void)first;
    const filter *f = user;
    const double pixels = (double)count * (double)f->width;
    const double in = (double)(count + f->kernel_height - 1) * (double)f->pitch * sizeof(float);
    const double out = pixels * sizeof(float);
    return (clv_cost){
        .flops = 2 * pixels * (double)f->kernel_height * (double)f->kernel_width,
        .traffic_bytes = in + out,
        .transfer_bytes = in + out,
        .memory_bytes = (uint64_t)(in + out),
        .buffer_bytes = (uint64_t)in,
    };
}

static clv_status setup(clv_worker *worker, void *user)
{
    const filter *f = user;
    clv_buffer *weights;
    CLV_TRY(clv_worker_buffer(worker, WEIGHTS, weight_bytes(f), &weights));
    return clv_write(clv_worker_queue(worker), weights, 0, f->weights, weight_bytes(f));
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const filter *f = user;
    clv_worker *worker = clv_slot_worker(slot);
    const bool core = is_core(clv_worker_device(worker));
    clv_buffer *weights, *out;
    clv_place in;
    const clv_box box = { .host = f->padded + first * f->pitch,
                          .element_bytes = sizeof(float),
                          .extent = { 1, count + f->kernel_height - 1, f->pitch },
                          .stride = { 0, f->pitch, 1 } };
    CLV_TRY(clv_worker_buffer(worker, WEIGHTS, 0, &weights));
    CLV_TRY(clv_slot_input(slot, IMAGE, &box, &in));
    CLV_TRY(clv_slot_output(slot, OUT, count * f->width * sizeof(float), &out));
    clv_launch launch = { .size = sizeof(clv_launch),
                          .source = &clv_cl_array_convolve,
                          .kernel = "clv_array_convolve",
                          .defines = { { "LANES", core ? LANES : 1 },
                                       { "KH", (long)f->kernel_height },
                                       { "KW", (long)f->kernel_width } },
                          .global = { 1, (count + ROWS - 1) / ROWS },
                          .local = { 1, 1 } };
    if (!core) {
        const clv_array_grid grid =
            clv_array_grid_of(clv_device_facts(clv_worker_device(worker)), f->width, count);
        launch.local[0] = grid.local[0], launch.local[1] = grid.local[1];
        launch.global[0] = grid.global[0], launch.global[1] = grid.global[1];
    }
    const clv_arg args[] = {
        clv_arg_buffer(in.buffer),       clv_arg_u64(in.offset), clv_arg_u64(in.stride[1]),
        clv_arg_buffer(weights),         clv_arg_buffer(out),    clv_arg_u32((uint32_t)count),
        clv_arg_u32((uint32_t)f->width),
    };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL);
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const filter *f = user;
    const float *rows;
    CLV_TRY(clv_slot_take(slot, OUT, count * f->width * sizeof *rows, &rows));
    for (size_t y = 0; y < count; ++y)
        memcpy(f->out + (first + y) * f->out_stride, rows + y * f->width, f->width * sizeof(float));
    return CLV_OK;
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const filter *f = user;
    void *result;
    CLV_TRY(clv_slot_result_create(slot, OUT, count * f->width * sizeof(float), &result));
    clv_filter_rows(f, first, count, result);
    return CLV_OK;
}

/* ---- borders ------------------------------------------------------------------------------- */

/* Returns the width of the border before the image. For a kernel of even size, the border after the image is larger. */
static size_t before(size_t size)
{
    return size - 1 - size / 2;
}

static void pad_row(const filter *f, const float *in, const clv_convolve_options *o, float *out)
{
    const size_t left = before(f->kernel_width), all = f->width + f->kernel_width - 1;
    memcpy(out + left, in, f->width * sizeof *in);
    for (size_t x = 0; x < all; ++x) {
        if (x == left) x += f->width;
        if (x >= all) break;
        const int64_t at = clv_edge_index(o->edge, (int64_t)x - (int64_t)left, (int64_t)f->width);
        out[x] = at < 0 ? o->constant : in[at];
    }
    memset(out + all, 0, (f->pitch - all) * sizeof *out);
}

static void pad(const filter *f, const float *in, size_t stride, const clv_convolve_options *o)
{
    const size_t top = before(f->kernel_height), rows = f->height + f->kernel_height - 1;
    for (size_t y = 0; y < rows; ++y) {
        const int64_t at = clv_edge_index(o->edge, (int64_t)y - (int64_t)top, (int64_t)f->height);
        float *out = f->padded + y * f->pitch;
        if (at >= 0)
            pad_row(f, in + (size_t)at * stride, o, out);
        else
            for (size_t x = 0; x < f->pitch; ++x)
                out[x] = o->constant;
    }
}

/* ---- the public function ------------------------------------------------------------------- */

static clv_status check(const filter *f, size_t in_stride, const clv_convolve_options *o)
{
    const size_t kh = f->kernel_height, kw = f->kernel_width;
    if ((unsigned)o->edge > CLV_EDGE_WRAP)
        return clv_fail(CLV_E_ARGUMENT, "convolve: edge mode %d is not one of clv_edge",
                        (int)o->edge);
    if (!f->height || !f->width || !kh || !kw)
        return clv_fail(CLV_E_SHAPE,
                        "convolve: the image is [%zu,%zu] and the kernel [%zu,%zu], but every "
                        "extent must be at least 1",
                        f->height, f->width, kh, kw);
    if (kh > MOST_ELEMENTS || kw > MOST_ELEMENTS || kh * kw > MOST_ELEMENTS)
        return clv_fail(CLV_E_SHAPE,
                        "convolve: the kernel is [%zu,%zu], but it may have at most %d elements",
                        kh, kw, MOST_ELEMENTS);
    if (kh > 2 * f->height + 1 || kw > 2 * f->width + 1)
        return clv_fail(CLV_E_SHAPE,
                        "convolve: kernel [%zu,%zu] is larger than twice the image [%zu,%zu]", kh,
                        kw, f->height, f->width);
    if (in_stride < f->width || f->out_stride < f->width)
        return clv_fail(CLV_E_SHAPE,
                        "convolve: the row strides are %zu and %zu, but they must be at least %zu",
                        in_stride, f->out_stride, f->width);
    if (f->height > UINT32_MAX / 2 || f->width > UINT32_MAX / 2 ||
        CLV_MAX(in_stride, f->out_stride) > SIZE_MAX / 8 / f->height ||
        f->width + MOST_ELEMENTS > SIZE_MAX / 8 / (f->height + MOST_ELEMENTS))
        return clv_fail(CLV_E_SHAPE,
                        "convolve: image [%zu,%zu] needs more memory than can be addressed",
                        f->height, f->width);
    return CLV_OK;
}

/* Adds the borders on the calling thread, whichever side computes the rows. */
static clv_status prepare(void *user)
{
    task *t = user;
    filter *f = user;
    const size_t elements = f->kernel_height * f->kernel_width;
    f->pitch = clv_round_up(clv_round_up(f->width, 2 * LANES) + f->kernel_width - 1, LANES);
    f->weights = clv_alloc(elements, sizeof *f->weights);
    t->padded_bytes = (f->height + f->kernel_height - 1) * f->pitch * sizeof *f->padded;
    f->padded = clv_spare_take(t->context, &t->padded_bytes);
    if (!f->weights || !f->padded)
        return clv_fail(CLV_E_MEMORY,
                        "convolve: not enough memory for image [%zu,%zu] with its borders",
                        f->height, f->width);
    for (size_t i = 0; i < elements; ++i)
        f->weights[i] = t->kernel[elements - 1 - i];
    pad(f, t->in, t->stride, t->options);
    return CLV_OK;
}

static void finish(void *user)
{
    task *t = user;
    clv_free(t->filter.weights);
    clv_spare_give(t->context, t->filter.padded, t->padded_bytes);
    t->filter.weights = t->filter.padded = NULL;
}

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(task *t, clv_call *c)
{
    const filter *f = &t->filter;
    const double pixels = (double)f->height * (double)f->width;
    const double taps = (double)f->kernel_height * (double)f->kernel_width;
    const double reach = (double)CLV_MAX(f->kernel_height, f->kernel_width) / 2 + 1;
    snprintf(t->kind, sizeof t->kind, "convolve %zux%zu", f->kernel_height, f->kernel_width);
    t->job = (clv_job){
        .size = sizeof(clv_job),
        .name = "convolve",
        .units = f->height,
        .align = ROWS,
        .min_chunk = clv_round_up(CLV_MAX((size_t)1 << 16, f->width) / f->width, ROWS),
        .cost = cost,
        .setup = setup,
        .enqueue = enqueue,
        .rehearse = true,
        .commit = commit,
        .reference = reference,
        .progress = t->options->progress,
        .progress_user = t->options->progress_user,
    };
    *c = (clv_call){ .operation = "convolve",
                     .work = { .kind = t->kind,
                               .amount = pixels,
                               .least = CLV_MAX(256, 1.2 * reach * reach), /* samples take less */
                               .most = 1 << 22,
                               .shape = f->width,
                               .flops = 2 * pixels * taps,
                               .host_flops = 30e9,
                               .bytes = 8 * pixels,
                               .transfer_bytes = 8 * pixels },
                     .job = &t->job,
                     .prepare = prepare,
                     .finish = finish,
                     .user = t,
                     .sample = sample };
}

/* A task that owns its memory. */
typedef struct sampled {
    task task;
    clv_convolve_options options;
    clv_call call;
    float memory[];
} sampled;

/* Makes a sample: an image of the call's shape, or else a square one of about `amount` pixels, with a kernel of the
 * call's size. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    const filter *f = like->user;
    const size_t edge = (size_t)lrint(sqrt(amount));
    const bool same = amount == (double)f->height * (double)f->width;
    const size_t height = same ? f->height : edge, width = same ? f->width : edge;
    const size_t pixels = height * width, elements = f->kernel_height * f->kernel_width;
    const size_t at = clv_round_up(pixels + elements, 1024);
    sampled *s = clv_alloc_pages(sizeof *s + (at + pixels) * sizeof(float));
    if (!s) return clv_fail(CLV_E_MEMORY, "convolve: not enough memory for a trial run");
    for (size_t i = 0; i < pixels + elements; ++i)
        s->memory[i] = (float)(i * 37 % 997) * 1e-3f;
    s->options = (clv_convolve_options){ .size = sizeof(clv_convolve_options) };
    s->task = (task){ .filter = { .height = height,
                                  .width = width,
                                  .kernel_height = f->kernel_height,
                                  .kernel_width = f->kernel_width,
                                  .out = s->memory + at,
                                  .out_stride = width },
                      .context = context,
                      .in = s->memory,
                      .kernel = s->memory + pixels,
                      .stride = width,
                      .options = &s->options };
    describe(&s->task, &s->call);
    *out = (clv_sample){ .call = &s->call,
                         .result = s->memory + at,
                         .results = pixels,
                         .tolerance = 1e-4,
                         .memory = s,
                         .end = clv_free };
    return CLV_OK;
}

clv_status clv_convolve_2d(clv_context *context, const float *in, size_t height, size_t width,
                           const float *kernel, size_t kernel_height, size_t kernel_width,
                           const clv_convolve_options *options, float *out, clv_report *report)
{
    clv_convolve_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_convolve_2d", "clv_convolve_options"));
    if (!context || !in || !kernel || !out)
        return clv_fail(CLV_E_ARGUMENT, "convolve: context, image, kernel or result is NULL");
    task t = { .filter = { .height = height,
                           .width = width,
                           .kernel_height = kernel_height,
                           .kernel_width = kernel_width,
                           .out = out,
                           .out_stride = o.output_stride ? o.output_stride : width },
               .context = context,
               .in = in,
               .kernel = kernel,
               .stride = o.input_stride ? o.input_stride : width,
               .options = &o };
    CLV_TRY(check(&t.filter, t.stride, &o));
    clv_call call;
    describe(&t, &call);
    call.report = report;
    clv_call_take_orders(&call);
    return clv_call_run(context, &call);
}

clv_status clv_gaussian_2d(double sigma, size_t radius, float *kernel)
{
    if (!kernel) return clv_fail(CLV_E_ARGUMENT, "gaussian: kernel is NULL");
    if (!(sigma > 0) || !isfinite(sigma))
        return clv_fail(CLV_E_ARGUMENT, "gaussian: sigma is %g, but it must be a positive number",
                        sigma);
    const size_t size = 2 * radius + 1;
    if (radius > MOST_ELEMENTS || size * size > MOST_ELEMENTS)
        return clv_fail(CLV_E_SHAPE, "gaussian: the radius is %zu, but it must be at most 31",
                        radius);
    double line[64], sum = 0;
    for (size_t i = 0; i < size; ++i) {
        const double x = ((double)i - (double)radius) / sigma;
        line[i] = exp(-x * x / 2);
        sum += line[i];
    }
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j)
            kernel[i * size + j] = (float)(line[i] * line[j] / (sum * sum));
    return CLV_OK;
}
