/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the eigenvalues of many symmetric matrices; each matrix is a unit of the job. */
#include "host/array/eigen_host.h"
#include "host/array/group.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "cl_embedded.h"
#include "runtime/job/results.h"
#include "runtime/offload/call.h"

#include <cleave/array.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATRICES, /* slot input */
    VALUES,   /* slot output */
    SCRATCH,  /* slot buffer */
    LANES = 16,
    SWEEPS = 12,  /* matrices of up to 64 rows take 6 to 8 sweeps; a converged matrix is skipped */
    LARGEST = 128 /* most rows of a matrix */
};

typedef struct batch {
    const float *matrices;
    float *values;
    size_t n;
    clv_job job;
    char kind[32];
} batch;

static size_t elements(size_t n)
{
    return n * (n + 1) / 2 + 2;
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    (void)first;
    const batch *b = user;
    const double n = (double)b->n, c = (double)count;
    const double in = c * n * n * sizeof(float), out = c * n * sizeof(float);
    const double each = (double)elements(b->n) * sizeof(float), scratch = (c + LANES) * each;
    const double room = (c + CLV_ARRAY_GROUP_MOST) * each;
    return (clv_cost){ .flops = c * 7 * 4 * n * n * n,
                       .traffic_bytes = in + out + 14 * scratch,
                       .transfer_bytes = in + out,
                       .memory_bytes = (uint64_t)(in + out + room),
                       .buffer_bytes = (uint64_t)CLV_MAX(in, room) };
}

/* The memory layout of a chunk of matrices on a device. */
typedef struct form {
    size_t lanes, items, pitch;
    clv_launch launch;
} form;

static form form_of(const clv_device *device, size_t count, size_t n)
{
    const bool core = clv_device_facts(device)->device_class == CLV_CLASS_CPU;
    const size_t group = core ? 1 : clv_array_group(clv_device_facts(device), count);
    form f = { .lanes = core ? LANES : 1 };
    f.items = clv_round_up((count + f.lanes - 1) / f.lanes, group);
    f.pitch = f.items;
    f.launch = (clv_launch){ .size = sizeof(clv_launch),
                             .source = &clv_cl_array_jacobi,
                             .defines = { { "LANES", (long)f.lanes }, { "N", (long)n } },
                             .global = { f.items },
                             .local = { group } };
    return f;
}

/* Returns how many rows of a sweep one launch handles: all of them, unless the device limits loop iterations. */
static size_t rows_at_once(const clv_device *device, size_t n)
{
    const uint64_t limit = clv_device_facts(device)->flags.loop_limit;
    const uint64_t check = n * n, row = n * (n + 1);
    if (!limit) return n;
    return limit / 2 > check + row ? (size_t)CLV_MIN((limit / 2 - check) / row, (uint64_t)n) : 1;
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const batch *b = user;
    const clv_device *device = clv_worker_device(clv_slot_worker(slot));
    clv_queue *queue = clv_slot_queue(slot);
    form f = form_of(device, count, b->n);
    clv_buffer *scratch, *values;
    clv_place in;
    const clv_box box = { .host = b->matrices + first * b->n * b->n,
                          .element_bytes = sizeof(float),
                          .extent = { 1, 1, count * b->n * b->n },
                          .stride = { 0, 0, 1 } };
    CLV_TRY(clv_slot_input(slot, MATRICES, &box, &in));
    CLV_TRY(clv_slot_output(slot, VALUES, count * b->n * sizeof(float), &values));
    CLV_TRY(clv_slot_buffer(slot, SCRATCH, f.items * f.lanes * elements(b->n) * sizeof(float),
                            &scratch));
    const clv_arg pitch = clv_arg_u64(f.pitch), matrices = clv_arg_u32((uint32_t)count);
    const clv_arg load[] = { clv_arg_buffer(in.buffer), clv_arg_u64(in.offset),
                             clv_arg_buffer(scratch), pitch, matrices };
    f.launch.kernel = "clv_array_jacobi_load";
    CLV_TRY(clv_launch_enqueue(queue, &f.launch, load, CLV_LEN(load), NULL));
    f.launch.kernel = "clv_array_jacobi_sweep";
    const size_t step = rows_at_once(device, b->n);
    for (int sweep = 0; sweep < SWEEPS; ++sweep)
        for (size_t row = 0; row + 1 < b->n; row += step) {
            const size_t last = CLV_MIN(row + step, b->n - 1);
            const clv_arg args[] = { clv_arg_buffer(scratch), pitch, matrices,
                                     clv_arg_u32((uint32_t)row), clv_arg_u32((uint32_t)last) };
            CLV_TRY(clv_launch_enqueue(queue, &f.launch, args, CLV_LEN(args), NULL));
        }
    const clv_arg store[] = { clv_arg_buffer(scratch), pitch, matrices, clv_arg_buffer(values) };
    f.launch.kernel = "clv_array_jacobi_store";
    return clv_launch_enqueue(queue, &f.launch, store, CLV_LEN(store), NULL);
}

static int ascending(const void *left, const void *right)
{
    const float a = *(const float *)left, b = *(const float *)right;
    return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b); /* NaN last */
}

/* Returns whether all elements of the lower triangle are finite: 0 times an element is NaN if the element is NaN or
 * infinite. */
static bool is_finite(const float *matrix, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j)
            sum += 0.0f * matrix[i * n + j];
    return sum == 0;
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const batch *b = user;
    const size_t bytes = count * b->n * sizeof(float);
    const float *found;
    CLV_TRY(clv_slot_take(slot, VALUES, bytes, &found));
    float *out = b->values + first * b->n;
    memcpy(out, found, bytes);
    for (size_t i = 0; i < count; ++i) {
        /* sets NaN here, because the rotations may not spread it to the diagonal */
        if (!is_finite(b->matrices + (first + i) * b->n * b->n, b->n))
            for (size_t k = 0; k < b->n; ++k)
                out[i * b->n + k] = NAN;
        qsort(out + i * b->n, b->n, sizeof *out, ascending);
    }
    return CLV_OK;
}

/* ---- reference in plain C -------------------------------------------------------------------- */

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const batch *b = user;
    const size_t n = b->n;
    void *result;
    CLV_TRY(clv_slot_result_create(slot, VALUES, count * n * sizeof(float), &result));
    double *room = clv_alloc(clv_eigen_room(n), sizeof *room);
    if (!room)
        return clv_fail(CLV_E_MEMORY, "eigenvalues: not enough memory for a matrix [%zu,%zu]", n,
                        n);
    for (size_t m = 0; m < count; ++m)
        clv_eigen_host(b->matrices + (first + m) * n * n, n, room, (float *)result + m * n);
    clv_free(room);
    return CLV_OK;
}

/* ---- the call ---------------------------------------------------------------------------------- */

static clv_status sample(clv_context *context, const clv_call *like, double amount,
                         clv_sample *out);

static void describe(batch *b, size_t count, const clv_eigen_options *o, clv_call *c)
{
    const size_t n = b->n;
    const double each = (double)n * (double)n, many = (double)count;
    snprintf(b->kind, sizeof b->kind, "eigvalsh N%zu", n);
    b->job = (clv_job){
        .size = sizeof(clv_job),
        .name = "eigenvalues",
        .signature = b->kind,
        .units = count,
        .align = LANES,
        .min_chunk = clv_round_up(1 + 4096 / (n * n), LANES),
        .cost = cost,
        .enqueue = enqueue,
        .rehearse = true,
        .commit = commit,
        .reference = reference,
        .progress = o->progress,
        .progress_user = o->progress_user,
    };
    *c = (clv_call){ .operation = "eigvalsh",
                     .work = { .kind = b->kind,
                               .amount = many,
                               .least = 1,
                               .most = CLV_MAX(4, 4e6 / each),
                               .flops = many * (4.0 / 3 * each * (double)n + 60 * each),
                               .host_flops = 1.5e9,
                               .bytes = 4 * many * (each + (double)n),
                               .transfer_bytes = 4 * many * (each + (double)n) },
                     .job = &b->job,
                     .user = b,
                     .sample = sample };
}

/* A batch of matrices that owns its memory. */
typedef struct sampled {
    batch batch;
    clv_call call;
    float memory[];
} sampled;

/* Makes a sample: about `amount` matrices of the call's size, whose diagonals do not dominate. */
static clv_status sample(clv_context *context, const clv_call *like, double amount, clv_sample *out)
{
    static const clv_eigen_options none = { .size = sizeof(clv_eigen_options) };
    const batch *b = like->user;
    (void)context;
    const size_t count = (size_t)CLV_MAX(lrint(amount), 1L), elements = count * b->n * b->n;
    sampled *s = clv_alloc_pages(sizeof *s + (elements + count * b->n) * sizeof(float));
    if (!s) return clv_fail(CLV_E_MEMORY, "eigenvalues: not enough memory for a trial run");
    for (size_t i = 0; i < elements; ++i)
        s->memory[i] = (float)(i * 37 % 997) * 1e-3f - 0.5f;
    s->batch = (batch){ .matrices = s->memory, .values = s->memory + elements, .n = b->n };
    describe(&s->batch, count, &none, &s->call);
    *out = (clv_sample){ .call = &s->call,
                         .times = amount / (double)count, /* relative to the requested amount */
                         .result = s->memory + elements,
                         .results = count * b->n,
                         .tolerance = 1e-3,
                         .memory = s,
                         .end = clv_free };
    return CLV_OK;
}

clv_status clv_eigvalsh(clv_context *context, const float *matrices, size_t count, size_t n,
                        const clv_eigen_options *options, float *values, clv_report *report)
{
    clv_eigen_options o;
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_eigvalsh", "clv_eigen_options"));
    if (!context || ((!matrices || !values) && count))
        return clv_fail(CLV_E_ARGUMENT, "eigenvalues: context, input or result is NULL");
    if (!n || n > LARGEST)
        return clv_fail(
            CLV_E_SHAPE,
            "eigenvalues: the matrices are [%zu,%zu], but they must be square with 1 to %d rows", n,
            n, LARGEST);
    if (count > SIZE_MAX / (2 * LARGEST * LARGEST * sizeof(float)))
        return clv_fail(CLV_E_SHAPE,
                        "eigenvalues: %zu matrices need more memory than can be addressed", count);
    const size_t bytes = count * n * sizeof *values;
    if (clv_shares(values, bytes, matrices, bytes * n))
        return clv_fail(CLV_E_ARGUMENT, "eigenvalues: the result shares memory with the matrices");
    if (!count) return CLV_OK;
    batch b = { .matrices = matrices, .values = values, .n = n };
    clv_call call;
    describe(&b, count, &o, &call);
    call.report = report;
    clv_call_take_orders(&call);
    return clv_call_run(context, &call);
}
