/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, transformer blocks and whole inference in `cleave bench`, from memory to memory. */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/model/minilm.h"

#include <cleave/offload.h>
#include <cleave/train.h>

#include <math.h>
#include <stdio.h>

enum { MATMUL, ATTENTION, FFN, INFERENCE, TRAINING, MIXED, HEADS = 8, CLASSES = 4 };

/* size: rows, columns, inner extent; of attention: tokens, width of a head; of models: texts, tokens
 * of each; of mixed texts: all tokens */
static const struct {
    const char *name;
    int kind;
    size_t size[3];
    bool full;
} rows[] = {
    { "matmul 512x512", MATMUL, { 512, 512, 512 }, false },
    { "matmul 1024x1024", MATMUL, { 1024, 1024, 1024 }, false },
    { "matmul 2048x2048", MATMUL, { 2048, 2048, 2048 }, false },
    { "matmul 5000x5000", MATMUL, { 5000, 5000, 5000 }, true },
    { "attention, 8 heads, 128 tokens of 256", ATTENTION, { 128, 32, 1 }, false },
    { "attention, 8 heads, 512 tokens of 512", ATTENTION, { 512, 64, 1 }, false },
    { "feed forward 256, 128 tokens", FFN, { 128, 256, 256 }, false },
    { "feed forward 512 to 2048, 512 tokens", FFN, { 512, 512, 2048 }, false },
    { "encoder of MiniLM's size, 64 texts of 64", INFERENCE, { 64, 64, 1 }, false },
    { "fine-tuning step of MiniLM, 16 texts of 128", TRAINING, { 16, 128, 1 }, false },
    { "encoder, 1024 texts of 16", INFERENCE, { 1024, 16, 1 }, true },
    { "encoder, 256 texts of 64", INFERENCE, { 256, 64, 1 }, true },
    { "encoder, 128 texts of 128", INFERENCE, { 128, 128, 1 }, true },
    { "encoder, 64 texts of 256", INFERENCE, { 64, 256, 1 }, true },
    { "encoder, mixed texts, 16384 tokens", MIXED, { 16384, 0, 1 }, true },
};

static size_t list_cases(const bench_sizes *sizes, bench_case *cases, size_t room)
{
    size_t count = 0;
    if (sizes->given_count) return 0;
    for (size_t i = 0; i < CLV_LEN(rows) && count < room; ++i) {
        if (rows[i].full && !sizes->full) continue;
        cases[count] = (bench_case){ .workload = &bench_transformer,
                                     .size = { rows[i].size[0], rows[i].size[1], rows[i].size[2] },
                                     .variant = rows[i].kind };
        snprintf(cases[count++].name, sizeof cases->name, "%s", rows[i].name);
    }
    return count;
}

/* Returns a length of a log-normal distribution of mean 25, at most `left`. */
static size_t next_length(uint32_t *state, size_t left)
{
    double normal = -6;
    for (int i = 0; i < 12; ++i) {
        *state = *state * 1664525u + 1013904223u;
        normal += (double)(*state >> 8) * 0x1p-24;
    }
    return CLV_MIN((size_t)fmin(fmax(exp(3.05 + 0.7 * normal), 3), 256), left);
}

/* Makes texts of all lengths; `offsets` may be NULL. Returns their number, and in *squares the sum of squared
 * lengths. */
static size_t mix(size_t tokens, size_t *offsets, double *squares)
{
    size_t texts = 0;
    uint32_t state = 1;
    *squares = 0;
    for (size_t at = 0, own; at < tokens; at += own) {
        own = next_length(&state, tokens - at);
        *squares += (double)(own * own);
        ++texts;
        if (offsets) offsets[texts] = at + own;
    }
    return texts;
}

static double flops_of(const bench_case *c)
{
    const double a = (double)c->size[0], b = (double)c->size[1], k = (double)c->size[2];
    double squares;
    if (c->variant == MIXED) {
        mix(c->size[0], NULL, &squares);
        return 6 * (a * 2 * 384.0 * (4 * 384 + 2 * 1536) + 4 * squares * 384);
    }
    if (c->variant == MATMUL) return 2 * a * b * k;
    if (c->variant == ATTENTION) return 4 * HEADS * a * a * b;
    if (c->variant == FFN) return 4 * a * b * k;
    return (c->variant == TRAINING ? 18 : 6) * a * b *
           (2 * 384.0 * (4 * 384 + 2 * 1536) + 4 * b * 384);
}

typedef struct trial {
    clv_context *context;
    const bench_case *c;
    float *x, *w, *y;
    int32_t *ids;
    size_t *offsets, texts;
    clv_model *model;
    clv_encoder *encoder;
    clv_trainer *trainer;
    int32_t *labels;
} trial;

static clv_status once(void *user, double *seconds)
{
    const trial *t = user;
    const size_t *s = t->c->size;
    const clv_attention_shape shape = { .size = sizeof(clv_attention_shape),
                                        .batch = 1,
                                        .heads = HEADS,
                                        .queries = s[0],
                                        .keys = s[0],
                                        .width = s[1] };
    const double started = clv_now();
    clv_status status;
    if (t->c->variant == MATMUL)
        status = clv_matmul_f32(t->context, s[0], s[1], s[2], t->x, t->w, t->y);
    else if (t->c->variant == ATTENTION)
        status = clv_attention_f32(t->context, &shape, t->x, t->w, t->w, NULL, t->y);
    else if (t->c->variant == FFN)
        status = clv_ffn_f32(t->context, s[0], s[1], s[2], CLV_ACTIVATION_GELU, t->x, t->w, NULL,
                             t->w, NULL, t->y);
    else if (t->c->variant == TRAINING)
        status = clv_trainer_step(t->trainer, t->ids, t->offsets, t->texts, t->labels, 1e-5, NULL);
    else
        status = clv_encode(t->encoder, t->ids, t->offsets, t->texts, t->y, NULL);
    *seconds = clv_now() - started;
    return status;
}

static float *numbers(size_t count)
{
    float *out = clv_alloc(count, sizeof *out);
    uint32_t state = 1;
    for (size_t i = 0; out && i < count; ++i) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return out;
}

/* Makes the texts, and an encoder or a trainer for them. */
static clv_status open_model(trial *t)
{
    const size_t texts = t->c->size[0], length = t->c->size[1];
    const bool mixed = t->c->variant == MIXED;
    const size_t tokens = mixed ? texts : texts * length;
    double squares;
    t->ids = clv_alloc(tokens, sizeof *t->ids);
    t->offsets = clv_alloc(texts + 1, sizeof *t->offsets);
    if (!t->ids || !t->offsets) return clv_fail(CLV_E_MEMORY, "not enough memory for texts");
    for (size_t i = 0; i < tokens; ++i)
        t->ids[i] = (int32_t)(i * 7919 % clv_minilm_config.vocabulary);
    for (size_t i = 0; i <= texts; ++i)
        t->offsets[i] = i * length;
    t->texts = mixed ? mix(tokens, t->offsets, &squares) : texts;
    CLV_TRY(clv_model_create_random(&clv_minilm_config, 1, &t->model));
    if (t->c->variant == TRAINING) {
        const clv_trainer_options options = { .size = sizeof options, .classes = CLASSES };
        t->labels = clv_alloc(texts, sizeof *t->labels);
        if (!t->labels) return clv_fail(CLV_E_MEMORY, "not enough memory for labels");
        for (size_t i = 0; i < texts; ++i)
            t->labels[i] = (int32_t)(i % CLASSES);
        return clv_trainer_open(t->context, t->model, &options, &t->trainer);
    }
    return clv_encoder_open(t->context, clv_model_get_config(t->model),
                            clv_model_get_weights(t->model), NULL, &t->encoder);
}

/* Measures the seconds per flop with a small block, to predict whether a model would take too long. */
static clv_status find_pace(bench_run *run)
{
    static const bench_case block = { .size = { 128, 256, 256 }, .variant = FFN };
    const size_t floats = block.size[1] * block.size[2];
    trial t = { .context = run->context, .c = &block };
    double seconds;
    t.x = numbers(floats), t.w = numbers(floats), t.y = numbers(floats);
    clv_status status =
        t.x && t.w && t.y ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for a block");
    for (int i = 0; i < 2 && !status; ++i) /* the first one compiles */
        status = once(&t, &seconds);
    if (!status) run->seconds_per_effort = seconds / flops_of(&block);
    clv_free(t.x), clv_free(t.w), clv_free(t.y);
    return status;
}

static clv_status measure(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    double values[BENCH_MOST_SAMPLES], seconds = 0;
    size_t count = 0;
    if (c->variant >= INFERENCE && !(run->seconds_per_effort > 0)) CLV_TRY(find_pace(run));
    if (bench_is_too_long(run, case_index)) return CLV_OK;
    trial t = { .context = run->context, .c = c };
    const size_t big =
        CLV_MAX(c->size[0] * CLV_MAX(c->size[1], c->size[2]), c->size[1] * c->size[2]);
    const size_t floats = c->variant == ATTENTION   ? HEADS * c->size[0] * c->size[1]
                          : c->variant >= INFERENCE ? c->size[0] * 384
                                                    : big;
    t.x = numbers(floats), t.w = numbers(floats), t.y = numbers(floats);
    clv_status status =
        t.x && t.w && t.y ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for %s", c->name);
    if (!status && c->variant >= INFERENCE) status = open_model(&t);
    const bool plain = run->bench->parties[run->party].kind == BENCH_REFERENCE;
    const clv_side before = clv_offload_force(plain ? CLV_SIDE_HOST : CLV_SIDE_DEVICE);
    if (!status) status = once(&t, &seconds); /* compiles, packs, learns speeds */
    if (!status) status = bench_repeat(&run->bench->plan, once, &t, values, &count);
    clv_offload_force(before);
    if (!status) {
        bench_send(run, case_index, BENCH_COMPUTE, values, count);
        bench_send_cost(run, case_index, flops_of(c), 0);
        run->seconds_per_effort = bench_stat_of(values, count).median / flops_of(c);
    }
    clv_encoder_close(t.encoder);
    clv_trainer_close(t.trainer);
    clv_model_close(t.model);
    clv_free(t.labels);
    clv_free(t.x), clv_free(t.w), clv_free(t.y), clv_free(t.ids), clv_free(t.offsets);
    return status;
}

const bench_workload bench_transformer = {
    .name = "transformer",
    .title = "Transformer blocks: matrices, attention, feed forward, inference",
    .cases = list_cases,
    .effort = flops_of,
    .measure = measure,
};
