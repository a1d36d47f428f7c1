/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a device computes correctly, with small kernels whose results are known. */
#include "probe/measure/check.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/opencl/rig.h"

#include "cl_embedded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 512, LOOP_ITEMS = 16, LOOP_TURNS = 100000 };
enum { M = 33, N = 29, K = 67 }; /* not multiples of any tile size */

static const double gemm_tolerance = 1e-5; /* relative to the sum of |a * b| */

typedef struct bench {
    clv_rig rig;
    const clv_probe_device *device;
    clv_probe_check *found;
    size_t group, tile; /* size of a work-group; side of a tile, or 0 for no tiles */
    cl_uint in[ITEMS], out[ITEMS];
    float a[M * K], b[K * N], c[M * N];
} bench;

static clv_status differs(const char *what, size_t index, double got, double want)
{
    return clv_fail(CLV_E_WRONG_RESULT, "%s: item %zu is %.9g, expected %.9g", what, index, got,
                    want);
}

static void choose_geometry(bench *t)
{
    const size_t most = CLV_MIN(t->device->max_work_group, t->device->max_work_item_sizes[0]);
    t->group = 1;
    while (t->group < 64 && t->group * 2 <= most)
        t->group *= 2;
    t->tile = most >= 64 && t->device->max_work_item_sizes[1] >= 8 ? 8 : 0;
}

static clv_status build(bench *t)
{
    char options[160], tile[40] = "";
    const double start = clv_now();
    if (t->tile) snprintf(tile, sizeof tile, " -DTILE=%zu", t->tile);
    snprintf(options, sizeof options, "-DWG=%zu%s%s%s", t->group, tile,
             t->device->fp64 ? " -DFP64" : "", t->device->fp16 ? " -DFP16" : "");
    CLV_TRY(clv_rig_build(&t->rig, &clv_cl_probe_check, options));
    t->found->build_s = clv_now() - start;
    return CLV_OK;
}

static clv_status check_ids(bench *t)
{
    const cl_uint seed = 12345;
    const clv_rig_arg args[] = { { &seed, sizeof seed } };
    const clv_rig_launch launch = { .kernel = "clv_check_ids",
                                    .buffer_count = 1,
                                    .args = args,
                                    .arg_count = 1,
                                    .dimensions = 1,
                                    .global = { ITEMS },
                                    .local = { t->group } };
    CLV_TRY(clv_rig_buffer(&t->rig, 0, sizeof t->out, NULL));
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 0, t->out, sizeof t->out));
    for (cl_uint i = 0; i < ITEMS; ++i)
        if (t->out[i] != i * 2654435761u + seed)
            return differs("work-item ids", i, t->out[i], i * 2654435761u + seed);
    return CLV_OK;
}

static clv_status check_local(bench *t)
{
    const clv_rig_launch launch = { .kernel = "clv_check_local",
                                    .buffer_count = 2,
                                    .dimensions = 1,
                                    .global = { ITEMS },
                                    .local = { t->group } };
    CLV_TRY(clv_rig_buffer(&t->rig, 0, sizeof t->in, t->in));
    CLV_TRY(clv_rig_buffer(&t->rig, 1, sizeof t->out, NULL));
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 1, t->out, sizeof t->out));
    const size_t wg = t->group;
    for (size_t i = 0; i < ITEMS; ++i) {
        /* out[k] = shifted[WG-1-k] = tile[(WG-k) % WG] = in[WG-1-(WG-k)%WG] */
        const size_t first = i / wg * wg, k = i % wg;
        const cl_uint want = t->in[first + wg - 1 - (wg - k) % wg];
        if (t->out[i] != want) return differs("local memory and barriers", i, t->out[i], want);
    }
    return CLV_OK;
}

static clv_status check_tree(bench *t)
{
    const clv_rig_launch launch = { .kernel = "clv_check_tree",
                                    .buffer_count = 2,
                                    .dimensions = 1,
                                    .global = { ITEMS },
                                    .local = { t->group } };
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 1, t->out, sizeof t->out));
    for (size_t g = 0; g < ITEMS / t->group; ++g) {
        cl_uint want = 0;
        for (size_t k = 0; k < t->group; ++k)
            want += t->in[g * t->group + k];
        if (t->out[g] != want) return differs("a loop over barriers", g, t->out[g], want);
    }
    return CLV_OK;
}

static cl_uint xorshift(cl_uint x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

/* Returns the number of steps after which a generator that starts at `state` reaches `reached`; tries at most
 * `most`. */
static uint64_t turns_made(cl_uint state, cl_uint reached, uint64_t most)
{
    for (uint64_t t = 0; t <= most; ++t, state = xorshift(state))
        if (state == reached) return t;
    return CLV_UNKNOWN;
}

static clv_status compare_loops(bench *t)
{
    for (cl_uint i = 0; i < LOOP_ITEMS; ++i) {
        const uint64_t made = turns_made(i + 1, t->out[i], LOOP_TURNS);
        if (made == CLV_UNKNOWN || !made) /* a limit of 0 would mean that there is none */
            return clv_fail(CLV_E_WRONG_RESULT,
                            "a loop of %d iterations gave a wrong result in work-item %u",
                            LOOP_TURNS, i);
        if (made < LOOP_TURNS) t->found->loop_limit = CLV_MIN(t->found->loop_limit, made);
    }
    return CLV_OK;
}

/* Checks, with a kernel that takes a while, whether clFinish waits and whether event times are meaningful. */
static clv_status check_events(bench *t, const clv_rig_launch *launch, cl_kernel kernel)
{
    cl_event event;
    cl_int ended = CL_COMPLETE;
    cl_ulong begin = 0, end = 0;
    const double start = clv_now();
    cl_int code = clEnqueueNDRangeKernel(t->rig.queue, kernel, 1, NULL, launch->global,
                                         launch->local, 0, NULL, &event);
    if (code != CL_SUCCESS) return clv_rig_fail("clEnqueueNDRangeKernel", code);
    clFlush(t->rig.queue);
    clFinish(t->rig.queue);
    code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended, NULL);
    t->found->finish_waits = code == CL_SUCCESS && ended == CL_COMPLETE ? CLV_YES : CLV_NO;
    code = clWaitForEvents(1, &event);
    const double host_s = clv_now() - start;
    if (code == CL_SUCCESS && t->device->profiling) {
        const bool told = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin,
                                                  &begin, NULL) == CL_SUCCESS &&
                          clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                                  NULL) == CL_SUCCESS;
        const double device_s = told && end > begin ? 1e-9 * (double)(end - begin) : 0;
        t->found->event_times =
            device_s > 0.01 * host_s && device_s < 1.1 * host_s + 1e-3 ? CLV_YES : CLV_NO;
    }
    clReleaseEvent(event);
    return code == CL_SUCCESS ? CLV_OK : clv_rig_fail("clWaitForEvents", code);
}

static clv_status check_loop(bench *t)
{
    const cl_uint turns = LOOP_TURNS;
    const clv_rig_arg args[] = { { &turns, sizeof turns } };
    const clv_rig_launch launch = { .kernel = "clv_check_loop",
                                    .buffer_count = 1,
                                    .args = args,
                                    .arg_count = 1,
                                    .dimensions = 1,
                                    .global = { LOOP_ITEMS },
                                    .local = { 1 } };
    cl_kernel kernel = NULL;
    for (cl_uint i = 0; i < LOOP_ITEMS; ++i)
        t->out[i] = i + 1;
    CLV_TRY(clv_rig_buffer(&t->rig, 0, LOOP_ITEMS * sizeof *t->out, t->out));
    CLV_TRY(clv_rig_kernel(&t->rig, &launch, &kernel));
    clv_status status = clv_rig_time(&t->rig, &launch, kernel, NULL);
    if (!status) status = clv_rig_read(&t->rig, 0, t->out, LOOP_ITEMS * sizeof *t->out);
    if (!status) status = compare_loops(t);
    if (!status) status = check_events(t, &launch, kernel);
    clReleaseKernel(kernel);
    return status;
}

static clv_status compare_gemm(bench *t, const char *what)
{
    for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < N; ++n) {
            double want = 0, size = 0;
            for (size_t k = 0; k < K; ++k) {
                const double term = (double)t->a[m * K + k] * (double)t->b[k * N + n];
                want += term;
                size += fabs(term);
            }
            const double error = fabs((double)t->c[m * N + n] - want) / size;
            if (!(error <= gemm_tolerance))
                return differs(what, m * N + n, (double)t->c[m * N + n], want);
            t->found->max_error = fmax(t->found->max_error, error);
        }
    return CLV_OK;
}

static clv_status run_gemm(bench *t, bool tiled)
{
    const cl_uint m = M, n = N, k = K;
    const clv_rig_arg args[] = { { &m, sizeof m }, { &n, sizeof n }, { &k, sizeof k } };
    clv_rig_launch launch = { .kernel = "clv_check_gemm",
                              .buffer_count = 3,
                              .args = args,
                              .arg_count = 3,
                              .dimensions = 1,
                              .global = { clv_round_up((size_t)M * N, t->group) },
                              .local = { t->group } };
    if (tiled) {
        launch.kernel = "clv_check_gemm_tiled";
        launch.dimensions = 2;
        launch.global[0] = clv_round_up(N, t->tile), launch.global[1] = clv_round_up(M, t->tile);
        launch.local[0] = launch.local[1] = t->tile;
    }
    memset(t->c, 0xFF, sizeof t->c); /* fills with NaN, so that an unwritten element is wrong */
    CLV_TRY(clv_rig_buffer(&t->rig, 2, sizeof t->c, t->c));
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 2, t->c, sizeof t->c));
    return compare_gemm(t, tiled ? "a matrix product in tiles" : "a matrix product");
}

static clv_status check_gemm(bench *t)
{
    cl_uint x = 1;
    for (size_t i = 0; i < CLV_LEN(t->a); ++i)
        t->a[i] = (float)((x = xorshift(x)) % 2001) / 1000 - 1;
    for (size_t i = 0; i < CLV_LEN(t->b); ++i)
        t->b[i] = (float)((x = xorshift(x)) % 2001) / 1000 - 1;
    CLV_TRY(clv_rig_buffer(&t->rig, 0, sizeof t->a, t->a));
    CLV_TRY(clv_rig_buffer(&t->rig, 1, sizeof t->b, t->b));
    CLV_TRY(run_gemm(t, false));
    return t->tile ? run_gemm(t, true) : CLV_OK;
}

static clv_status check_fp64(bench *t)
{
    enum { COUNT = 64 };
    const double tiny = 0x1p-40;
    double out[COUNT];
    const clv_rig_arg args[] = { { &tiny, sizeof tiny } };
    const clv_rig_launch launch = { .kernel = "clv_check_fp64",
                                    .buffer_count = 1,
                                    .args = args,
                                    .arg_count = 1,
                                    .dimensions = 1,
                                    .global = { COUNT },
                                    .local = { 1 } };
    CLV_TRY(clv_rig_buffer(&t->rig, 0, sizeof out, NULL));
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 0, out, sizeof out));
    for (int i = 0; i < COUNT; ++i) {
        const double x = 1 + tiny * (i + 1), want = fma(x, x, -1);
        if (out[i] != want) return differs("fp64, which it promises,", (size_t)i, out[i], want);
    }
    return CLV_OK;
}

static clv_status check_fp16(bench *t)
{
    enum { COUNT = 64 };
    float out[COUNT];
    const clv_rig_launch launch = { .kernel = "clv_check_fp16",
                                    .buffer_count = 1,
                                    .dimensions = 1,
                                    .global = { COUNT },
                                    .local = { 1 } };
    CLV_TRY(clv_rig_buffer(&t->rig, 0, sizeof out, NULL));
    CLV_TRY(clv_rig_run(&t->rig, &launch));
    CLV_TRY(clv_rig_read(&t->rig, 0, out, sizeof out));
    for (int i = 0; i < COUNT; ++i) {
        const float want = (float)(i % 32 * (i % 32) + 1);
        if (out[i] != want)
            return differs("fp16, which it promises,", (size_t)i, (double)out[i], (double)want);
    }
    return CLV_OK;
}

static clv_status run_all(bench *t)
{
    CLV_TRY(clv_rig_open(&t->rig, t->device));
    choose_geometry(t);
    CLV_TRY(build(t));
    const double start = clv_now();
    for (cl_uint i = 0; i < ITEMS; ++i)
        t->in[i] = i * i + 7;
    CLV_TRY(check_ids(t));
    CLV_TRY(check_local(t));
    CLV_TRY(check_tree(t));
    CLV_TRY(check_loop(t));
    CLV_TRY(check_gemm(t));
    if (t->device->fp64) CLV_TRY(check_fp64(t));
    if (t->device->fp16) CLV_TRY(check_fp16(t));
    t->found->run_s = clv_now() - start;
    return CLV_OK;
}

/* Copies the first line of a build log that has text. */
static void first_line(const char *log, char *out, size_t capacity)
{
    while (*log == '\n' || *log == ' ')
        ++log;
    clv_copy_string(out, CLV_MIN(capacity, strcspn(log, "\n") + 1), log);
}

void clv_check_device(const clv_probe_device *device, clv_check *found)
{
    bench *t = clv_zalloc(1, sizeof *t);
    *found = (clv_check){
        .check = { .build_s = -1, .run_s = -1, .max_error = 0, .loop_limit = CLV_UNKNOWN }
    };
    if (!t) return; /* the check counts as not done if memory runs out */
    t->device = device;
    t->found = &found->check;
    const clv_status status = run_all(t);
    clv_rig_close(&t->rig);
    clv_free(t);
    found->check.done = true;
    found->check.ok = status == CLV_OK;
    if (!status) return;
    char line[200];
    first_line(clv_error_detail(), line, sizeof line);
    snprintf(found->message, sizeof found->message, "%.190s%s%s", clv_error_message(),
             *line ? ": " : "", line);
    found->check.message = found->message;
}
