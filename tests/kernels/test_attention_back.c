/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of attention in all its forms, and of a llama block, on every device
 * against golden cases. */
#include "golden.h"
#include "ops_bench.h"
#include "test.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention -------------------------------------------------------------------------------------- */

typedef struct sizes {
    size_t batch, heads, kv_heads, queries, keys, width;
} sizes;

/* Blocks of queries and of keys; token numbers are rows of one head. */
static void make_blocks(ops_bench *b, const sizes *s, size_t q_step, size_t k_step,
                        clv_attention_call *call, clv_attention_back *back)
{
    const clv_block_form *form = &b->ops->form;
    const size_t by_query = clv_attention_block_count(form, s->queries);
    const size_t by_key = clv_attention_block_count(form, s->keys);
    clv_attention_block *list = clv_zalloc(s->batch * (by_query + by_key), sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < s->batch; ++i) {
        const clv_attention_block sequence = { .query = (int32_t)(i * q_step),
                                               .queries = (int32_t)s->queries,
                                               .key = (int32_t)(i * k_step),
                                               .keys = (int32_t)s->keys,
                                               .mask = (int32_t)(i * s->keys) };
        clv_attention_fill(form, sequence, list + i * by_query);
        clv_attention_fill_keys(form, sequence, list + s->batch * by_query + i * by_key);
    }
    call->block_count = s->batch * by_query;
    back->key_block_count = s->batch * by_key;
    call->blocks = bench_bring(b, list, call->block_count * sizeof *list / 4).memory;
    back->key_blocks =
        bench_bring(b, list + call->block_count, back->key_block_count * sizeof *list / 4).memory;
    clv_free(list);
}

static clv_heads heads_of(clv_mem m, size_t row, size_t head)
{
    return (clv_heads){ m.memory, m.at, row, head };
}

/* A call with all that it needs, and where its results lie. */
typedef struct attention {
    clv_attention_back back;
    clv_mem o, dq, dk, dv;
} attention;

static attention attention_of(ops_bench *b, const sizes *s, float scale, bool causal,
                              const clv_buffer *mask, clv_mem q, clv_mem k, clv_mem v, clv_mem g)
{
    const size_t rows = s->batch * s->heads * s->queries;
    const size_t q_head = s->queries * s->width, k_head = s->keys * s->width;
    attention a = { .o = bench_room(b, rows * s->width),
                    .dq = bench_room(b, rows * s->width),
                    .dk = bench_room(b, s->batch * s->kv_heads * k_head),
                    .dv = bench_room(b, s->batch * s->kv_heads * k_head) };
    a.back = (clv_attention_back){ .there = { .q = heads_of(q, s->width, q_head),
                                              .k = heads_of(k, s->width, k_head),
                                              .v = heads_of(v, s->width, k_head),
                                              .o = heads_of(a.o, s->width, q_head),
                                              .mask = mask,
                                              .causal = causal,
                                              .heads = s->heads,
                                              .kv_heads = s->kv_heads,
                                              .width = s->width,
                                              .scale = scale,
                                              .longest = CLV_MAX(s->queries, s->keys),
                                              .tops = bench_room(b, 2 * s->heads * rows).memory,
                                              .top_head = rows },
                                   .g = heads_of(g, s->width, q_head),
                                   .dq = heads_of(a.dq, s->width, q_head),
                                   .dk = heads_of(a.dk, s->width, k_head),
                                   .dv = heads_of(a.dv, s->width, k_head),
                                   .delta = bench_room(b, s->heads * rows).memory };
    make_blocks(b, s, s->heads * s->queries, s->kv_heads * s->keys, &a.back.there, &a.back);
    return a;
}

/* Every width is a program that drivers compile: two of the five do, but where all goldens are. */
static void check_attentions(ops_bench *b)
{
    const bool all = getenv("CLEAVE_REFERENCE_DIR") != NULL;
    int taken = 0;
    char name[32];
    for (int i = 0; i < 8; ++i) {
        snprintf(name, sizeof name, "attention%d", i);
        if (!golden_has(name, "q") ||
            test_left_out(b->device, b->device->tiny && i >= 2 && i <= 4, "%s: large", name))
            continue;
        const golden_array q = golden_get(name, "q"), k = golden_get(name, "k");
        const sizes s = { q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3] };
        if (!all && s.width != 64 && (s.width != 8 || test_brief())) continue;
        if (test_brief() && taken++) break; /* masks and causality are programs, too */
        const clv_buffer *mask =
            golden_has(name, "mask") ? bench_golden(b, name, "mask").memory : NULL;
        const attention a = attention_of(b, &s, (float)(1 / sqrt((double)s.width)),
                                         golden_number(name, "causal", 0) != 0, mask,
                                         bench_golden(b, name, "q"), bench_golden(b, name, "k"),
                                         bench_golden(b, name, "v"), bench_golden(b, name, "g"));
        EXPECT_OK(clv_attention_enqueue(b->queue, &a.back.there));
        bench_expect(b, name, "out.o", a.o);
        EXPECT_OK(clv_attention_back_enqueue(b->queue, &a.back));
        bench_expect(b, name, "grad.q", a.dq);
        bench_expect(b, name, "grad.k", a.dk);
        bench_expect(b, name, "grad.v", a.dv);
        bench_drop_all(b);
    }
}

static void attention_goes_back(void **state)
{
    (void)state;
    bench_each_device(check_attentions);
}

/* Softmax is attention to the rows of the unit matrix: scores are x, and so is what comes back. Rows
 * are as wide as those of another case, with zeros at the end: a kernel less to compile. */
static void check_softmax(ops_bench *b)
{
    enum { WIDTH = 64 };
    const char *name = "softmax";
    const golden_array x = golden_get(name, "x"), g = golden_get(name, "g");
    const size_t rows = x.shape[0], n = x.shape[1];
    float unit[WIDTH * WIDTH] = { 0 }, wide[2][16 * WIDTH] = { { 0 } }, got[16 * WIDTH];
    assert_true(rows <= 16 && n <= WIDTH);
    if (test_left_out(b->device, b->device->tiny, "softmax as attention: a width of its own"))
        return;
    for (size_t i = 0; i < n; ++i)
        unit[i * WIDTH + i] = 1;
    for (size_t i = 0; i < rows; ++i) {
        memcpy(wide[0] + i * WIDTH, x.f32 + i * n, n * sizeof(float));
        memcpy(wide[1] + i * WIDTH, g.f32 + i * n, n * sizeof(float));
    }
    const sizes s = { 1, 1, 1, rows, n, WIDTH };
    const attention a =
        attention_of(b, &s, 1, false, NULL, bench_bring(b, wide[0], rows * WIDTH),
                     bench_bring(b, unit, n * WIDTH), bench_bring(b, unit, n * WIDTH),
                     bench_bring(b, wide[1], rows * WIDTH));
    float dense[16 * WIDTH];
    for (int back = 0; back < 2; ++back) {
        EXPECT_OK(back ? clv_attention_back_enqueue(b->queue, &a.back)
                       : clv_attention_enqueue(b->queue, &a.back.there));
        EXPECT_OK(b->ops->get(b->ops, back ? a.dq : a.o, got, rows * WIDTH));
        for (size_t i = 0; i < rows; ++i)
            memcpy(dense + i * n, got + i * WIDTH, n * sizeof(float));
        golden_expect(name, back ? "grad.x" : "out.y", dense);
    }
}

static void softmax_goes_back(void **state)
{
    (void)state;
    bench_each_device(check_softmax);
}

/* ---- root mean square norms ------------------------------------------------------------------------- */

/* y = rms(x) there; back: dx = backward pass of g, plus `add`, and the gradient of the weight. */
typedef struct rms {
    size_t rows, width;
    float eps;
    clv_mem x, weight, y, moments, g, dx, add, dweight;
} rms;

static void rms_there(ops_bench *b, const rms *n)
{
    const clv_norm call = { .x = { n->x.memory, n->x.at, n->width },
                            .y = { n->y.memory, n->y.at, n->width },
                            .parameters = n->weight.memory,
                            .weight = n->weight.at,
                            .bias = n->weight.at,
                            .moments = n->moments.memory,
                            .rows = n->rows,
                            .width = n->width,
                            .eps = n->eps,
                            .rms = true };
    EXPECT_OK(clv_norm_enqueue(b->queue, &call));
}

static void rms_back(ops_bench *b, const rms *n)
{
    const clv_norm_back call = { .g = { n->g.memory, n->g.at, n->width },
                                 .x = { n->x.memory, n->x.at, n->width },
                                 .dx = { n->dx.memory, n->dx.at, n->width },
                                 .add = { n->add.memory, n->add.at, n->width },
                                 .moments = n->moments.memory,
                                 .weight = { n->weight.memory, n->weight.at },
                                 .rows = n->rows,
                                 .width = n->width,
                                 .rms = true };
    const clv_column_sums sums = {
        .g = call.g,
        .x = call.x,
        .moments = call.moments,
        .along = { n->dweight.memory, n->dweight.at },
        .rows = n->rows,
        .width = n->width,
        .scratch = bench_room(b, clv_column_scratch(n->rows, n->width)).memory
    };
    EXPECT_OK(clv_column_sums_enqueue(b->queue, &sums));
    EXPECT_OK(clv_norm_back_enqueue(b->queue, &call));
}

static void check_rms_norms(ops_bench *b)
{
    char name[32];
    for (int i = 0; i < 5; ++i) {
        snprintf(name, sizeof name, "rmsnorm%d", i);
        const golden_array x = golden_get(name, "x");
        const rms n = { .rows = x.shape[0],
                        .width = x.shape[1],
                        .eps = (float)golden_number(name, "eps", 0),
                        .x = bench_golden(b, name, "x"),
                        .weight = bench_golden(b, name, "w"),
                        .y = bench_room(b, x.count),
                        .moments = bench_room(b, 2 * x.shape[0]),
                        .g = bench_golden(b, name, "g"),
                        .dx = bench_room(b, x.count),
                        .dweight = bench_room(b, x.shape[1]) };
        rms_there(b, &n);
        bench_expect(b, name, "out.y", n.y);
        rms_back(b, &n);
        bench_expect(b, name, "grad.x", n.dx);
        bench_expect(b, name, "grad.w", n.dweight);
        bench_drop_all(b);
    }
}

static void rms_norms_go_back(void **state)
{
    (void)state;
    bench_each_device(check_rms_norms);
}

/* ---- a llama block ---------------------------------------------------------------------------------- */

enum { TEXTS = 2, LENGTH = 12, TOKENS = TEXTS * LENGTH, D = 32, HQ = 4, HK = 2, HEAD = 8, F = 88 };

static clv_train_linear linear_of(ops_bench *b, size_t rows, size_t n, size_t k, clv_mem x,
                                  clv_mem w, clv_mem dw)
{
    return (clv_train_linear){ .rows = rows,
                               .n = n,
                               .k = k,
                               .alpha = 1,
                               .x = x,
                               .w = w,
                               .y = bench_room(b, rows * n),
                               .dx = bench_room(b, rows * k),
                               .dw = dw };
}

/* Gate and up as one matrix [2 inner, k], from the golden `name`. */
static clv_mem gate_and_up(ops_bench *b, const char *name)
{
    const golden_array g = golden_get(name, "wg"), u = golden_get(name, "wu");
    const clv_mem both = bench_room(b, 2 * g.count), second = { both.memory, g.count };
    EXPECT_OK(b->ops->put(b->ops, both, g.f32, g.count));
    EXPECT_OK(b->ops->put(b->ops, second, u.f32, u.count));
    return both;
}

/* The feed-forward part: y = (silu(x Wg) * (x Wu)) Wd + add; back to x, from g. */
typedef struct swiglu {
    clv_train_linear up, down;
    clv_mem gated, dinner;
    size_t rows, width;
} swiglu;

static swiglu swiglu_there(ops_bench *b, const char *name, size_t rows, clv_mem x, clv_mem add)
{
    const golden_array wd = golden_get(name, "wd");
    const size_t d = wd.shape[0], f = wd.shape[1];
    swiglu s = { .rows = rows, .width = f };
    s.up = linear_of(b, rows, 2 * f, d, x, gate_and_up(b, name), bench_room(b, 2 * f * d));
    s.gated = bench_room(b, rows * f), s.dinner = bench_room(b, rows * 2 * f);
    s.down = linear_of(b, rows, d, f, s.gated, bench_golden(b, name, "wd"), bench_room(b, d * f));
    s.down.add = add;
    EXPECT_OK(b->ops->linear(b->ops, &s.up));
    EXPECT_OK(
        clv_gate_enqueue(b->queue, s.up.y.memory, rows, f, CLV_ACTIVATION_SILU, s.gated.memory));
    EXPECT_OK(b->ops->linear(b->ops, &s.down));
    return s;
}

static void swiglu_back(ops_bench *b, const char *name, swiglu *s, clv_mem g)
{
    const clv_mem second = { s->up.dw.memory, s->width * s->up.k };
    s->down.g = g;
    s->up.g = s->dinner;
    EXPECT_OK(b->ops->linear_back(b->ops, &s->down));
    EXPECT_OK(clv_gate_back_enqueue(b->queue, s->up.y.memory, s->down.dx.memory, s->dinner.memory,
                                    s->rows, s->width, CLV_ACTIVATION_SILU));
    EXPECT_OK(b->ops->linear_back(b->ops, &s->up));
    bench_expect(b, name, "grad.wd", s->down.dw);
    bench_expect(b, name, "grad.wg", s->up.dw);
    bench_expect(b, name, "grad.wu", second);
}

static void check_swiglu(ops_bench *b)
{
    const char *name = "ffn_swiglu";
    const clv_mem none = { 0 };
    swiglu s =
        swiglu_there(b, name, golden_get(name, "x").shape[0], bench_golden(b, name, "x"), none);
    bench_expect(b, name, "out.y", s.down.y);
    swiglu_back(b, name, &s, bench_golden(b, name, "g"));
    bench_expect(b, name, "grad.x", s.up.dx);
}

static void gated_feed_forward_goes_back(void **state)
{
    (void)state;
    bench_each_device(check_swiglu);
}

/* Every text has positions of its own. */
static void turn(ops_bench *b, clv_mem x, size_t heads, clv_mem turns, bool back)
{
    for (size_t text = 0; text < TEXTS; ++text) {
        const clv_rows rows = { x.memory, text * LENGTH * heads * HEAD, heads * HEAD };
        EXPECT_OK((back ? clv_rope_back_enqueue : clv_rope_enqueue)(b->queue, &rows, turns.memory,
                                                                    0, LENGTH, heads, HEAD / 2));
    }
}

static void check_llama(ops_bench *b)
{
    if (bench_leaves_out_block(b)) return;
    const char *name = "llama_block";
    float angles[LENGTH * HEAD];
    const clv_mem x = bench_golden(b, name, "x"), g = bench_golden(b, name, "g");
    clv_rope_turns(LENGTH, HEAD / 2, 1e4, angles);
    const clv_mem turns = bench_bring(b, angles, CLV_LEN(angles));
    rms n1 = {
        .rows = TOKENS, .width = D, .eps = 1e-5f, .x = x, .weight = bench_golden(b, name, "n1")
    };
    n1.y = bench_room(b, TOKENS * D), n1.moments = bench_room(b, 2 * TOKENS);
    rms_there(b, &n1);
    clv_train_linear q =
        linear_of(b, TOKENS, D, D, n1.y, bench_golden(b, name, "wq"), bench_room(b, D * D));
    clv_train_linear k =
        linear_of(b, TOKENS, D / 2, D, n1.y, bench_golden(b, name, "wk"), bench_room(b, D * D / 2));
    clv_train_linear v =
        linear_of(b, TOKENS, D / 2, D, n1.y, bench_golden(b, name, "wv"), bench_room(b, D * D / 2));
    EXPECT_OK(b->ops->linear(b->ops, &q));
    EXPECT_OK(b->ops->linear(b->ops, &k));
    EXPECT_OK(b->ops->linear(b->ops, &v));
    turn(b, q.y, HQ, turns, false);
    turn(b, k.y, HK, turns, false);
    const clv_mem seen = bench_room(b, TOKENS * D);
    q.g = bench_room(b, TOKENS * D), k.g = bench_room(b, TOKENS * D / 2),
    v.g = bench_room(b, TOKENS * D / 2);
    clv_train_linear out =
        linear_of(b, TOKENS, D, D, seen, bench_golden(b, name, "wo"), bench_room(b, D * D));
    out.add = x;
    const sizes s = { TEXTS, HQ, HK, LENGTH, LENGTH, HEAD };
    clv_attention_back a = { .there = { .q = heads_of(q.y, D, HEAD),
                                        .k = heads_of(k.y, D / 2, HEAD),
                                        .v = heads_of(v.y, D / 2, HEAD),
                                        .o = heads_of(seen, D, HEAD),
                                        .causal = true,
                                        .heads = HQ,
                                        .kv_heads = HK,
                                        .width = HEAD,
                                        .scale = (float)(1 / sqrt((double)HEAD)),
                                        .tops = bench_room(b, 2 * HQ * TOKENS).memory,
                                        .top_head = TOKENS },
                             .g = heads_of(out.dx, D, HEAD),
                             .dq = heads_of(q.g, D, HEAD),
                             .dk = heads_of(k.g, D / 2, HEAD),
                             .dv = heads_of(v.g, D / 2, HEAD),
                             .delta = bench_room(b, HQ * TOKENS).memory };
    make_blocks(b, &s, LENGTH, LENGTH, &a.there, &a);
    EXPECT_OK(clv_attention_enqueue(b->queue, &a.there));
    EXPECT_OK(b->ops->linear(b->ops, &out));
    rms n2 = n1;
    n2.x = out.y, n2.weight = bench_golden(b, name, "n2");
    n2.y = bench_room(b, TOKENS * D), n2.moments = bench_room(b, 2 * TOKENS);
    rms_there(b, &n2);
    swiglu f = swiglu_there(b, name, TOKENS, n2.y, out.y);
    bench_expect(b, name, "out.y", f.down.y);

    swiglu_back(b, name, &f, g);
    n2.g = f.up.dx, n2.add = g, n2.dx = bench_room(b, TOKENS * D), n2.dweight = bench_room(b, D);
    rms_back(b, &n2);
    out.g = n2.dx;
    EXPECT_OK(b->ops->linear_back(b->ops, &out));
    EXPECT_OK(clv_attention_back_enqueue(b->queue, &a));
    turn(b, q.g, HQ, turns, true);
    turn(b, k.g, HK, turns, true);
    EXPECT_OK(b->ops->linear_back(b->ops, &q));
    k.dx = v.dx = k.dx_add = v.dx_add = q.dx;
    EXPECT_OK(b->ops->linear_back(b->ops, &k));
    EXPECT_OK(b->ops->linear_back(b->ops, &v));
    n1.g = q.dx, n1.add = n2.dx, n1.dx = bench_room(b, TOKENS * D), n1.dweight = bench_room(b, D);
    rms_back(b, &n1);
    const struct {
        const char *role;
        clv_mem got;
    } found[] = { { "grad.x", n1.dx },  { "grad.n1", n1.dweight }, { "grad.n2", n2.dweight },
                  { "grad.wq", q.dw },  { "grad.wk", k.dw },       { "grad.wv", v.dw },
                  { "grad.wo", out.dw } };
    for (size_t i = 0; i < CLV_LEN(found); ++i)
        bench_expect(b, name, found[i].role, found[i].got);
}

static void a_llama_block_goes_back(void **state)
{
    (void)state;
    bench_each_device(check_llama);
}

/* What cards do, whose work-items lie side by side, on whatever is here. */
static void forms_of_cards_go_back(void **state)
{
    void (*const claims[])(ops_bench *) = { check_attentions, check_softmax, check_rms_norms,
                                            check_swiglu, check_llama };
    (void)state;
    for (size_t i = 0; i < CLV_LEN(claims);
         ++i) /* softmax and the block have no kernels of their own */
        if (!test_brief() || (claims[i] != check_softmax && claims[i] != check_llama))
            bench_each_card(claims[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_goes_back),     cmocka_unit_test(softmax_goes_back),
        cmocka_unit_test(rms_norms_go_back),       cmocka_unit_test(gated_feed_forward_goes_back),
        cmocka_unit_test(a_llama_block_goes_back), cmocka_unit_test(forms_of_cards_go_back),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("attention_back", tests, golden_setup, golden_teardown);
}
