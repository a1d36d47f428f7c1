/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_encode: makes the tables of tokens and attention blocks for a call, then runs the texts as a job. */
#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_BATCH = 1536 };

static clv_status check_name(const char *field, unsigned given, int last)
{
    return given <= (unsigned)last
               ? CLV_OK
               : clv_fail(CLV_E_ARGUMENT,
                          "encoder: %s is %u, but it must be an enumerator from 0 to %d", field,
                          given, last);
}

/* Checks that a model's optional parts, which only some families of models have, are consistent. */
static clv_status check_family(const clv_model_config *c, const clv_model_weights *w)
{
    size_t width = CLV_MAX(c->joined_count, (size_t)1) * c->width;
    if (c->joined_count > CLV_LEN(c->joined))
        return clv_fail(CLV_E_ARGUMENT, "encoder: got %zu joined poolings, expected at most %zu",
                        c->joined_count, CLV_LEN(c->joined));
    CLV_TRY(check_name("family", (unsigned)c->family, CLV_MODEL_ALBERT));
    CLV_TRY(check_name("act", (unsigned)c->act, CLV_ACTIVATION_RELU));
    CLV_TRY(check_name("pooling", (unsigned)c->pooling, CLV_MODEL_LAST));
    for (size_t i = 0; i < c->joined_count; ++i)
        CLV_TRY(check_name("joined", (unsigned)c->joined[i], CLV_MODEL_LAST));
    if ((c->embedding && (!w->project_weight || !w->project_bias)) || (c->buckets && !w->relative))
        return clv_fail(CLV_E_ARGUMENT, "encoder: the config sets embedding or buckets, but the "
                                        "weights lack project_weight and "
                                        "project_bias, or relative");
    if (c->step_count && !c->steps)
        return clv_fail(CLV_E_ARGUMENT, "encoder: step_count is %zu, but steps is NULL",
                        c->step_count);
    for (size_t i = 0; i < c->step_count; width = c->steps[i++].out)
        if (c->steps[i].in != width || !c->steps[i].out)
            return clv_fail(CLV_E_SHAPE,
                            "encoder: step %zu needs vectors of %zu numbers, but gets %zu", i,
                            c->steps[i].in, width);
    if (c->output ? c->output != width : width != c->width)
        return clv_fail(CLV_E_SHAPE, "encoder: output is %zu, but the vectors have %zu numbers",
                        c->output, width);
    return CLV_OK;
}

clv_status clv_encoder_open(clv_context *context, const clv_model_config *config,
                            const clv_model_weights *weights, const clv_encoder_options *given,
                            clv_encoder **out)
{
    clv_encoder_options o;
    clv_model_config own;
    clv_model_weights own_weights;
    if (!out) return clv_fail(CLV_E_ARGUMENT, "encoder: out is NULL");
    *out = NULL;
    if (!context || !config || !weights)
        return clv_fail(CLV_E_ARGUMENT, "encoder: context, config or weights is NULL");
    CLV_TRY(clv_take_struct(&o, sizeof o, given, "clv_encoder_open", "clv_encoder_options"));
    CLV_TRY(clv_take_struct(&own, sizeof own, config, "clv_encoder_open", "clv_model_config"));
    CLV_TRY(clv_take_struct(&own_weights, sizeof own_weights, weights, "clv_encoder_open",
                            "clv_model_weights"));
    if (!own.heads || !own.width || own.width % own.heads)
        return clv_fail(CLV_E_SHAPE, "encoder: width %zu is not a multiple of %zu heads", own.width,
                        own.heads);
    CLV_TRY(check_family(&own, &own_weights));
    clv_encoder *e = clv_zalloc(1, sizeof *e);
    if (!e) return clv_fail(CLV_E_MEMORY, "encoder: out of memory");
    e->context = context;
    e->config = own;
    e->weights = own_weights;
    e->batch_tokens = o.batch_tokens ? o.batch_tokens : DEFAULT_BATCH;
    e->hidden = o.hidden;
    e->half = o.half;
    e->half_products = o.half && o.half_products;
    clv_mutex_init(&e->lock);
    const clv_status status = clv_encode_tail_make(e);
    if (status)
        clv_encoder_close(e);
    else
        *out = e;
    return status;
}

void clv_encoder_close(clv_encoder *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->device_count; ++i)
        clv_encoder_device_free(e, e->devices[i]);
    clv_encode_tail_free(e);
    pthread_mutex_destroy(&e->lock);
    clv_free(e);
}

clv_status clv_texts_check(const char *what, const clv_model_config *c, const int32_t *ids,
                           const size_t *offsets, size_t texts)
{
    for (size_t i = 0; i < texts; ++i) {
        if (offsets[i + 1] < offsets[i])
            return clv_fail(CLV_E_ARGUMENT,
                            "%s: text %zu ends at token %zu, before its first token %zu", what, i,
                            offsets[i + 1], offsets[i]);
        const size_t length = offsets[i + 1] - offsets[i];
        if (length > c->positions)
            return clv_fail(CLV_E_SHAPE,
                            "%s: text %zu has %zu tokens, but the model takes at most %zu", what, i,
                            length, c->positions);
        for (size_t t = offsets[i]; t < offsets[i + 1]; ++t)
            if (ids[t] < 0 || (size_t)ids[t] >= c->vocabulary)
                return clv_fail(
                    CLV_E_ARGUMENT,
                    "%s: token %zu of text %zu is %d, but the vocabulary has %zu tokens", what,
                    t - offsets[i], i, (int)ids[t], c->vocabulary);
    }
    return offsets[texts] - offsets[0] < INT32_MAX / 2
               ? CLV_OK
               : clv_fail(CLV_E_SHAPE, "%s: %zu tokens are too many for one call", what,
                          offsets[texts]);
}

static void plan_clear(clv_encode_plan *p)
{
    clv_free(p->tokens);
    clv_free(p->rows);
    clv_free(p->squares);
    for (size_t i = 0; i < CLV_ENCODER_SIDES; ++i) {
        clv_free(p->sides[i].blocks);
        clv_free(p->sides[i].first);
    }
}

static bool plan_side(clv_encode_plan *p, size_t side)
{
    const clv_block_form form = { .queries = side ? 64 : 16 };
    size_t count = 0;
    size_t *first = p->sides[side].first = clv_alloc(p->texts + 1, sizeof *first);
    if (!first) return false;
    for (size_t i = 0; i < p->texts; ++i) {
        first[i] = count;
        count += clv_attention_block_count(&form, p->offsets[i + 1] - p->offsets[i]);
    }
    first[p->texts] = count;
    clv_attention_block *blocks = p->sides[side].blocks = clv_zalloc(count + 1, sizeof *blocks);
    if (!blocks) return false;
    for (size_t i = 0; i < p->texts; ++i) {
        const int32_t at = (int32_t)p->offsets[i];
        const int32_t length = (int32_t)(p->offsets[i + 1] - p->offsets[i]);
        clv_attention_fill(
            &form,
            (clv_attention_block){ .query = at, .queries = length, .key = at, .keys = length },
            blocks + first[i]);
    }
    return true;
}

static clv_status plan_make(clv_encode_plan *p)
{
    const size_t tokens = p->offsets[p->texts];
    p->tokens = clv_alloc(tokens + 1, 2 * sizeof *p->tokens);
    p->rows = clv_alloc(p->texts + 1, 2 * sizeof *p->rows);
    p->squares = clv_alloc(p->texts + 1, sizeof *p->squares);
    if (!p->tokens || !p->rows || !p->squares || !plan_side(p, 0) || !plan_side(p, 1))
        return clv_fail(CLV_E_MEMORY, "encode: not enough memory for %zu tokens", tokens);
    p->squares[0] = 0;
    for (size_t i = 0; i < p->texts; ++i) {
        const size_t length = p->offsets[i + 1] - p->offsets[i];
        const size_t skipped = CLV_MIN(p->encoder->skipped, length);
        p->rows[2 * i] = (int32_t)(p->offsets[i] + skipped);
        p->rows[2 * i + 1] = (int32_t)(length - skipped);
        p->squares[i + 1] = p->squares[i] + (double)length * (double)length;
        for (size_t t = 0; t < length; ++t)
            p->tokens[2 * (p->offsets[i] + t)] = p->ids[p->offsets[i] + t];
        clv_positions_fill(&p->encoder->config, p->tokens + 2 * p->offsets[i], length);
    }
    return CLV_OK;
}

/* Notes in a report how each device of the encoder multiplies by its fp16 matrices. */
static void note_products(clv_encoder *e, clv_report *report)
{
    clv_text said = { 0 };
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->device_count; ++i) {
        const clv_gemm_form *form = &e->devices[i]->form;
        clv_text_add(&said, "%s%s: %s (%s)", i ? "; " : "", clv_device_label(e->devices[i]->device),
                     clv_gemm_halves_say(form), form->name);
    }
    pthread_mutex_unlock(&e->lock);
    if (said.length) clv_report_note_text(report, "products", clv_text_get(&said));
    clv_text_clear(&said);
}

clv_status clv_encode(clv_encoder *encoder, const int32_t *ids, const size_t *offsets, size_t texts,
                      float *out, clv_report *report)
{
    if (!encoder || (texts && (!offsets || !out || (offsets[texts] && !ids))))
        return clv_fail(CLV_E_ARGUMENT, "encode: encoder, ids, offsets or out is NULL");
    if (!texts) return CLV_OK;
    CLV_TRY(clv_texts_check("encode", &encoder->config, ids, offsets, texts));
    size_t *from_zero = NULL;
    if (offsets[0]) {
        from_zero = clv_alloc(texts + 1, sizeof *from_zero);
        if (!from_zero)
            return clv_fail(CLV_E_MEMORY, "encode: not enough memory for %zu texts", texts);
        for (size_t i = 0; i <= texts; ++i)
            from_zero[i] = offsets[i] - offsets[0];
        ids += offsets[0];
        offsets = from_zero;
    }
    const clv_model_config *c = &encoder->config;
    clv_encode_plan plan = {
        .encoder = encoder, .ids = ids, .offsets = offsets, .texts = texts, .out = out
    };
    char signature[96];
    const size_t mean = CLV_MAX(offsets[texts] / texts, (size_t)1);
    snprintf(signature, sizeof signature, "D%zu F%zu L%zu tokens %zu", c->width, c->ffn, c->layers,
             mean);
    const clv_job job = { .size = sizeof job,
                          .name = "encode",
                          .signature = signature,
                          .units = texts,
                          .min_chunk =
                              CLV_MIN(CLV_MAX(encoder->batch_tokens / mean, (size_t)1), texts),
                          .cost = clv_encode_cost,
                          .setup = clv_encode_setup,
                          .enqueue = clv_encode_enqueue,
                          .rehearse = true,
                          .commit = clv_encode_commit,
                          .reference = clv_encode_reference,
                          .progress = encoder->progress,
                          .progress_user = encoder->progress_user };
    clv_status status = plan_make(&plan);
    if (!status) status = clv_job_run(encoder->context, &job, &plan, report);
    if (!status && report && encoder->half_products) note_products(encoder, report);
    plan_clear(&plan);
    clv_free(from_zero);
    return status;
}

void clv_encoder_watch(clv_encoder *encoder, clv_progress *progress, void *user)
{
    encoder->progress = progress;
    encoder->progress_user = user;
}

void clv_encoder_skip(clv_encoder *encoder, size_t tokens)
{
    encoder->skipped = tokens;
}
