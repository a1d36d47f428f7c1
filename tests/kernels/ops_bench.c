/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that training is made of, under test: memory with goldens in it, results against them. */
#include "ops_bench.h"

#include "golden.h"
#include "test.h"

#include "base/alloc.h"

static void (*current)(ops_bench *b);

static void run_current(ops_bench *b)
{
    current(b);
    bench_drop_all(b);
    b->ops->close(b->ops);
}

static void on_device(test_device *device)
{
    const size_t last = clv_gemm_form_count(device->device) - 1;
    const clv_gemm_form form = clv_gemm_form_of(device->device, device->tiny ? last : 0);
    ops_bench b = { .device = device, .queue = device->queue };
    EXPECT_OK(clv_train_ops_on(device->queue, false, &form, &b.ops));
    run_current(&b);
}

void bench_each_device(void (*claim)(ops_bench *b))
{
    current = claim;
    test_each_device(on_device);
}

bool bench_leaves_out_block(const ops_bench *b)
{
    return b->device && test_left_out(b->device,
                                      b->device->tiny && b->device->device->facts->device_class ==
                                                             CLV_CLASS_DISCRETE_GPU,
                                      "a whole block in the forms of cards");
}

void bench_each_card(void (*claim)(ops_bench *b))
{
    current = claim;
    test_each_device_as(CLV_CLASS_DISCRETE_GPU, on_device);
}

void bench_each_side(void (*claim)(ops_bench *b))
{
    ops_bench plain = { 0 };
    EXPECT_OK(clv_train_ops_plain(&plain.ops));
    current = claim;
    run_current(&plain);
    bench_each_device(claim);
}

clv_mem bench_room(ops_bench *b, size_t count)
{
    assert_true(b->held_count < CLV_LEN(b->held));
    clv_mem m = { NULL, 0 };
    EXPECT_OK(b->ops->take(b->ops, count, &m.memory));
    b->held[b->held_count++] = m.memory;
    return m;
}

clv_mem bench_bring(ops_bench *b, const void *data, size_t count)
{
    const clv_mem m = bench_room(b, count);
    EXPECT_OK(b->ops->put(b->ops, m, data, count));
    return m;
}

clv_mem bench_golden(ops_bench *b, const char *name, const char *role)
{
    const golden_array a = golden_get(name, role);
    return bench_bring(b, a.f32 ? (const void *)a.f32 : (const void *)a.i32, a.count);
}

void bench_drop_all(ops_bench *b)
{
    while (b->held_count)
        b->ops->drop(b->ops, b->held[--b->held_count]);
}

void bench_expect(ops_bench *b, const char *name, const char *role, clv_mem got)
{
    const golden_array want = golden_get(name, role);
    float *host = clv_alloc(want.count, sizeof *host);
    assert_non_null(host);
    EXPECT_OK(b->ops->get(b->ops, got, host, want.count));
    golden_expect(name, role, host);
    clv_free(host);
}
