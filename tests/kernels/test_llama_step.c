/* SPDX-License-Identifier: Apache-2.0 */
/* The training step of a llama-style block, written once over the steps of training: plain C and every
 * device against golden cases, and plain C against differences. */
#include "device.h"
#include "golden.h"
#include "ops_bench.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/train/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS = 2, LENGTH = 12, TOKENS = TEXTS * LENGTH, D = 32, HQ = 4, HK = 2, HEAD = 8, F = 88 };
enum { KV = HK * HEAD, ROW = D + 2 * KV };

/* The parameters, one after the other; gradients lie likewise. */
enum {
    N1,
    QKV = N1 + D,
    OUT = QKV + ROW * D,
    N2 = OUT + D * D,
    GATE_UP = N2 + D,
    DOWN = GATE_UP + 2 * F * D,
    COUNT = DOWN + D * F
};

static const struct {
    const char *role;
    size_t at, count;
} parts[] = { { "n1", N1, D },
              { "wq", QKV, D *D },
              { "wk", QKV + D *D, KV *D },
              { "wv", QKV + (D + KV) * D, KV *D },
              { "wo", OUT, D *D },
              { "n2", N2, D },
              { "wg", GATE_UP, F *D },
              { "wu", GATE_UP + F *D, F *D },
              { "wd", DOWN, D *F } };

typedef struct step {
    ops_bench *bench;
    clv_train_ops *ops; /* the bench's */
    clv_batch_rooms rooms;
    clv_mem w, dw, x, g, dx, y, turns;
    clv_mem h1, moments1, qkv, tops, seen, x1, h2, moments2, inner, gated; /* what is kept */
} step;

static clv_mem at(clv_mem m, size_t offset)
{
    return (clv_mem){ m.memory, m.at + offset };
}

static step open_step(ops_bench *b)
{
    step opened = { .bench = b, .ops = b->ops }, *const s = &opened;
    const size_t offsets[TEXTS + 1] = { 0, LENGTH, 2 * LENGTH };
    const int32_t ids[TOKENS] = { 0 };
    float turns[LENGTH * HEAD];
    clv_mem *const all[] = { &s->w,  &s->dw,       &s->x,     &s->g,    &s->dx,   &s->y,
                             &s->h1, &s->moments1, &s->qkv,   &s->tops, &s->seen, &s->x1,
                             &s->h2, &s->moments2, &s->inner, &s->gated };
    const size_t counts[] = { COUNT,        COUNT,           TOKENS * D,     TOKENS * D,
                              TOKENS * D,   TOKENS * D,      TOKENS * D,     2 * TOKENS,
                              TOKENS * ROW, 2 * HQ * TOKENS, TOKENS * D,     TOKENS * D,
                              TOKENS * D,   2 * TOKENS,      TOKENS * 2 * F, TOKENS * F };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        *all[i] = bench_room(s->bench, counts[i]);
    clv_rope_turns(LENGTH, HEAD / 2, 1e4, turns);
    s->turns = bench_bring(s->bench, turns, CLV_LEN(turns));
    EXPECT_OK(clv_batch_fill(s->ops, &s->rooms, ids, offsets, TEXTS, NULL));
    return opened;
}

/* ---- there ------------------------------------------------------------------------------------------ */

static clv_train_norm norm_of(const step *s, clv_mem x, size_t weight, clv_mem y, clv_mem moments)
{
    return (clv_train_norm){ .rows = TOKENS,
                             .width = D,
                             .eps = 1e-5f,
                             .rms = true,
                             .x = x,
                             .weight = at(s->w, weight),
                             .bias = at(s->w, weight), /* not read */
                             .y = y,
                             .moments = moments,
                             .dweight = at(s->dw, weight) };
}

static clv_train_linear linear_of(const step *s, size_t n, size_t k, clv_mem x, size_t weight,
                                  clv_mem y)
{
    return (clv_train_linear){ .rows = TOKENS,
                               .n = n,
                               .k = k,
                               .alpha = 1,
                               .x = x,
                               .w = at(s->w, weight),
                               .y = y,
                               .dw = at(s->dw, weight) };
}

static clv_train_attention attention_of(const step *s)
{
    return (clv_train_attention){ .batch = &s->rooms.batch,
                                  .heads = HQ,
                                  .kv_heads = HK,
                                  .width = D,
                                  .causal = true,
                                  .qkv = s->qkv,
                                  .o = s->seen,
                                  .tops = s->tops };
}

/* Queries and keys of every text, whose positions begin with it. */
static void turn(step *s, clv_mem rows, bool back)
{
    for (size_t text = 0; text < TEXTS; ++text) {
        const clv_train_rope r = { .x = at(rows, text * LENGTH * ROW),
                                   .turns = s->turns,
                                   .stride = ROW,
                                   .rows = LENGTH,
                                   .heads = HQ + HK, /* side by side */
                                   .half = HEAD / 2,
                                   .back = back };
        EXPECT_OK(s->ops->rope(s->ops, &r));
    }
}

static void there(step *s)
{
    clv_train_ops *ops = s->ops;
    const clv_mem none = { 0 };
    const clv_train_norm n1 = norm_of(s, s->x, N1, s->h1, s->moments1);
    const clv_train_norm n2 = norm_of(s, s->x1, N2, s->h2, s->moments2);
    const clv_train_attention a = attention_of(s);
    clv_train_linear qkv = linear_of(s, ROW, D, s->h1, QKV, s->qkv);
    clv_train_linear out = linear_of(s, D, D, s->seen, OUT, s->x1);
    clv_train_linear up = linear_of(s, 2 * F, D, s->h2, GATE_UP, s->inner);
    clv_train_linear down = linear_of(s, D, F, s->gated, DOWN, s->y);
    out.add = s->x, down.add = s->x1;
    EXPECT_OK(ops->norm(ops, &n1));
    EXPECT_OK(ops->linear(ops, &qkv));
    turn(s, s->qkv, false);
    EXPECT_OK(ops->attend(ops, &a));
    EXPECT_OK(ops->linear(ops, &out));
    EXPECT_OK(ops->norm(ops, &n2));
    EXPECT_OK(ops->linear(ops, &up));
    EXPECT_OK(ops->gate(ops, s->inner, none, s->gated, TOKENS, F, CLV_ACTIVATION_SILU));
    EXPECT_OK(ops->linear(ops, &down));
}

/* ---- and back: all of dw, and dx -------------------------------------------------------------------- */

static void back(step *s)
{
    clv_train_ops *ops = s->ops;
    const clv_mem dgated = bench_room(s->bench, TOKENS * F),
                  dinner = bench_room(s->bench, TOKENS * 2 * F);
    const clv_mem dh = bench_room(s->bench, TOKENS * D), dx1 = bench_room(s->bench, TOKENS * D);
    const clv_mem dseen = bench_room(s->bench, TOKENS * D),
                  dqkv = bench_room(s->bench, TOKENS * ROW);
    clv_train_linear down = linear_of(s, D, F, s->gated, DOWN, s->y);
    down.g = s->g, down.dx = dgated;
    EXPECT_OK(ops->linear_back(ops, &down));
    EXPECT_OK(ops->gate(ops, s->inner, dgated, dinner, TOKENS, F, CLV_ACTIVATION_SILU));
    clv_train_linear up = linear_of(s, 2 * F, D, s->h2, GATE_UP, s->inner);
    up.g = dinner, up.dx = dh;
    EXPECT_OK(ops->linear_back(ops, &up));
    clv_train_norm n2 = norm_of(s, s->x1, N2, s->h2, s->moments2);
    n2.g = dh, n2.dx = dx1, n2.dx_add = s->g;
    EXPECT_OK(ops->norm_back(ops, &n2));
    clv_train_linear out = linear_of(s, D, D, s->seen, OUT, s->x1);
    out.g = dx1, out.dx = dseen;
    EXPECT_OK(ops->linear_back(ops, &out));
    clv_train_attention a = attention_of(s);
    a.g = dseen, a.dqkv = dqkv, a.delta = bench_room(s->bench, HQ * TOKENS);
    EXPECT_OK(ops->attend_back(ops, &a));
    turn(s, dqkv, true);
    clv_train_linear qkv = linear_of(s, ROW, D, s->h1, QKV, s->qkv);
    qkv.g = dqkv, qkv.dx = dh;
    EXPECT_OK(ops->linear_back(ops, &qkv));
    clv_train_norm n1 = norm_of(s, s->x, N1, s->h1, s->moments1);
    n1.g = dh, n1.dx = s->dx, n1.dx_add = dx1;
    EXPECT_OK(ops->norm_back(ops, &n1));
}

/* ---- claims ----------------------------------------------------------------------------------------- */

static void bring_goldens(step *s)
{
    for (size_t i = 0; i < CLV_LEN(parts); ++i) {
        const golden_array a = golden_get("llama_block", parts[i].role);
        assert_int_equal(a.count, parts[i].count);
        EXPECT_OK(s->ops->put(s->ops, at(s->w, parts[i].at), a.f32, a.count));
    }
    EXPECT_OK(s->ops->put(s->ops, s->x, golden_get("llama_block", "x").f32, TOKENS * D));
    EXPECT_OK(s->ops->put(s->ops, s->g, golden_get("llama_block", "g").f32, TOKENS * D));
}

static void check_goldens(ops_bench *b)
{
    step s = open_step(b);
    char role[16];
    bring_goldens(&s);
    there(&s);
    back(&s);
    bench_expect(b, "llama_block", "out.y", s.y);
    bench_expect(b, "llama_block", "grad.x", s.dx);
    for (size_t i = 0; i < CLV_LEN(parts); ++i) {
        snprintf(role, sizeof role, "grad.%s", parts[i].role);
        bench_expect(b, "llama_block", role, at(s.dw, parts[i].at));
    }
    clv_batch_free(s.ops, &s.rooms);
}

static void a_step_matches_goldens(void **state)
{
    (void)state;
    bench_each_side(check_goldens);
}

/* L = sum of g y. */
static double loss_of(step *s)
{
    static float y[TOKENS * D], g[TOKENS * D];
    double sum = 0;
    there(s);
    EXPECT_OK(s->ops->get(s->ops, s->y, y, TOKENS * D));
    EXPECT_OK(s->ops->get(s->ops, s->g, g, TOKENS * D));
    for (size_t i = 0; i < TOKENS * D; ++i)
        sum += (double)g[i] * (double)y[i];
    return sum;
}

/* dL/d(number i of what) by differences of both sides. */
static double slope_at(step *s, clv_mem what, size_t i)
{
    const float h = 0x1p-8f;
    double loss[2];
    float was, now;
    EXPECT_OK(s->ops->get(s->ops, at(what, i), &was, 1));
    for (int side = 0; side < 2; ++side) {
        now = side ? was + h : was - h;
        EXPECT_OK(s->ops->put(s->ops, at(what, i), &now, 1));
        loss[side] = loss_of(s);
    }
    EXPECT_OK(s->ops->put(s->ops, at(what, i), &was, 1));
    return (loss[1] - loss[0]) / (2 * (double)h);
}

static void expect_slopes(step *s, const char *name, clv_mem what, clv_mem slopes, size_t count)
{
    uint64_t seed = 7;
    static float got[2 * F * D];
    double largest = 0;
    EXPECT_OK(s->ops->get(s->ops, slopes, got, count));
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs((double)got[i]));
    for (int n = 0; n < 12; ++n) {
        const size_t i = test_random(&seed) % count;
        const double want = slope_at(s, what, i);
        if (!(fabs(want - (double)got[i]) <= 1e-3 * largest))
            fail_msg("%s[%zu]: %g, differences give %g", name, i, (double)got[i], want);
    }
}

/* Random numbers, and texts that are seen from their own beginning only. */
static void plain_c_agrees_with_differences(void **state)
{
    (void)state;
    ops_bench plain = { 0 };
    uint64_t seed = 3;
    static float numbers[COUNT];
    EXPECT_OK(clv_train_ops_plain(&plain.ops));
    step s = open_step(&plain);
    for (size_t i = 0; i < COUNT; ++i)
        numbers[i] = (float)test_uniform(&seed, -0.3, 0.3);
    for (size_t i = 0; i < D; ++i)
        numbers[N1 + i] += 1, numbers[N2 + i] += 1;
    EXPECT_OK(s.ops->put(s.ops, s.w, numbers, COUNT));
    for (size_t i = 0; i < TOKENS * D; ++i)
        numbers[i] = (float)test_uniform(&seed, -1, 1);
    EXPECT_OK(s.ops->put(s.ops, s.x, numbers, TOKENS * D));
    for (size_t i = 0; i < TOKENS * D; ++i)
        numbers[i] = (float)test_uniform(&seed, -1, 1);
    EXPECT_OK(s.ops->put(s.ops, s.g, numbers, TOKENS * D));
    there(&s);
    back(&s);
    expect_slopes(&s, "x", s.x, s.dx, TOKENS * D);
    for (size_t i = 0; i < CLV_LEN(parts); ++i)
        expect_slopes(&s, parts[i].role, at(s.w, parts[i].at), at(s.dw, parts[i].at),
                      parts[i].count);
    clv_batch_free(s.ops, &s.rooms);
    bench_drop_all(&plain);
    plain.ops->close(plain.ops);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_matches_goldens),
        cmocka_unit_test(plain_c_agrees_with_differences),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("llama_step", tests, golden_setup, golden_teardown);
}
