/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes texts in plain C as the reference for the devices; the sums of norms, attention and pooling are in double
 * precision. */
#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* Scratch buffers with room for the longest text. */
typedef struct room {
    float *x, *qkv, *seen, *h, *inner, *turned, *narrow;
    double *scores;
} room;

static void normalise(float *row, size_t width, const float *weight, const float *bias, double eps)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < width; ++i)
        mean += (double)row[i];
    mean /= (double)width;
    for (size_t i = 0; i < width; ++i)
        squares += ((double)row[i] - mean) * ((double)row[i] - mean);
    const double scale = 1 / sqrt(squares / (double)width + eps);
    for (size_t i = 0; i < width; ++i)
        row[i] = (float)(((double)row[i] - mean) * scale * (double)weight[i] + (double)bias[i]);
}

/* Computes y = x W^T + b, W [n,k]. W is transposed first, so that the product runs along rows. */
static void linear(const room *r, const float *x, const float *w, const float *bias, size_t rows,
                   size_t n, size_t k, size_t y_row, float *y)
{
    for (size_t j = 0; j < n; ++j)
        for (size_t q = 0; q < k; ++q)
            r->turned[q * n + j] = w[j * k + q];
    const clv_host_gemm g = { .m = rows,
                              .n = n,
                              .k = k,
                              .a = x,
                              .a_row = k,
                              .a_col = 1,
                              .b = r->turned,
                              .b_row = n,
                              .b_col = 1,
                              .c = y,
                              .c_row = y_row,
                              .c_col = 1,
                              .alpha = 1,
                              .bias = bias };
    clv_gemm_host(&g);
}

/* Computes the attention of head h for the query in row i of qkv to all keys. */
static void attend(const room *r, const clv_model_config *config, const float *relative,
                   size_t tokens, size_t i, size_t h)
{
    const size_t width = config->width, head = width / config->heads;
    const float *q = r->qkv + i * 3 * width + h * head;
    const float *k = r->qkv + width + h * head, *v = k + width;
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < tokens; ++j) {
        double s = 0;
        for (size_t c = 0; c < head; ++c)
            s += (double)q[c] * (double)k[j * 3 * width + c];
        r->scores[j] = s / sqrt((double)head);
        if (config->buckets) {
            const ptrdiff_t ahead = (ptrdiff_t)j - (ptrdiff_t)i;
            r->scores[j] +=
                (double)relative[clv_relative_bucket(ahead, config->buckets) * config->heads + h];
        }
        top = fmax(top, r->scores[j]);
    }
    for (size_t j = 0; j < tokens; ++j)
        sum += r->scores[j] = exp(r->scores[j] - top);
    for (size_t c = 0; c < head; ++c) {
        double o = 0;
        for (size_t j = 0; j < tokens; ++j)
            o += r->scores[j] * (double)v[j * 3 * width + c];
        r->seen[i * width + h * head + c] = (float)(o / sum);
    }
}

static void run_layer(const room *r, const clv_model_config *c, const clv_model_layer *l,
                      const float *relative, size_t tokens)
{
    const size_t d = c->width, f = c->ffn;
    linear(r, r->x, l->q_weight, l->q_bias, tokens, d, d, 3 * d, r->qkv);
    linear(r, r->x, l->k_weight, l->k_bias, tokens, d, d, 3 * d, r->qkv + d);
    linear(r, r->x, l->v_weight, l->v_bias, tokens, d, d, 3 * d, r->qkv + 2 * d);
    for (size_t h = 0; h < c->heads; ++h)
        for (size_t i = 0; i < tokens; ++i)
            attend(r, c, relative, tokens, i, h);
    linear(r, r->seen, l->out_weight, l->out_bias, tokens, d, d, d, r->h);
    for (size_t t = 0; t < tokens; ++t) {
        for (size_t i = 0; i < d; ++i)
            r->h[t * d + i] += r->x[t * d + i];
        normalise(r->h + t * d, d, l->norm1_weight, l->norm1_bias, (double)c->eps);
    }
    linear(r, r->h, l->up_weight, l->up_bias, tokens, f, d, f, r->inner);
    for (size_t i = 0; i < tokens * f; ++i)
        r->inner[i] = (float)clv_activate((double)r->inner[i], c->act);
    linear(r, r->inner, l->down_weight, l->down_bias, tokens, d, f, d, r->x);
    for (size_t t = 0; t < tokens; ++t) {
        for (size_t i = 0; i < d; ++i)
            r->x[t * d + i] += r->h[t * d + i];
        normalise(r->x + t * d, d, l->norm2_weight, l->norm2_bias, (double)c->eps);
    }
}

static void embed(const room *r, const clv_encode_plan *p, size_t text)
{
    const clv_model_weights *w = &p->encoder->weights;
    const clv_model_config *c = &p->encoder->config;
    const size_t d = clv_table_width(c), tokens = p->offsets[text + 1] - p->offsets[text];
    float *to = c->embedding ? r->narrow : r->x;
    for (size_t t = 0; t < tokens; ++t) {
        const int32_t *token = p->tokens + 2 * (p->offsets[text] + t);
        const float *word = w->word + (size_t)token[0] * d;
        const float *position = w->position + (size_t)token[1] * d;
        for (size_t i = 0; i < d; ++i)
            to[t * d + i] = word[i] + position[i] + w->type[i];
        normalise(to + t * d, d, w->norm_weight, w->norm_bias, (double)c->eps);
    }
    if (c->embedding)
        linear(r, to, w->project_weight, w->project_bias, tokens, c->width, d, c->width, r->x);
}

/* Pools the tokens of a text from number `skipped` on. */
static void pool(const room *r, const clv_model_config *c, clv_model_pooling kind, size_t skipped,
                 size_t tokens, float *out)
{
    double squares = 0;
    const size_t first = kind == CLV_MODEL_LAST && tokens > skipped ? tokens - 1 : skipped;
    const size_t last = kind == CLV_MODEL_CLS ? CLV_MIN(tokens, skipped + 1) : tokens;
    for (size_t i = 0; i < c->width; ++i) {
        double sum = 0, weights = 0, high = tokens > skipped ? -INFINITY : 0;
        for (size_t t = first; t < last; ++t) {
            const double value = (double)r->x[t * c->width + i];
            const double weight = kind == CLV_MODEL_WEIGHTED ? (double)(t + 1) : 1;
            sum += weight * value, weights += weight;
            high = fmax(high, value);
        }
        const double value = kind == CLV_MODEL_MAX ? high : weights > 0 ? sum / weights : 0;
        squares += value * value;
        out[i] = (float)value;
    }
    if (!c->normalize || clv_encode_has_tail(c)) return;
    const double length = fmax(sqrt(squares), 1e-12);
    for (size_t i = 0; i < c->width; ++i)
        out[i] = (float)((double)out[i] / length);
}

static bool room_make(const clv_model_config *c, size_t tokens, room *r)
{
    const size_t d = c->width, wide = CLV_MAX(CLV_MAX(c->width, c->ffn), c->embedding);
    r->x = clv_alloc(tokens * d + 1, sizeof(float));
    r->qkv = clv_alloc(tokens * 3 * d + 1, sizeof(float));
    r->seen = clv_alloc(tokens * d + 1, sizeof(float));
    r->h = clv_alloc(tokens * d + 1, sizeof(float));
    r->inner = clv_alloc(tokens * c->ffn + 1, sizeof(float));
    r->turned = clv_alloc(d * wide + 1, sizeof(float));
    r->scores = clv_alloc(tokens + 1, sizeof(double));
    r->narrow = clv_alloc(tokens * c->embedding + 1, sizeof(float));
    return r->narrow && r->x && r->qkv && r->seen && r->h && r->inner && r->turned && r->scores;
}

static void room_clear(room *r)
{
    clv_free(r->x), clv_free(r->qkv), clv_free(r->seen), clv_free(r->h);
    clv_free(r->inner), clv_free(r->turned), clv_free(r->scores), clv_free(r->narrow);
}

clv_status clv_encode_reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    const clv_encode_plan *p = user;
    const clv_model_config *c = &p->encoder->config;
    size_t longest = 1;
    room r = { 0 };
    void *result;
    const size_t floats = CLV_MAX(clv_encode_result(p, first, count), (size_t)1);
    CLV_TRY(clv_slot_result_create(slot, CLV_ENCODE_OUT, floats * sizeof(float), &result));
    for (size_t i = first; i < first + count; ++i)
        longest = CLV_MAX(longest, p->offsets[i + 1] - p->offsets[i]);
    const bool enough = room_make(c, longest, &r);
    for (size_t i = first; i < first + count && enough; ++i) {
        const size_t tokens = p->offsets[i + 1] - p->offsets[i];
        const size_t before = p->encoder->hidden ? p->offsets[i] - p->offsets[first] : i - first;
        float *out = (float *)result + before * c->width;
        embed(&r, p, i);
        for (size_t l = 0; l < c->layers; ++l)
            run_layer(&r, c, &p->encoder->weights.layer[l], p->encoder->weights.relative, tokens);
        if (p->encoder->hidden)
            memcpy(out, r.x, tokens * c->width * sizeof(float));
        else if (!c->joined_count)
            pool(&r, c, c->pooling, p->encoder->skipped, tokens, out);
        for (size_t k = 0; k < c->joined_count && !p->encoder->hidden; ++k)
            pool(&r, c, c->joined[k], p->encoder->skipped, tokens, out + k * count * c->width);
    }
    room_clear(&r);
    return enough ? CLV_OK
                  : clv_fail(CLV_E_MEMORY, "encode: not enough memory for %zu tokens", longest);
}
