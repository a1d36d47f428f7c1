/* SPDX-License-Identifier: Apache-2.0 */
/* Tests functions of the caller that call the library from inside a call: no call may wait for itself. */
#include "device.h"
#include "test.h"

#include "base/alloc.h"

#include <cleave/array.h>
#include <cleave/array_data.h>
#include <cleave/array_fold.h>
#include <cleave/blas.h>
#include <cleave/job.h>
#include <cleave/offload.h>

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { N = 96, UNITS = 4 };

typedef struct world {
    clv_context *context;
    clv_array *there; /* lies on the device */
    float *a, *b, *c;
    atomic_int inside; /* calls of ours that came back */
} world;

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    clv_buffer *out;
    (void)first, (void)user;
    CLV_TRY(clv_slot_output(slot, 0, count * sizeof(float), &out));
    return clv_fill_enqueue(clv_slot_queue(slot), out, 0, count * sizeof(float), 0, NULL);
}

static clv_status leave(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count, (void)user;
    return CLV_OK;
}

static const clv_job nothing = {
    .size = sizeof(clv_job),
    .name = "nothing",
    .units = UNITS,
    .enqueue = enqueue,
    .commit = leave,
    .unit_cost = { .flops = 1, .traffic_bytes = 4, .memory_bytes = 4 },
};

/* What can be done at all, even if another call holds the devices. */
static void call_the_host(world *w)
{
    float *out = clv_zalloc(N * N, sizeof *out), kernel[9] = { 0, 0, 0, 0, 1, 0, 0, 0, 0 };
    clv_offload how;
    const clv_side before = clv_offload_force(CLV_SIDE_AUTO);
    EXPECT_OK(clv_matmul_f32(w->context, N, N, N, w->a, w->b, out));
    EXPECT_OK(clv_offload_last(&how));
    assert_int_equal(how.side, CLV_SIDE_HOST);
    float want = 0;
    for (size_t q = 0; q < N; ++q)
        want += w->a[q] * w->b[q * N];
    assert_true(fabsf(out[0] - want) < 1e-4f);
    EXPECT_OK(clv_convolve_2d(w->context, w->a, N, N, kernel, 3, 3, NULL, out, NULL));
    assert_memory_equal(out, w->a, sizeof *out * N * N);
    EXPECT_OK(clv_sync(w->context));
    EXPECT_FAIL(CLV_E_BUSY, "nothing: called from inside another call",
                clv_job_run(w->context, &nothing, NULL, NULL));
    (void)clv_offload_force(CLV_SIDE_DEVICE);
    EXPECT_FAIL(CLV_E_BUSY, "matmul: called from inside",
                clv_matmul_f32(w->context, N, N, N, w->a, w->b, out));
    (void)clv_offload_force(before);
    if (w->there)
        EXPECT_FAIL(CLV_E_BUSY, "an array's contents: called from inside",
                    clv_array_get(w->there, out));
    clv_free(out);
    atomic_fetch_add(&w->inside, 1);
}

static int from_progress(const char *job, size_t done, size_t total, void *user)
{
    (void)job, (void)done, (void)total;
    call_the_host(user);
    return 0;
}

static clv_status from_commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count;
    call_the_host(user);
    return CLV_OK;
}

static clv_status from_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    (void)slot, (void)first, (void)count;
    call_the_host(user);
    return CLV_OK;
}

static void call_from_each(world *w, bool plain)
{
    clv_job job = nothing;
    job.progress = from_progress, job.progress_user = w;
    if (plain) job.reference = from_reference;
    EXPECT_OK(clv_job_run(w->context, &job, w, NULL));
    assert_true(w->inside >= (plain ? 1 + UNITS : 1)); /* progress may be told more than once */
    job.commit = from_commit;
    EXPECT_OK(clv_job_run(w->context, &job, w, NULL));
    if (plain) return;
    clv_matmul_options o = { .size = sizeof o, .progress = from_progress, .progress_user = w };
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    w->inside = 0;
    EXPECT_OK(clv_matmul(w->context, N, N, N, w->a, w->b, &o, w->c));
    (void)clv_offload_force(before);
    assert_true(w->inside >= 1);
    EXPECT_OK(clv_job_run(w->context, &nothing, NULL, NULL)); /* all is as before */
}

static void each_device(test_device *device, world *w)
{
    const size_t shape[2] = { N, N };
    clv_array *in;
    w->context = device->context;
    EXPECT_OK(clv_array_from(device->context, w->a, 2, shape, &in));
    const clv_side before = clv_offload_force(CLV_SIDE_DEVICE);
    EXPECT_OK(clv_array_create(device->context, 2, shape, &w->there));
    EXPECT_OK(clv_array_fold(device->context, CLV_FOLD_SUM, in, 0, w->there));
    (void)clv_offload_force(before);
    assert_true(clv_array_is_on_device(w->there));
    call_from_each(w, false);
    clv_array_free(in), clv_array_free(w->there);
}

static void nobody_waits_for_himself(void **state)
{
    (void)state;
    world w = { .a = clv_zalloc(N * N, sizeof *w.a),
                .b = clv_zalloc(N * N, sizeof *w.b),
                .c = clv_zalloc(N * N, sizeof *w.c) };
    uint64_t seed = 5;
    for (size_t i = 0; i < N * N; ++i)
        w.a[i] = (float)test_uniform(&seed, -1, 1), w.b[i] = (float)test_uniform(&seed, -1, 1);
    for (size_t i = 0, count = test_device_count(); i < count; ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        w.inside = 0;
        each_device(&device, &w);
        test_device_close(&device);
    }
    w.there = NULL, w.inside = 0;
    w.context = test_plain_context();
    call_from_each(&w, true);
    clv_context_free(w.context);
    clv_free(w.a), clv_free(w.b), clv_free(w.c);
}

int main(int argc, char **argv)
{
    test_choose(argc, argv);
    alarm(300); /* who waits for himself never ends */
    const struct CMUnitTest tests[] = { cmocka_unit_test(nobody_waits_for_himself) };
    return cmocka_run_group_tests_name("call_back", tests, NULL, NULL);
}
