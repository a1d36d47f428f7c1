/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the steps of optimisers on every device and in plain C with golden cases, the sums of bits that the steps
 * add with the bits themselves, and the lengths of gradients with float64. */
#include "golden.h"
#include "ops_bench.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/train/bits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_small(const ops_bench *b)
{
    return b->device && b->device->tiny;
}

typedef struct bit_sums {
    uint32_t weights, moments;
} bit_sums;

static void add_bits(ops_bench *b, clv_mem numbers, size_t count, uint32_t *sum)
{
    uint32_t *bits = clv_alloc(count, sizeof *bits);
    assert_non_null(bits);
    EXPECT_OK(b->ops->get(b->ops, numbers, bits, count));
    for (size_t i = 0; i < count; ++i)
        *sum += bits[i];
    clv_free(bits);
}

/* The bits of what an update is about to read, or has written. */
static bit_sums bits_of(ops_bench *b, const clv_train_rule *rule, const clv_train_update *u)
{
    bit_sums sums = { 0 };
    add_bits(b, (clv_mem){ u->weights, u->at }, u->count, &sums.weights);
    if (rule->kind == CLV_OPTIMIZER_ADAMW || rule->momentum != 0)
        add_bits(b, (clv_mem){ u->first, u->at }, u->count, &sums.moments);
    if (rule->kind == CLV_OPTIMIZER_ADAMW)
        add_bits(b, (clv_mem){ u->second, u->at }, u->count, &sums.moments);
    return sums;
}

/* Updates; on a device, the sums that it adds meanwhile are those of what it reads and writes. */
static void update_and_sum(ops_bench *b, const clv_train_rule *rule, const clv_train_update *u)
{
    uint32_t got[CLV_BITS_ROOM], sums[CLV_BIT_SUMS] = { 0 };
    bit_sums read = bits_of(b, rule, u);
    if (rule->kind == CLV_OPTIMIZER_SGD && u->step == 1) read.moments = 0; /* not read */
    EXPECT_OK(b->ops->clear(b->ops, (clv_mem){ u->bits, 0 }, CLV_BITS_ROOM));
    EXPECT_OK(b->ops->update(b->ops, rule, u));
    if (!b->device) return;
    const bit_sums written = bits_of(b, rule, u);
    EXPECT_OK(b->ops->get(b->ops, (clv_mem){ u->bits, 0 }, got, CLV_BITS_ROOM));
    for (size_t i = 0; i < CLV_BITS_ROOM; ++i)
        sums[i % CLV_BIT_SUMS] += got[i];
    assert_int_equal(sums[CLV_BIT_WEIGHTS_READ], read.weights);
    assert_int_equal(sums[CLV_BIT_WEIGHTS_WRITTEN], written.weights);
    assert_int_equal(sums[CLV_BIT_MOMENTS_READ], read.moments);
    assert_int_equal(sums[CLV_BIT_MOMENTS_WRITTEN], written.moments);
}

static void check_optimisers(ops_bench *b)
{
    static const struct {
        const char *name;
        clv_optimizer kind;
    } cases[] = { { "sgd", CLV_OPTIMIZER_SGD },
                  { "sgd_momentum", CLV_OPTIMIZER_SGD },
                  { "adamw", CLV_OPTIMIZER_ADAMW } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const char *name = cases[i].name;
        const golden_array grads = golden_get(name, "grads");
        const size_t steps = grads.shape[0], count = grads.shape[1];
        const clv_train_rule rule = { .kind = cases[i].kind,
                                      .beta1 = golden_number(name, "beta1", 0.9),
                                      .beta2 = golden_number(name, "beta2", 0.999),
                                      .eps = golden_number(name, "eps", 1e-8),
                                      .momentum = golden_number(name, "momentum", 0) };
        const clv_mem w = bench_golden(b, name, "w0"), g = bench_room(b, count);
        const clv_mem m = bench_room(b, count), v = bench_room(b, count);
        const clv_mem bits = bench_room(b, CLV_BITS_ROOM);
        float path[256];
        assert_true(grads.count <= CLV_LEN(path));
        EXPECT_OK(b->ops->clear(b->ops, m, count));
        EXPECT_OK(b->ops->clear(b->ops, v, count));
        for (size_t s = 0; s < steps; ++s) {
            EXPECT_OK(b->ops->put(b->ops, g, grads.f32 + s * count, count));
            for (size_t at = 0; at < count; at += 5) { /* in parts, as a model has them */
                const clv_train_update u = { .weights = w.memory,
                                             .gradient = g.memory,
                                             .first = m.memory,
                                             .second = v.memory,
                                             .bits = bits.memory,
                                             .at = at,
                                             .count = CLV_MIN(count - at, (size_t)5),
                                             .scale = 1,
                                             .rate = golden_number(name, "lr", 0),
                                             .decay = golden_number(name, "weight_decay", 0),
                                             .step = s + 1 };
                update_and_sum(b, &rule, &u);
            }
            EXPECT_OK(b->ops->get(b->ops, w, path + s * count, count));
        }
        golden_expect(name, "out.w", path);
        bench_drop_all(b);
    }
}

/* Sums of bits at sizes about the share of a work-item and of a work-group. With an `eps` of 0, what lies beyond the
 * end of a ragged vector is 0 / 0. */
static void check_sums_of_bits(ops_bench *b)
{
    static const size_t counts[] = { 1, 17, 255, 8193, 20000 };
    enum { MOST = 20000 };
    const clv_train_rule rules[] = {
        { .kind = CLV_OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999 },
        { .kind = CLV_OPTIMIZER_SGD, .momentum = 0.9 },
    };
    float *x = clv_alloc(MOST, sizeof *x);
    assert_non_null(x);
    uint64_t seed = 8;
    for (size_t i = 0; i < MOST; ++i)
        x[i] = (float)test_uniform(&seed, 1, 2);
    const clv_mem all[] = { bench_bring(b, x, MOST), bench_bring(b, x, MOST),
                            bench_bring(b, x, MOST), bench_bring(b, x, MOST) };
    const clv_mem bits = bench_room(b, CLV_BITS_ROOM);
    for (size_t k = 0; k < CLV_LEN(counts) * CLV_LEN(rules); ++k) {
        const size_t count = counts[k / CLV_LEN(rules)];
        const clv_train_update u = { .weights = all[0].memory,
                                     .gradient = all[1].memory,
                                     .first = all[2].memory,
                                     .second = all[3].memory,
                                     .bits = bits.memory,
                                     .count = count,
                                     .scale = 0.5f,
                                     .rate = 0.1,
                                     .decay = 0.01,
                                     .step = 2 };
        if (test_left_out(b->device, is_small(b) && count > 8193, "bits of %zu", count)) break;
        update_and_sum(b, &rules[k % CLV_LEN(rules)], &u);
    }
    clv_free(x);
    bench_drop_all(b);
}

static void sums_of_bits_are_right(void **state)
{
    (void)state;
    bench_each_device(check_sums_of_bits);
}

static void optimisers_step(void **state)
{
    (void)state;
    bench_each_side(check_optimisers);
}

/* The squared length of a gradient, at sizes about the share of a work-item. */
static void check_squares(ops_bench *b)
{
    static const size_t counts[] = { 1, 17, 8192, 8193, 20000 };
    enum { MOST = 20000 };
    float *x = clv_alloc(MOST, sizeof *x);
    assert_non_null(x);
    uint64_t seed = 8;
    for (size_t i = 0; i < MOST; ++i)
        x[i] = (float)test_uniform(&seed, -2, 2);
    const clv_mem dx = bench_room(b, MOST);
    EXPECT_OK(b->ops->put(b->ops, dx, x, MOST));
    for (size_t k = 0; k < CLV_LEN(counts); ++k) {
        double want = 0, got;
        if (test_left_out(b->device, b->device && b->device->tiny && counts[k] > 8193,
                          "squares of %zu", counts[k]))
            break;
        for (size_t i = 0; i < counts[k]; ++i)
            want += (double)x[i] * (double)x[i];
        EXPECT_OK(b->ops->squares(b->ops, dx, counts[k], &got));
        if (!(fabs(got - want) <= 1e-6 * want))
            fail_msg("%zu: %g, expected %g", counts[k], got, want);
    }
    clv_free(x);
}

static void lengths_of_gradients_are_right(void **state)
{
    (void)state;
    bench_each_side(check_squares);
}
/* What cards do, whose work-items lie side by side, on whatever is here. */
static void forms_of_cards_step(void **state)
{
    (void)state;
    bench_each_card(check_optimisers);
    bench_each_card(check_sums_of_bits);
    bench_each_card(check_squares);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimisers_step),
        cmocka_unit_test(sums_of_bits_are_right),
        cmocka_unit_test(lengths_of_gradients_are_right),
        cmocka_unit_test(forms_of_cards_step),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("optimisers", tests, golden_setup, golden_teardown);
}
