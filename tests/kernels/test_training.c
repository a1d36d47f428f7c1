/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the backward pass of the blocks of transformers on every device and in plain C with golden cases. */
#include "golden.h"
#include "ops_bench.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/train/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_small(const ops_bench *b)
{
    return b->device && b->device->tiny;
}

/* ---- blocks ----------------------------------------------------------------------------------------- */

static void check_layer_norms(ops_bench *b)
{
    char name[32];
    for (int i = 0; i < 5; ++i) {
        snprintf(name, sizeof name, "layernorm%d", i);
        const golden_array x = golden_get(name, "x");
        const size_t width = x.shape[1];
        /* one buffer for both, as in a model */
        clv_mem parameters = bench_room(b, 2 * width), bias = { parameters.memory, width };
        EXPECT_OK(b->ops->put(b->ops, parameters, golden_get(name, "w").f32, width));
        EXPECT_OK(b->ops->put(b->ops, bias, golden_get(name, "b").f32, width));
        const clv_train_norm n = { .rows = x.shape[0],
                                   .width = width,
                                   .eps = (float)golden_number(name, "eps", 0),
                                   .x = bench_golden(b, name, "x"),
                                   .weight = parameters,
                                   .bias = bias,
                                   .y = bench_room(b, x.count),
                                   .moments = bench_room(b, 2 * x.shape[0]),
                                   .g = bench_golden(b, name, "g"),
                                   .dx = bench_room(b, x.count),
                                   .dweight = bench_room(b, width),
                                   .dbias = bench_room(b, width) };
        EXPECT_OK(b->ops->norm(b->ops, &n));
        EXPECT_OK(b->ops->norm_back(b->ops, &n));
        bench_expect(b, name, "out.y", n.y);
        if (golden_has(name, "grad.x")) bench_expect(b, name, "grad.x", n.dx);
        bench_expect(b, name, "grad.w", n.dweight);
        bench_expect(b, name, "grad.b", n.dbias);
        bench_drop_all(b);
    }
}

static void layer_norms_go_back(void **state)
{
    (void)state;
    bench_each_side(check_layer_norms);
}

static void check_activations(ops_bench *b)
{
    static const char *const names[] = { "", "gelu_erf", "gelu_tanh", "silu" };
    for (clv_activation act = CLV_ACTIVATION_GELU; act <= CLV_ACTIVATION_SILU; ++act) {
        const size_t count = golden_get(names[act], "x").count;
        const clv_mem x = bench_golden(b, names[act], "x"), g = bench_golden(b, names[act], "g");
        const clv_mem y = bench_room(b, count), none = { 0 };
        EXPECT_OK(b->ops->activate(b->ops, x, none, y, count, act));
        bench_expect(b, names[act], "out.y", y);
        EXPECT_OK(b->ops->activate(b->ops, x, g, g, count, act)); /* in place */
        bench_expect(b, names[act], "grad.x", g);
        bench_drop_all(b);
    }
}

static void activations_go_back(void **state)
{
    (void)state;
    bench_each_side(check_activations);
}

/* ReLU on the numbers of SiLU: both ways are exact, and the slope at 0 is 0, as in PyTorch. */
static void check_relu(ops_bench *b)
{
    const golden_array x = golden_get("silu", "x"), g = golden_get("silu", "g");
    const clv_mem in = bench_golden(b, "silu", "x"), y = bench_room(b, x.count), none = { 0 };
    for (int back = 0; back < 2; ++back) {
        const clv_mem from = back ? bench_golden(b, "silu", "g") : none;
        float *got = clv_alloc(x.count, sizeof *got);
        assert_non_null(got);
        EXPECT_OK(b->ops->activate(b->ops, in, from, y, x.count, CLV_ACTIVATION_RELU));
        EXPECT_OK(b->ops->get(b->ops, y, got, x.count));
        for (size_t i = 0; i < x.count; ++i)
            if (got[i] != (x.f32[i] > 0 ? (back ? g : x).f32[i] : 0))
                fail_msg("ReLU, %s, of %g is %g", back ? "backward" : "forward", (double)x.f32[i],
                         (double)got[i]);
        clv_free(got);
    }
    bench_drop_all(b);
}

/* What the shares of a batch need besides: copies and sums of parts of arrays. */
static void check_parts(ops_bench *b)
{
    const golden_array x = golden_get("silu", "x");
    const size_t count = x.count - 3;
    const clv_mem in = bench_golden(b, "silu", "x"), y = bench_golden(b, "silu", "x");
    clv_mem from = in, to = y;
    float *got = clv_alloc(x.count, sizeof *got);
    assert_non_null(got);
    from.at = 2, to.at = 1;
    EXPECT_OK(b->ops->add(b->ops, from, to, count));
    from.at = 0, to.at = count;
    EXPECT_OK(b->ops->copy(b->ops, from, to, 2));
    EXPECT_OK(b->ops->get(b->ops, y, got, x.count));
    for (size_t i = 0; i < x.count; ++i) {
        const bool copied = i == count || i == count + 1, added = i > 0 && i < count;
        const float want = copied ? x.f32[i - count] : added ? x.f32[i] + x.f32[i + 1] : x.f32[i];
        if (got[i] != want)
            fail_msg("number %zu is %g, expected %g", i, (double)got[i], (double)want);
    }
    clv_free(got);
    bench_drop_all(b);
}

static void parts_are_copied_and_added(void **state)
{
    (void)state;
    bench_each_device(check_parts);
}

static void relu_goes_back(void **state)
{
    (void)state;
    bench_each_side(check_relu);
}

static void check_ffns(ops_bench *b)
{
    char name[32];
    for (int i = 0; i < 3; ++i) {
        snprintf(name, sizeof name, "ffn_gelu%d", i);
        if (!golden_has(name, "x") || test_left_out(b->device, is_small(b) && i, "%s", name))
            continue;
        const golden_array gx = golden_get(name, "x"), w1 = golden_get(name, "w1");
        const size_t rows = gx.shape[0], d = gx.shape[1], f = w1.shape[0];
        const clv_mem none = { 0 }, u = bench_room(b, rows * f), a = bench_room(b, rows * f);
        const clv_mem g = bench_golden(b, name, "g"), du = bench_room(b, rows * f);
        clv_train_linear up = { .rows = rows,
                                .n = f,
                                .k = d,
                                .alpha = 1,
                                .x = bench_golden(b, name, "x"),
                                .w = bench_golden(b, name, "w1"),
                                .b = bench_golden(b, name, "b1"),
                                .y = u,
                                .g = du,
                                .dx = bench_room(b, rows * d),
                                .dw = bench_room(b, f * d),
                                .db = bench_room(b, f) };
        clv_train_linear down = { .rows = rows,
                                  .n = d,
                                  .k = f,
                                  .alpha = 1,
                                  .x = a,
                                  .w = bench_golden(b, name, "w2"),
                                  .b = bench_golden(b, name, "b2"),
                                  .y = bench_room(b, rows * d),
                                  .g = g,
                                  .dx = du,
                                  .dw = bench_room(b, f * d),
                                  .db = bench_room(b, d) };
        EXPECT_OK(b->ops->linear(b->ops, &up));
        EXPECT_OK(b->ops->activate(b->ops, u, none, a, rows * f, CLV_ACTIVATION_GELU));
        EXPECT_OK(b->ops->linear(b->ops, &down));
        bench_expect(b, name, "out.y", down.y);
        EXPECT_OK(b->ops->linear_back(b->ops, &down));
        EXPECT_OK(b->ops->activate(b->ops, u, du, du, rows * f, CLV_ACTIVATION_GELU));
        EXPECT_OK(b->ops->linear_back(b->ops, &up));
        bench_expect(b, name, "grad.x", up.dx);
        bench_expect(b, name, "grad.b1", up.db);
        bench_expect(b, name, "grad.b2", down.db);
        if (golden_has(name, "grad.w1")) bench_expect(b, name, "grad.w1", up.dw);
        if (golden_has(name, "grad.w2")) bench_expect(b, name, "grad.w2", down.dw);
        bench_drop_all(b);
    }
}

static void feed_forward_goes_back(void **state)
{
    (void)state;
    bench_each_side(check_ffns);
}

/* Texts of equal length, as the goldens have them; rows that are masked are there, but not seen. */
static void batch_of(ops_bench *b, clv_batch_rooms *rooms, const int32_t *ids, const int32_t *mask,
                     size_t texts, size_t length)
{
    size_t offsets[32];
    int32_t zeros[64] = { 0 };
    assert_true(texts < 32 && texts * length <= 64);
    for (size_t i = 0; i <= texts; ++i)
        offsets[i] = i * length;
    EXPECT_OK(clv_batch_fill(b->ops, rooms, ids ? ids : zeros, offsets, texts, mask));
}

static void check_embedding(ops_bench *b)
{
    const golden_array ids = golden_get("embedding", "ids"), w = golden_get("embedding", "w");
    const size_t width = w.shape[1];
    const clv_mem zeros = bench_room(b, 64 * width), dw = bench_room(b, w.count);
    clv_batch_rooms rooms = { 0 };
    batch_of(b, &rooms, ids.i32, NULL, ids.shape[0], ids.shape[1]);
    EXPECT_OK(b->ops->clear(b->ops, zeros, 64 * width));
    EXPECT_OK(b->ops->clear(b->ops, dw, w.count));
    const clv_train_embed e = { .batch = &rooms.batch,
                                .width = width,
                                .word = bench_golden(b, "embedding", "w"),
                                .position = zeros,
                                .type = zeros,
                                .y = bench_room(b, ids.count * width),
                                .g = bench_golden(b, "embedding", "g"),
                                .dword = dw,
                                .dposition = zeros,
                                .dtype = bench_room(b, width) };
    EXPECT_OK(b->ops->embed(b->ops, &e));
    bench_expect(b, "embedding", "out.y", e.y);
    EXPECT_OK(b->ops->embed_back(b->ops, &e));
    bench_expect(b, "embedding", "grad.w", dw);
    /* a position's gradient is that of its column, the type's that of all rows */
    const float *g = golden_get("embedding", "g").f32;
    float position[8 * 16], type[16];
    assert_true(ids.shape[1] <= 8 && width <= 16);
    EXPECT_OK(b->ops->get(b->ops, zeros, position, ids.shape[1] * width));
    EXPECT_OK(b->ops->get(b->ops, e.dtype, type, width));
    for (size_t c = 0; c < width; ++c) {
        double all = 0;
        for (size_t p = 0; p < ids.shape[1]; ++p) {
            double sum = 0;
            for (size_t s = 0; s < ids.shape[0]; ++s)
                sum += (double)g[(s * ids.shape[1] + p) * width + c];
            assert_true(fabs(sum - (double)position[p * width + c]) < 1e-6);
            all += sum;
        }
        assert_true(fabs(all - (double)type[c]) < 3e-6);
    }
    clv_batch_free(b->ops, &rooms);
}

static void embeddings_go_back(void **state)
{
    (void)state;
    bench_each_side(check_embedding);
}

/* The mean against the golden; CLS and maximum against what they are defined as. */
static void check_pooling(ops_bench *b)
{
    const golden_array x = golden_get("meanpool", "x"), mask = golden_get("meanpool", "mask");
    const size_t texts = x.shape[0], length = x.shape[1], width = x.shape[2];
    clv_batch_rooms rooms = { 0 };
    batch_of(b, &rooms, NULL, mask.i32, texts, length);
    clv_train_pool p = { .batch = &rooms.batch,
                         .width = width,
                         .kind = CLV_MODEL_MEAN,
                         .x = bench_golden(b, "meanpool", "x"),
                         .y = bench_room(b, texts * width),
                         .g = bench_golden(b, "meanpool", "g"),
                         .dx = bench_room(b, x.count) };
    EXPECT_OK(b->ops->pool(b->ops, &p));
    EXPECT_OK(b->ops->pool_back(b->ops, &p));
    bench_expect(b, "meanpool", "out.y", p.y);
    bench_expect(b, "meanpool", "grad.x", p.dx);
    const float *g = golden_get("meanpool", "g").f32;
    float got[4 * 6 * 10];
    assert_true(x.count <= CLV_LEN(got));
    for (p.kind = CLV_MODEL_CLS; p.kind <= CLV_MODEL_MAX; ++p.kind) {
        EXPECT_OK(b->ops->pool_back(b->ops, &p));
        EXPECT_OK(b->ops->get(b->ops, p.dx, got, x.count));
        for (size_t i = 0; i < x.count; ++i) {
            const size_t c = i % width, t = i / width % length, s = i / width / length;
            bool mine = mask.i32[s * length + t] && (p.kind == CLV_MODEL_MAX || t == 0);
            for (size_t k = 0; k < length && p.kind == CLV_MODEL_MAX; ++k)
                mine = mine && (!mask.i32[s * length + k] ||
                                x.f32[(s * length + k) * width + c] <= x.f32[i]);
            if (got[i] != (mine ? g[s * width + c] : 0))
                fail_msg("pooling %d: element %zu is %g", (int)p.kind, i, (double)got[i]);
        }
    }
    clv_batch_free(b->ops, &rooms);
}

static void pooling_goes_back(void **state)
{
    (void)state;
    bench_each_side(check_pooling);
}

/* Rows divided by their length: the backward pass by differences in double precision. */
static void check_unit(ops_bench *b)
{
    const golden_array x = golden_get("l2norm", "x");
    const size_t rows = x.shape[0], width = x.shape[1];
    const clv_mem dx = bench_golden(b, "l2norm", "x"), y = bench_room(b, x.count), none = { 0 };
    float g[64], got[64];
    assert_true(x.count <= 64);
    uint64_t seed = 3;
    for (size_t i = 0; i < x.count; ++i)
        g[i] = (float)test_uniform(&seed, -1, 1);
    const clv_mem dg = bench_room(b, x.count);
    EXPECT_OK(b->ops->put(b->ops, dg, g, x.count));
    EXPECT_OK(b->ops->unit(b->ops, dx, none, y, rows, width));
    bench_expect(b, "l2norm", "out.y", y);
    EXPECT_OK(b->ops->unit(b->ops, dx, dg, dg, rows, width));
    EXPECT_OK(b->ops->get(b->ops, dg, got, x.count));
    for (size_t r = 0; r < rows; ++r) {
        double squares = 0, along = 0;
        for (size_t c = 0; c < width; ++c) {
            const double v = (double)x.f32[r * width + c];
            squares += v * v;
            along += v * (double)g[r * width + c];
        }
        for (size_t c = 0; c < width; ++c) {
            const double v = (double)x.f32[r * width + c], from = (double)g[r * width + c];
            const double length = sqrt(squares);
            const double want = length > 0 ? (from - v * along / squares) / length : from / 1e-12;
            if (!(fabs(want - (double)got[r * width + c]) <= 1e-6 * fmax(1, fabs(want))))
                fail_msg("row %zu: %g, expected %g", r, (double)got[r * width + c], want);
        }
    }
}

static void unit_rows_go_back(void **state)
{
    (void)state;
    bench_each_side(check_unit);
}

/* ---- a BERT layer ----------------------------------------------------------------------------------- */

static const struct {
    const char *role;
    size_t at; /* in clv_net_layer; parts of qkv follow each other */
    int part;
} layer_roles[] = {
#define AT(member) offsetof(clv_net_layer, member)
    { "wq", AT(qkv), 0 },          { "wk", AT(qkv), 1 },       { "wv", AT(qkv), 2 },
    { "bq", AT(qkv_bias), 0 },     { "bk", AT(qkv_bias), 1 },  { "bv", AT(qkv_bias), 2 },
    { "wo", AT(out), 0 },          { "bo", AT(out_bias), 0 },  { "ln1w", AT(norm1), 0 },
    { "ln1b", AT(norm1_bias), 0 }, { "w1", AT(up), 0 },        { "b1", AT(up_bias), 0 },
    { "w2", AT(down), 0 },         { "b2", AT(down_bias), 0 }, { "ln2w", AT(norm2), 0 },
    { "ln2b", AT(norm2_bias), 0 },
#undef AT
};

static void check_bert_block(ops_bench *b)
{
    if (bench_leaves_out_block(b)) return;
    const char *name = "bert_block";
    const golden_array x = golden_get(name, "x"), mask = golden_get(name, "mask");
    const size_t d = x.shape[2], f = golden_get(name, "w1").shape[0], tokens = x.count / d;
    clv_net_layer place = { 0 };
    clv_net_trace trace = { 0 };
    clv_batch_rooms rooms = { 0 };
    clv_net net = { .ops = b->ops,
                    .config = { .size = sizeof(clv_model_config),
                                .width = d,
                                .heads = (size_t)golden_number(name, "H", 0),
                                .ffn = f,
                                .eps = (float)golden_number(name, "eps", 0),
                                .act = CLV_ACTIVATION_GELU } };
    const size_t count = 4 * d * d + 2 * d * f + 9 * d + f;
    const clv_mem weights = bench_room(b, count), gradient = bench_room(b, count);
    net.weights = weights.memory, net.gradient = gradient.memory;
    size_t used = 0, where[CLV_LEN(layer_roles)];
    for (size_t i = 0; i < CLV_LEN(layer_roles); ++i) {
        const golden_array w = golden_get(name, layer_roles[i].role);
        size_t *at = (size_t *)(void *)((char *)&place + layer_roles[i].at);
        if (!layer_roles[i].part) *at = used;
        where[i] = used;
        EXPECT_OK(b->ops->put(b->ops, (clv_mem){ weights.memory, used }, w.f32, w.count));
        used += w.count;
    }
    assert_int_equal(used, count);
    batch_of(b, &rooms, NULL, mask.i32, x.shape[0], x.shape[1]);
    EXPECT_OK(clv_room_fit(b->ops, &trace.x, x.count));
    EXPECT_OK(b->ops->put(b->ops, (clv_mem){ trace.x.memory, 0 }, x.f32, x.count));
    const clv_mem y = bench_room(b, tokens * d), g = bench_golden(b, name, "g");
    EXPECT_OK(clv_net_layer_forward(&net, &place, &trace, &rooms.batch, y));
    bench_expect(b, name, "out.y", y);
    EXPECT_OK(clv_net_layer_backward(&net, &place, &trace, &rooms.batch, g, false));
    bench_expect(b, name, "grad.x", g);
    for (size_t i = 0; i < CLV_LEN(layer_roles); ++i) {
        char role[16];
        snprintf(role, sizeof role, "grad.%s", layer_roles[i].role);
        bench_expect(b, name, role, (clv_mem){ gradient.memory, where[i] });
    }
    clv_net_trace_free(b->ops, &trace);
    clv_net_close(&net);
    clv_batch_free(b->ops, &rooms);
}

static void a_bert_block_goes_back(void **state)
{
    (void)state;
    bench_each_side(check_bert_block);
}

/* What cards do, whose work-items lie side by side, on whatever is here. */
static void forms_of_cards_go_back(void **state)
{
    void (*const claims[])(
        ops_bench *) = { check_layer_norms, check_activations, check_embedding,
                         check_pooling,     check_unit,        check_bert_block };
    (void)state;
    for (size_t i = 0; i < CLV_LEN(claims); ++i) /* the block has no kernel of its own */
        if (!test_brief() || claims[i] != check_bert_block) bench_each_card(claims[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norms_go_back),
        cmocka_unit_test(activations_go_back),
        cmocka_unit_test(relu_goes_back),
        cmocka_unit_test(feed_forward_goes_back),
        cmocka_unit_test(embeddings_go_back),
        cmocka_unit_test(pooling_goes_back),
        cmocka_unit_test(unit_rows_go_back),
        cmocka_unit_test(a_bert_block_goes_back),
        cmocka_unit_test(parts_are_copied_and_added),
        cmocka_unit_test(forms_of_cards_go_back),
    };
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("training", tests, golden_setup, golden_teardown);
}
