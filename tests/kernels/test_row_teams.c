/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the kernels that work on rows in the form of graphics cards, whose work-groups share a row, and compares them
 * with plain C. Every driver runs this form, because no device of these tests has it as its own. */
#include "ops_bench.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5, WIDEST = 1030, MOST = ROWS * 2 * WIDEST };
/* Fewer columns than work-items, more, and rows that more than 64 work-items share. */
static const size_t widths[] = { 1, 131, WIDEST };
enum { NARROW = 2 }; /* number of widths that 64 work-items share */

static float input[4][MOST];

static void make_inputs(void)
{
    uint64_t seed = 7;
    for (size_t n = 0; n < CLV_LEN(input); ++n)
        for (size_t i = 0; i < MOST; ++i)
            input[n][i] = (float)test_uniform(&seed, n == 1 ? 0.5 : -1, n == 1 ? 1.5 : 1);
}

/* Results of both sides, one after the other: those of plain C come first. */
static struct {
    float want[6 * MOST], got[6 * MOST];
    size_t used;
} results;

static void keep(ops_bench *b, clv_mem from, size_t count)
{
    float *to = (b->device ? results.got : results.want) + results.used;
    assert_true(results.used + count <= CLV_LEN(results.got));
    EXPECT_OK(b->ops->get(b->ops, from, to, count));
    results.used += count;
}

static void norms(ops_bench *b, size_t width, bool rms)
{
    const size_t count = ROWS * width;
    clv_train_norm n = { .rows = ROWS,
                         .width = width,
                         .eps = 1e-6f,
                         .rms = rms,
                         .x = bench_bring(b, input[0], count),
                         .weight = bench_room(b, 2 * width),
                         .y = bench_room(b, count),
                         .moments = bench_room(b, 2 * ROWS),
                         .g = bench_bring(b, input[2], count),
                         .dx_add = bench_bring(b, input[3], count),
                         .dx = bench_room(b, count) };
    n.bias = (clv_mem){ n.weight.memory, width };
    EXPECT_OK(b->ops->put(b->ops, n.weight, input[1], 2 * width));
    EXPECT_OK(b->ops->norm(b->ops, &n));
    EXPECT_OK(b->ops->norm_back(b->ops, &n));
    keep(b, n.y, count), keep(b, n.moments, 2 * ROWS), keep(b, n.dx, count);
    n.y = n.x, n.dx = n.g; /* in place */
    EXPECT_OK(b->ops->norm_back(b->ops, &n));
    EXPECT_OK(b->ops->norm(b->ops, &n));
    keep(b, n.y, count), keep(b, n.dx, count);
}

static void layer_norms(ops_bench *b, size_t width)
{
    norms(b, width, false);
}

static void rms_norms(ops_bench *b, size_t width)
{
    norms(b, width, true);
}

static void gates(ops_bench *b, size_t width)
{
    const clv_mem none = { 0 }, x = bench_bring(b, input[0], ROWS * 2 * width);
    const clv_mem g = bench_bring(b, input[2], ROWS * width), y = bench_room(b, ROWS * width);
    const clv_mem dx = bench_room(b, ROWS * 2 * width);
    EXPECT_OK(b->ops->gate(b->ops, x, none, y, ROWS, width, CLV_ACTIVATION_SILU));
    EXPECT_OK(b->ops->gate(b->ops, x, g, dx, ROWS, width, CLV_ACTIVATION_SILU));
    keep(b, y, ROWS * width), keep(b, dx, ROWS * 2 * width);
}

static void ropes(ops_bench *b, size_t width)
{
    enum { HEADS = 3, FIRST = 2 };
    const size_t half = (width + 5) / 6, stride = HEADS * 2 * half + 1;
    clv_train_rope r = { .x = bench_bring(b, input[0], ROWS * stride),
                         .turns = bench_bring(b, input[1], (FIRST + ROWS) * 2 * half),
                         .stride = stride,
                         .first = FIRST,
                         .rows = ROWS,
                         .heads = HEADS,
                         .half = half };
    EXPECT_OK(b->ops->rope(b->ops, &r));
    keep(b, r.x, ROWS * stride);
    r.back = true;
    EXPECT_OK(b->ops->rope(b->ops, &r));
    keep(b, r.x, ROWS * stride);
}

static void units(ops_bench *b, size_t width)
{
    const clv_mem none = { 0 }, x = bench_bring(b, input[0], ROWS * width);
    const clv_mem g = bench_bring(b, input[2], ROWS * width), y = bench_room(b, ROWS * width);
    EXPECT_OK(b->ops->unit(b->ops, x, none, y, ROWS, width));
    keep(b, y, ROWS * width);
    if (width == 1) return; /* the gradient is 0, but for rounding that 1 / |x| enlarges */
    EXPECT_OK(b->ops->unit(b->ops, x, g, g, ROWS, width));
    keep(b, g, ROWS * width);
}

/* The logits are so far apart that only the largest one of a row keeps the exponentials finite. */
static void losses(ops_bench *b, size_t width)
{
    static float logits[ROWS * WIDEST];
    for (size_t i = 0; i < ROWS * width; ++i)
        logits[i] = 200 * input[0][i];
    const int32_t labels[ROWS] = { 0, CLV_LABEL_IGNORED, (int32_t)width - 1, (int32_t)width / 2,
                                   (int32_t)width * 2 / 3 };
    clv_train_loss l = { .rows = ROWS,
                         .classes = width,
                         .x = bench_bring(b, logits, ROWS * width),
                         .labels = bench_bring(b, labels, ROWS),
                         .loss = bench_room(b, ROWS),
                         .g = bench_room(b, ROWS * width),
                         .scale = 0.5f };
    EXPECT_OK(b->ops->loss(b->ops, &l));
    keep(b, l.loss, ROWS), keep(b, l.g, ROWS * width);
    l.g = l.x;
    EXPECT_OK(b->ops->loss(b->ops, &l));
    keep(b, l.loss, ROWS), keep(b, l.g, ROWS * width);
}

static void pools(ops_bench *b, size_t width)
{
    static const clv_model_pooling kinds[] = { CLV_MODEL_MEAN, CLV_MODEL_CLS, CLV_MODEL_MAX };
    static const int32_t rows[] = { 0, 3, 3, 2 };
    const clv_mem where = bench_bring(b, rows, CLV_LEN(rows));
    const clv_train_batch batch = {
        .tokens = ROWS, .texts = 2, .longest = 3, .rows = where.memory
    };
    for (size_t i = 0; i < CLV_LEN(kinds); ++i) {
        const clv_train_pool p = { .batch = &batch,
                                   .width = width,
                                   .kind = kinds[i],
                                   .x = bench_bring(b, input[0], ROWS * width),
                                   .y = bench_room(b, 2 * width) };
        EXPECT_OK(b->ops->pool(b->ops, &p));
        keep(b, p.y, 2 * width);
    }
}

/* Sums of a word, a position and a type, normalised; the norm of plain C says what they should be. Then the mean of
 * all rows, divided by its length. */
static void embeddings(ops_bench *b, size_t width)
{
    enum { WORDS = 2, LAST = WORDS - 1 };
    const int32_t tokens[2 * ROWS] = { 0, 1, LAST, 0, 0, 0, LAST, 1, 0, 1 };
    const clv_mem y = bench_room(b, ROWS * width), p = bench_room(b, 5 * width);
    clv_mem mean = bench_room(b, width);
    EXPECT_OK(b->ops->put(b->ops, p, input[1], 5 * width)); /* two positions, type, weight, bias */
    if (b->device) {
        const clv_mem ids = bench_bring(b, tokens, CLV_LEN(tokens));
        const clv_mem word = bench_bring(b, input[0], WORDS * width);
        const int32_t all[] = { 0, ROWS };
        const clv_mem rows = bench_bring(b, all, CLV_LEN(all));
        const clv_embed_rows e = { .tokens = ids.memory,
                                   .word = word.memory,
                                   .parameters = p.memory,
                                   .type = 2 * width,
                                   .weight = 3 * width,
                                   .bias = 4 * width,
                                   .y = y.memory,
                                   .rows = ROWS,
                                   .width = width,
                                   .eps = 1e-6f,
                                   .norm = true };
        const clv_pool_call pool = { .x = y.memory,
                                     .rows = rows.memory,
                                     .out = mean.memory,
                                     .sequences = 1,
                                     .width = width,
                                     .kind = CLV_MODEL_MEAN,
                                     .divide = true };
        EXPECT_OK(clv_embed_rows_enqueue(b->queue, &e));
        EXPECT_OK(clv_pool_enqueue(b->queue, &pool));
    } else {
        float sums[ROWS * WIDEST], means[WIDEST];
        for (size_t r = 0; r < ROWS; ++r)
            for (size_t c = 0; c < width; ++c)
                sums[r * width + c] = input[0][(size_t)tokens[2 * r] * width + c] +
                                      input[1][(size_t)tokens[2 * r + 1] * width + c] +
                                      input[1][2 * width + c];
        const clv_train_norm n = { .rows = ROWS,
                                   .width = width,
                                   .eps = 1e-6f,
                                   .x = bench_bring(b, sums, ROWS * width),
                                   .weight = { p.memory, 3 * width },
                                   .bias = { p.memory, 4 * width },
                                   .y = y,
                                   .moments = bench_room(b, 2 * ROWS) };
        const clv_mem none = { 0 };
        EXPECT_OK(b->ops->norm(b->ops, &n));
        EXPECT_OK(b->ops->get(b->ops, y, sums, ROWS * width));
        for (size_t c = 0; c < width; ++c) {
            double sum = 0;
            for (size_t r = 0; r < ROWS; ++r)
                sum += (double)sums[r * width + c];
            means[c] = (float)(sum / ROWS);
        }
        EXPECT_OK(b->ops->put(b->ops, mean, means, width));
        EXPECT_OK(b->ops->unit(b->ops, mean, none, mean, 1, width));
    }
    keep(b, y, ROWS * width), keep(b, mean, width);
}

static void (*shared)(ops_bench *b, size_t width);
static size_t current_width;

static void run_shared(ops_bench *b)
{
    if (b->device) test_device_disguise(b->device, CLV_CLASS_DISCRETE_GPU);
    results.used = 0;
    shared(b, current_width);
    for (size_t i = 0; b->device && i < results.used; ++i) {
        const double want = (double)results.want[i], got = (double)results.got[i];
        if (!(fabs(got - want) <= 4e-6 * fmax(1, fabs(want))))
            fail_msg("%s: width %zu: result %zu is %.9g, expected %.9g", b->device->name,
                     current_width, i, got, want);
    }
}

/* Compares the results for the first `count` widths. */
static void compare(void (*claim)(ops_bench *b, size_t width), size_t count)
{
    make_inputs();
    shared = claim;
    for (size_t i = 0; i < count; ++i) {
        current_width = widths[i];
        bench_each_side(run_shared);
    }
}

static void teams_normalise(void **state)
{
    (void)state;
    compare(layer_norms, CLV_LEN(widths));
    compare(rms_norms, NARROW);
}

static void teams_embed_and_pool(void **state)
{
    (void)state;
    compare(embeddings, NARROW);
    compare(pools, NARROW);
}

static void teams_gate_and_turn(void **state)
{
    (void)state;
    compare(gates, NARROW);
    compare(ropes, NARROW);
}

static void teams_divide_by_lengths(void **state)
{
    (void)state;
    compare(units, NARROW);
}

static void teams_compute_losses(void **state)
{
    (void)state;
    compare(losses, NARROW);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teams_normalise),         cmocka_unit_test(teams_embed_and_pool),
        cmocka_unit_test(teams_gate_and_turn),     cmocka_unit_test(teams_compute_losses),
        cmocka_unit_test(teams_divide_by_lengths),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("row_teams", tests, NULL, NULL);
}
