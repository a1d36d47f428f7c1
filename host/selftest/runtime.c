/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the runtime on the device under test: transfers, a caller's kernel, a job, the program cache. */
#include "host/selftest/selftest.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/temporary.h"
#include "runtime/program/cache.h"
#include "runtime/program/program.h"
#include "runtime/record/context.h"

#include <cleave/job.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 100003, GROUP = 16, UNITS = 1009, UNIT = 16, TURNS = 40 };

/* Kernels such as a caller of the library would supply. */
static const char kernels[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "__kernel void scale(__global const uint *from, __global uint *to, uint factor, uint count)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    if (i < count) to[i] = from[i] * factor + (uint)i;\n"
    "}\n"
    "__kernel void turn_group(__global uint *values, __local uint *shared)\n"
    "{\n"
    "    const size_t me = get_local_id(0), last = get_local_size(0) - 1;\n"
    "    shared[me] = values[get_global_id(0)];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    values[get_global_id(0)] = shared[last - me];\n"
    "}\n"
    "__kernel void settle(__global const float *from, ulong offset, __global float *to)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    float x = from[offset + i];\n"
    "    for (int k = 0; k < TURNS; ++k) x = fma(x, 0.75f, 0.3125f * from[offset + i]);\n"
    "    to[i] = x;\n"
    "}\n";

static const clv_cl_source source = { "selftest.cl", kernels, sizeof kernels - 1 };

static clv_launch launch_of(const char *kernel, size_t global, size_t local)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &source,
                         .kernel = kernel,
                         .defines = { { "TURNS", TURNS } },
                         .global = { global },
                         .local = { local } };
}

static size_t count_wrong(const uint32_t *got, const uint32_t *want, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i)
        wrong += got[i] != want[i];
    return wrong;
}

/* ---- buffers and kernels ------------------------------------------------------------------------- */

typedef struct bench_top {
    clv_queue *queue;
    clv_buffer *first, *second;
    uint32_t *sent, *got, *want; /* [WORDS] */
} bench_top;

static clv_status set_up(selftest *test, bench_top *b)
{
    const size_t bytes = WORDS * sizeof(uint32_t);
    b->sent = clv_alloc_pages(bytes), b->got = clv_alloc_pages(bytes);
    b->want = clv_alloc_pages(bytes);
    if (!b->sent || !b->got || !b->want)
        return clv_fail(CLV_E_MEMORY, "not enough memory for a check");
    for (uint32_t i = 0; i < WORDS; ++i)
        b->sent[i] = i * 2654435761u + 12345;
    CLV_TRY(clv_device_open(test->device));
    CLV_TRY(clv_queue_create(test->device, &b->queue));
    CLV_TRY(clv_buffer_create(test->device, bytes, CLV_BUFFER_DEVICE, &b->first));
    return clv_buffer_create(test->device, bytes, CLV_BUFFER_DEVICE, &b->second);
}

static void tear_down(bench_top *b)
{
    clv_buffer_free(b->first), clv_buffer_free(b->second);
    clv_queue_free(b->queue);
    clv_free(b->sent), clv_free(b->got), clv_free(b->want);
}

static clv_status round_trip(const bench_top *b)
{
    memcpy(b->want, b->sent, WORDS * sizeof *b->want);
    CLV_TRY(clv_write(b->queue, b->first, 0, b->sent, WORDS * sizeof *b->sent));
    return clv_read(b->queue, b->first, 0, b->got, WORDS * sizeof *b->got);
}

/* Fills all words except the first and the last. */
static clv_status fill(const bench_top *b)
{
    const size_t inner = (WORDS - 2) * sizeof *b->got;
    for (size_t i = 1; i + 1 < WORDS; ++i)
        b->want[i] = 0xDEADBEEF;
    CLV_TRY(clv_fill_enqueue(b->queue, b->first, sizeof *b->got, inner, 0xDEADBEEF, NULL));
    return clv_read(b->queue, b->first, 0, b->got, WORDS * sizeof *b->got);
}

/* Copies the second half of one buffer to the front of another. */
static clv_status copy(const bench_top *b)
{
    const size_t half = WORDS / 2, bytes = (WORDS - half) * sizeof *b->got;
    memcpy(b->want, b->sent, WORDS * sizeof *b->want);
    memmove(b->want, b->sent + half, bytes);
    CLV_TRY(clv_write(b->queue, b->first, 0, b->sent, WORDS * sizeof *b->sent));
    CLV_TRY(clv_write(b->queue, b->second, 0, b->sent, WORDS * sizeof *b->sent));
    CLV_TRY(clv_copy_enqueue(b->queue, b->first, half * sizeof *b->got, b->second, 0, bytes, NULL));
    return clv_read(b->queue, b->second, 0, b->got, WORDS * sizeof *b->got);
}

static clv_status user_kernel(const bench_top *b)
{
    const clv_launch launch = launch_of("scale", clv_round_up(WORDS, GROUP), GROUP);
    const clv_arg args[] = { clv_arg_buffer(b->first), clv_arg_buffer(b->second), clv_arg_u32(7),
                             clv_arg_u32(WORDS) };
    for (uint32_t i = 0; i < WORDS; ++i)
        b->want[i] = b->sent[i] * 7 + i;
    CLV_TRY(clv_write(b->queue, b->first, 0, b->sent, WORDS * sizeof *b->sent));
    CLV_TRY(clv_launch_enqueue(b->queue, &launch, args, CLV_LEN(args), NULL));
    return clv_read(b->queue, b->second, 0, b->got, WORDS * sizeof *b->got);
}

static clv_status barrier_kernel(const bench_top *b)
{
    const size_t whole = WORDS / GROUP * GROUP;
    const clv_launch launch = launch_of("turn_group", whole, GROUP);
    const clv_arg args[] = { clv_arg_buffer(b->first), clv_arg_local(GROUP * sizeof(uint32_t)) };
    memcpy(b->want, b->sent, WORDS * sizeof *b->want);
    for (size_t i = 0; i < whole; ++i)
        b->want[i] = b->sent[i / GROUP * GROUP + GROUP - 1 - i % GROUP];
    CLV_TRY(clv_write(b->queue, b->first, 0, b->sent, WORDS * sizeof *b->sent));
    CLV_TRY(clv_launch_enqueue(b->queue, &launch, args, CLV_LEN(args), NULL));
    return clv_read(b->queue, b->first, 0, b->got, WORDS * sizeof *b->got);
}

static void check_device(selftest *test)
{
    static const struct {
        const char *name;
        clv_status (*run)(const bench_top *);
    } checks[] = {
        { "buffer round trip", round_trip },
        { "fill", fill },
        { "copy", copy },
        { "a caller's kernel", user_kernel },
        { "local memory, barrier", barrier_kernel },
    };
    bench_top b = { 0 };
    selftest_begin(test, "open the device");
    clv_status status = set_up(test, &b);
    selftest_end(test, status, 0, 0);
    for (size_t i = 0; i < CLV_LEN(checks) && !status; ++i) {
        selftest_begin(test, "%s", checks[i].name);
        const clv_status found = checks[i].run(&b);
        selftest_end(test, found, found ? 0 : (double)count_wrong(b.got, b.want, WORDS), 0);
    }
    tear_down(&b);
}

/* ---- a job --------------------------------------------------------------------------------------- */

typedef struct settling {
    float *from, *to; /* [UNITS,UNIT] */
} settling;

static clv_cost job_cost(size_t first, size_t count, void *user)
{
    const double bytes = (double)(count * UNIT * sizeof(float));
    (void)first, (void)user;
    return (clv_cost){ .flops = (double)(count * UNIT) * 2 * TURNS,
                       .traffic_bytes = 2 * bytes,
                       .transfer_bytes = 2 * bytes,
                       .memory_bytes = (uint64_t)(2 * bytes) };
}

enum { FROM, TO };

static clv_status job_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const settling *s = user;
    const clv_box box = { .host = s->from + first * UNIT,
                          .element_bytes = sizeof(float),
                          .extent = { 1, count, UNIT },
                          .stride = { count * UNIT, UNIT, 1 } };
    clv_place from;
    clv_buffer *to;
    CLV_TRY(clv_slot_input(slot, FROM, &box, &from));
    CLV_TRY(clv_slot_output(slot, TO, count * UNIT * sizeof(float), &to));
    const clv_launch launch = launch_of("settle", count * UNIT, UNIT);
    const clv_arg args[] = { clv_arg_buffer(from.buffer), clv_arg_u64(from.offset),
                             clv_arg_buffer(to) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL);
}

static clv_status job_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const settling *s = user;
    memcpy(s->to + first * UNIT, clv_slot_result(slot, TO), count * UNIT * sizeof(float));
    return CLV_OK;
}

/* Runs the job on a context of its own, with chunks of `batch` units and with the program cache in the folder
 * `cache`. */
static clv_status run_job(const selftest *test, size_t batch, const char *cache, settling *s,
                          bool *from_disk, size_t *entries)
{
    clv_context_options options = test->options;
    clv_context *context;
    clv_program *program;
    options.batch = batch;
    options.cache_dir = cache;
    CLV_TRY(clv_context_create(&options, &context));
    const clv_job job = { .size = sizeof(clv_job),
                          .name = "selftest",
                          .units = UNITS,
                          .cost = job_cost,
                          .enqueue = job_enqueue,
                          .commit = job_commit };
    clv_status status = clv_job_run(context, &job, s, NULL);
    if (!status) {
        const clv_define defines[CLV_MAX_DEFINES] = { { "TURNS", TURNS } };
        status = clv_program_get(clv_context_device(context, 0), &source, defines, &program);
        if (!status) *from_disk = program->from_disk;
    }
    clv_context_free(context);
    if (!status) {
        clv_cache kept;
        clv_cache_open(&kept, cache);
        *entries = clv_cache_measure(&kept).entries;
    }
    return status;
}

static double worst_error(const settling *s)
{
    double worst = 0;
    for (size_t i = 0; i < (size_t)UNITS * UNIT; ++i) {
        float x = s->from[i];
        for (int k = 0; k < TURNS; ++k)
            x = fmaf(x, 0.75f, 0.3125f * s->from[i]);
        worst = cli_worse(worst, fabs((double)s->to[i] - x) / fabs((double)x));
    }
    return worst;
}

/* Runs the job in one chunk with an empty cache; then in many chunks, with the program from the cache. */
static void check_job_in(selftest *test, const char *cache, settling *s)
{
    const size_t values = (size_t)UNITS * UNIT;
    float *once = clv_alloc(values, sizeof *once);
    size_t entries = 0;
    bool from_disk = false;
    selftest_begin(test, "a job");
    clv_status status = once ? run_job(test, UNITS, cache, s, &from_disk, &entries)
                             : clv_fail(CLV_E_MEMORY, "not enough memory for a check");
    selftest_end(test, status, status ? 0 : worst_error(s), 1e-6);
    if (status) {
        clv_free(once);
        return;
    }
    memcpy(once, s->to, values * sizeof *once);
    memset(s->to, 0, values * sizeof *s->to);

    selftest_begin(test, "the same in 78 chunks: bits");
    status = run_job(test, 13, cache, s, &from_disk, &entries);
    selftest_end(test, status,
                 status ? 0
                        : (double)count_wrong((const uint32_t *)(const void *)s->to,
                                              (const uint32_t *)(const void *)once, values),
                 0);
    clv_free(once);
    if (status) return;
    if (entries) {
        selftest_also(test, from_disk ? 0 : 1, 0, "program cache round trip");
    } else {
        selftest_begin(test, "program cache round trip");
        selftest_skip(test, "the driver gives no program binaries");
    }
}

static void check_job(selftest *test)
{
    char cache[4096];
    settling s = { clv_alloc_pages((size_t)UNITS * UNIT * sizeof(float)),
                   clv_alloc_pages((size_t)UNITS * UNIT * sizeof(float)) };
    if (!s.from || !s.to || !clv_temporary_folder("selftest", cache, sizeof cache)) {
        selftest_begin(test, "a job");
        selftest_end(test, clv_fail(CLV_E_IO, "not enough memory, or no temporary folder"), 0, 0);
    } else {
        for (size_t i = 0; i < (size_t)UNITS * UNIT; ++i)
            s.from[i] = 0.5f + (float)i / (UNITS * UNIT);
        check_job_in(test, cache, &s);
        clv_temporary_remove(cache);
    }
    clv_free(s.from), clv_free(s.to);
}

void selftest_runtime(selftest *test)
{
    check_device(test);
    check_job(test);
}
