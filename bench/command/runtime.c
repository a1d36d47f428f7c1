/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the runtime itself in `cleave bench`: latencies, bandwidths, the cost of a chunk, and whether several
 * devices together keep the time that the balancer promises. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

enum {
    ROUNDS = 9,
    LAUNCHES = 100,
    TRANSFER_BYTES = 64 << 20,
    POOL_BYTES = 16 << 20,
    CHUNKS = 256,
    GROUP = 16, /* work-items of a unit, each with 16 numbers */
    UNIT = GROUP * 16,
};

static const double contest_s =
    1.2; /* seconds on the best device alone: the balancer's promise is for jobs of a second and more */

static const char kernels[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "__kernel void nothing(__global uint *out) { if (get_global_id(0) > 1000) out[0] = 1; }\n"
    "__kernel void work(__global float *out, uint turns)\n"
    "{\n"
    "    float16 x = (float16)((float)get_global_id(0)), y = x + 1.0f, z = x + 2.0f, w = x + "
    "3.0f;\n"
    "    for (uint k = 0; k < turns; ++k) {\n"
    "        x = fma(x, (float16)(0.9f), (float16)(0.1f));\n"
    "        y = fma(y, (float16)(0.9f), (float16)(0.1f));\n"
    "        z = fma(z, (float16)(0.9f), (float16)(0.1f));\n"
    "        w = fma(w, (float16)(0.9f), (float16)(0.1f));\n"
    "    }\n"
    "    vstore16(x + y + z + w, get_global_id(0), out);\n"
    "}\n";

static const clv_cl_source source = { "bench.cl", kernels, sizeof kernels - 1 };

static clv_launch launch_of(const char *kernel, size_t global, size_t local)
{
    return (clv_launch){ .size = sizeof(clv_launch),
                         .source = &source,
                         .kernel = kernel,
                         .global = { global },
                         .local = { local } };
}

/* ---- one device -------------------------------------------------------------------------------------- */

static clv_status launch_nothing(clv_queue *queue, const clv_buffer *buffer)
{
    const clv_launch launch = launch_of("nothing", 1, 1);
    const clv_arg argument = clv_arg_buffer(buffer);
    return clv_launch_enqueue(queue, &launch, &argument, 1, NULL);
}

static clv_status measure_launches(bench_run *run, clv_queue *queue, const clv_buffer *buffer)
{
    double waited[ROUNDS], rows[ROUNDS];
    for (int round = -1; round < ROUNDS; ++round) { /* the first round compiles and warms up */
        double each[LAUNCHES];
        for (int i = 0; i < LAUNCHES; ++i) {
            const double started = clv_now();
            CLV_TRY(launch_nothing(queue, buffer));
            CLV_TRY(clv_queue_wait(queue));
            each[i] = (clv_now() - started) * 1e6;
        }
        const double started = clv_now();
        for (int i = 0; i < LAUNCHES; ++i)
            CLV_TRY(launch_nothing(queue, buffer));
        CLV_TRY(clv_queue_wait(queue));
        if (round < 0) continue;
        rows[round] = (clv_now() - started) * 1e6 / LAUNCHES;
        waited[round] = bench_stat_of(each, LAUNCHES).median;
    }
    bench_send_fact(run, "launch a kernel and wait for it", "us", waited, ROUNDS);
    bench_send_fact(run, "launch, one of many in a row", "us", rows, ROUNDS);
    return CLV_OK;
}

static clv_status measure_transfers(bench_run *run, clv_queue *queue, clv_device *device)
{
    double to[ROUNDS], from[ROUNDS];
    clv_buffer *buffer = NULL;
    char *host = clv_alloc_pages(TRANSFER_BYTES);
    clv_status status = host ? clv_buffer_create(device, TRANSFER_BYTES, CLV_BUFFER_DEVICE, &buffer)
                             : clv_fail(CLV_E_MEMORY, "not enough memory to measure transfers");
    if (host) memset(host, 1, TRANSFER_BYTES);
    for (int round = -1; round < ROUNDS && !status; ++round) {
        const double started = clv_now();
        status = clv_write(queue, buffer, 0, host, TRANSFER_BYTES);
        const double middle = clv_now();
        if (!status) status = clv_read(queue, buffer, 0, host, TRANSFER_BYTES);
        if (round < 0) continue; /* touches the pages */
        to[round] = TRANSFER_BYTES / (middle - started) * 1e-9;
        from[round] = TRANSFER_BYTES / (clv_now() - middle) * 1e-9;
    }
    if (!status) {
        bench_send_fact(run, "64 MiB to the device", "GB/s", to, ROUNDS);
        bench_send_fact(run, "64 MiB from the device", "GB/s", from, ROUNDS);
    }
    clv_buffer_free(buffer);
    clv_free(host);
    return status;
}

/* Measures how long it takes to get memory that the pool kept, and memory from the driver. */
static clv_status measure_pool(bench_run *run, clv_device *device)
{
    double raw[ROUNDS], kept[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        clv_buffer *buffer;
        clv_device_trim(device);
        double started = clv_now();
        CLV_TRY(clv_buffer_create(device, POOL_BYTES, CLV_BUFFER_DEVICE, &buffer));
        raw[round] = (clv_now() - started) * 1e6;
        clv_buffer_free(buffer);
        started = clv_now();
        CLV_TRY(clv_buffer_create(device, POOL_BYTES, CLV_BUFFER_DEVICE, &buffer));
        kept[round] = (clv_now() - started) * 1e6;
        clv_buffer_free(buffer);
    }
    bench_send_fact(run, "a buffer of 16 MiB from the driver", "us", raw, ROUNDS);
    bench_send_fact(run, "the same from the pool", "us", kept, ROUNDS);
    return CLV_OK;
}

/* ---- jobs ---------------------------------------------------------------------------------------------- */

typedef struct spinning {
    uint32_t turns;
    float *out; /* [units]: one number per unit */
} spinning;

enum { OUT };

static clv_cost job_cost(size_t first, size_t count, void *user)
{
    const spinning *s = user;
    (void)first;
    return (clv_cost){ .flops = (double)count * GROUP * 128 * s->turns,
                       .traffic_bytes = (double)(count * UNIT * sizeof(float)),
                       .transfer_bytes = (double)(count * UNIT * sizeof(float)),
                       .memory_bytes = count * UNIT * sizeof(float) };
}

static clv_status job_enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const spinning *s = user;
    clv_buffer *out;
    (void)first;
    CLV_TRY(clv_slot_output(slot, OUT, count * UNIT * sizeof(float), &out));
    const clv_launch launch = launch_of("work", count * GROUP, GROUP);
    const clv_arg args[] = { clv_arg_buffer(out), clv_arg_u32(s->turns) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL);
}

static clv_status job_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    const spinning *s = user;
    const float *result = clv_slot_result(slot, OUT);
    for (size_t i = 0; i < count; ++i)
        s->out[first + i] = result[i * UNIT];
    return CLV_OK;
}

static clv_status run_job(clv_context *context, const char *name, size_t units, uint32_t turns,
                          double *seconds)
{
    spinning s = { .turns = turns, .out = clv_alloc(units, sizeof(float)) };
    const clv_job job = { .size = sizeof(clv_job),
                          .name = name,
                          .units = units,
                          .cost = job_cost,
                          .enqueue = job_enqueue,
                          .commit = job_commit };
    if (!s.out) return clv_fail(CLV_E_MEMORY, "not enough memory for a job");
    const double started = clv_now();
    const clv_status status = clv_job_run(context, &job, &s, NULL);
    *seconds = clv_now() - started;
    clv_free(s.out);
    return status;
}

/* Measures a job of many chunks that contain almost no work. */
static clv_status measure_chunks(bench_run *run)
{
    const bench_party *party = &run->bench->parties[run->party];
    const clv_context_options options = { .size = sizeof options,
                                          .devices = party->selection,
                                          .batch = 1,
                                          .schedule = CLV_SCHEDULE_DYNAMIC,
                                          .bind_threads = true };
    double values[ROUNDS];
    clv_context *context;
    CLV_TRY(clv_context_create(&options, &context));
    clv_status status = CLV_OK;
    for (int round = -1; round < ROUNDS && !status; ++round) {
        double seconds = 0;
        status = run_job(context, "bench-chunks", CHUNKS, 1, &seconds);
        if (round >= 0) values[round] = seconds * 1e6 / CHUNKS;
    }
    clv_context_free(context);
    if (!status) bench_send_fact(run, "a chunk of a job, nothing to do", "us", values, ROUNDS);
    return status;
}

/* ---- several devices --------------------------------------------------------------------------------- */

enum { CONTEST_ROUNDS = 5, CONTEST_UNITS = 4096 };

typedef struct contest {
    clv_context *alone[BENCH_MOST_SHARES], *together;
    size_t count;
    uint32_t turns;
} contest;

static clv_status open_contest(const bench_run *run, contest *c)
{
    const size_t devices = clv_context_device_count(run->context);
    c->together = run->context;
    for (size_t i = 0; i < devices && c->count < CLV_LEN(c->alone); ++i) {
        const clv_probe_device *facts = clv_device_facts(clv_context_device(run->context, i));
        const clv_probe_report *probe = clv_context_probe(run->context);
        char selection[24];
        snprintf(selection, sizeof selection, "%zu", (size_t)(facts - probe->devices));
        const clv_context_options options = { .size = sizeof options,
                                              .devices = selection,
                                              .bind_threads = true };
        CLV_TRY(clv_context_create(&options, &c->alone[c->count]));
        ++c->count;
    }
    return CLV_OK;
}

/* Enlarges the job until the best device needs contest_s; by then its speed is on record. */
static clv_status calibrate(contest *c)
{
    c->turns = 16;
    for (;;) {
        double best = INFINITY;
        for (size_t i = 0; i < c->count; ++i) {
            double seconds = 0;
            CLV_TRY(run_job(c->alone[i], "bench-contest", CONTEST_UNITS, c->turns, &seconds));
            best = fmin(best, seconds);
        }
        if (best >= 0.8 * contest_s || c->turns > UINT32_MAX / 64) return CLV_OK;
        const double factor = fmin(fmax(contest_s / best, 1.3), 32);
        c->turns = (uint32_t)((double)c->turns * factor);
    }
}

static clv_status hold_contest(bench_run *run, contest *c)
{
    double together[CONTEST_ROUNDS], alone[BENCH_MOST_SHARES][CONTEST_ROUNDS];
    double best = INFINITY, speed = 0, ratio[CONTEST_ROUNDS], warm_up;
    CLV_TRY(calibrate(c));
    CLV_TRY(run_job(c->together, "bench-contest", CONTEST_UNITS, c->turns, &warm_up));
    for (int round = 0; round < CONTEST_ROUNDS; ++round) { /* in turns: load slows all contexts */
        for (size_t i = 0; i < c->count; ++i)
            CLV_TRY(
                run_job(c->alone[i], "bench-contest", CONTEST_UNITS, c->turns, &alone[i][round]));
        CLV_TRY(run_job(c->together, "bench-contest", CONTEST_UNITS, c->turns, &together[round]));
    }
    for (size_t i = 0; i < c->count; ++i) {
        const double median = bench_stat_of(alone[i], CONTEST_ROUNDS).median;
        best = fmin(best, median);
        speed += 1 / median;
    }
    for (int round = 0; round < CONTEST_ROUNDS; ++round)
        ratio[round] = together[round] / best;
    const double ideal[] = { 1 / speed / best };
    bench_send_fact(run, "all devices against the best alone", "times", ratio, CONTEST_ROUNDS);
    bench_send_fact(run, "the same if they did not disturb", "times", ideal, 1);
    return CLV_OK;
}

static clv_status measure_together(bench_run *run)
{
    contest c = { 0 };
    bench_say(run, "runtime: all devices against the best alone");
    clv_status status = open_contest(run, &c);
    if (!status) status = hold_contest(run, &c);
    for (size_t i = 0; i < c.count; ++i)
        clv_context_free(c.alone[i]);
    return status;
}

static clv_status measure_alone(bench_run *run)
{
    clv_device *device = clv_context_device(run->context, 0);
    clv_queue *queue = NULL;
    clv_buffer *buffer = NULL;
    bench_say(run, "runtime: launches, transfers, pool, chunks");
    CLV_TRY(clv_device_open(device));
    clv_status status = clv_queue_create(device, &queue);
    if (!status) status = clv_buffer_create(device, 64, CLV_BUFFER_DEVICE, &buffer);
    if (!status) status = measure_launches(run, queue, buffer);
    if (!status) status = measure_transfers(run, queue, device);
    if (!status) status = measure_pool(run, device);
    clv_buffer_free(buffer);
    clv_queue_free(queue);
    return status ? status : measure_chunks(run);
}

clv_status bench_runtime(bench_run *run)
{
    return run->bench->parties[run->party].kind == BENCH_TOGETHER ? measure_together(run)
                                                                  : measure_alone(run);
}
