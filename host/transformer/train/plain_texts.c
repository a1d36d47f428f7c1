/* SPDX-License-Identifier: Apache-2.0 */
/* Computes attention and pooling in plain C, forward and backward, with sums in double precision. */
#include "host/transformer/train/plain.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static float *at(clv_mem m)
{
    return m.memory ? (float *)m.memory + m.at : NULL;
}

/* One head of queries of one text, with its head of keys and values; rows of q, k and v are `row` apart. */
typedef struct view {
    const float *q, *k, *v;
    size_t row, head, tokens;
    bool causal;
    const int32_t *mask; /* mask of the text's tokens; NULL: all tokens are keys */
} view;

static view view_of(const clv_train_attention *a, size_t text, size_t h)
{
    const int32_t *rows = (const int32_t *)a->batch->rows + 2 * text;
    const size_t first = (size_t)rows[0], head = a->width / a->heads;
    const size_t kv_heads = a->kv_heads ? a->kv_heads : a->heads, kv = kv_heads * head;
    const float *own = at(a->qkv) + first * (a->width + 2 * kv);
    const float *k = own + a->width + h / (a->heads / kv_heads) * head;
    return (view){ .q = own + h * head,
                   .k = k,
                   .v = k + kv,
                   .row = a->width + 2 * kv,
                   .head = head,
                   .tokens = (size_t)rows[1],
                   .causal = a->causal,
                   .mask = a->batch->mask ? (const int32_t *)a->batch->mask + first : NULL };
}

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Computes the attention weights of query i (its row of P), the maximum of its scores, and 1 / the sum of their
 * exponentials. */
static void weights_of(const view *t, size_t i, double *p, double *top, double *inverse)
{
    double sum = 0;
    *top = -HUGE_VAL;
    for (size_t j = 0; j < t->tokens; ++j) {
        p[j] = (t->mask && !t->mask[j]) || (t->causal && j > i)
                   ? -HUGE_VAL
                   : dot(t->q + i * t->row, t->k + j * t->row, t->head) / sqrt((double)t->head);
        *top = fmax(*top, p[j]);
    }
    for (size_t j = 0; j < t->tokens; ++j)
        sum += p[j] = isinf(p[j]) ? 0 : exp(p[j] - *top);
    *inverse = sum > 0 ? 1 / sum : 0;
    for (size_t j = 0; j < t->tokens; ++j)
        p[j] *= *inverse;
}

clv_status clv_plain_attend(clv_train_ops *ops, const clv_train_attention *a)
{
    (void)ops;
    double *p = clv_alloc(a->batch->longest + 1, sizeof *p);
    if (!p) return clv_fail(CLV_E_MEMORY, "attention: out of memory");
    for (size_t text = 0; text < a->batch->texts; ++text)
        for (size_t h = 0; h < a->heads; ++h) {
            const view t = view_of(a, text, h);
            const size_t first = (size_t)((const int32_t *)a->batch->rows)[2 * text];
            float *o = at(a->o) + first * a->width + h * t.head;
            for (size_t i = 0; i < t.tokens; ++i) {
                double top, inverse;
                weights_of(&t, i, p, &top, &inverse);
                for (size_t c = 0; c < t.head; ++c) {
                    double sum = 0;
                    for (size_t j = 0; j < t.tokens; ++j)
                        sum += p[j] * (double)t.v[j * t.row + c];
                    o[i * a->width + c] = (float)sum;
                }
                float *kept = at(a->tops) + 2 * (h * a->batch->tokens + first + i);
                kept[0] = inverse > 0 ? (float)top : 0;
                kept[1] = (float)inverse;
            }
        }
    clv_free(p);
    return CLV_OK;
}

/* Computes S = P (G v^T - delta) element by element, where delta is the sum of P G v^T over a row, and from S computes
 * dq of one text and head; adds the head's share to dk and dv. */
static void head_back(const clv_train_attention *a, size_t text, size_t h, double *p)
{
    const view t = view_of(a, text, h);
    const size_t first = (size_t)((const int32_t *)a->batch->rows)[2 * text];
    const float *g = at(a->g) + first * a->width + h * t.head;
    const float *rows = at(a->qkv) + first * t.row;
    float *d = at(a->dqkv) + first * t.row; /* has the layout of q, k and v */
    float *dq = d + (t.q - rows), *dk = d + (t.k - rows), *dv = d + (t.v - rows);
    const double scale = 1 / sqrt((double)t.head);
    for (size_t i = 0; i < t.tokens; ++i) {
        double top, inverse, own = 0;
        weights_of(&t, i, p, &top, &inverse);
        for (size_t j = 0; j < t.tokens; ++j)
            own += p[j] * dot(g + i * a->width, t.v + j * t.row, t.head);
        for (size_t j = 0; j < t.tokens; ++j) {
            const double s = p[j] * (dot(g + i * a->width, t.v + j * t.row, t.head) - own) * scale;
            for (size_t c = 0; c < t.head; ++c) {
                dv[j * t.row + c] += (float)(p[j] * (double)g[i * a->width + c]);
                dk[j * t.row + c] += (float)(s * (double)t.q[i * t.row + c]);
            }
            p[j] = s;
        }
        for (size_t c = 0; c < t.head; ++c) {
            double sum = 0;
            for (size_t j = 0; j < t.tokens; ++j)
                sum += p[j] * (double)t.k[j * t.row + c];
            dq[i * t.row + c] = (float)sum;
        }
    }
}

clv_status clv_plain_attend_back(clv_train_ops *ops, const clv_train_attention *a)
{
    (void)ops;
    double *p = clv_alloc(a->batch->longest + 1, sizeof *p);
    if (!p) return clv_fail(CLV_E_MEMORY, "attention: out of memory");
    for (size_t text = 0; text < a->batch->texts; ++text) {
        const int32_t *rows = (const int32_t *)a->batch->rows + 2 * text;
        const size_t row = view_of(a, text, 0).row;
        memset(at(a->dqkv) + (size_t)rows[0] * row, 0, (size_t)rows[1] * row * sizeof(float));
        for (size_t h = 0; h < a->heads; ++h)
            head_back(a, text, h, p);
    }
    clv_free(p);
    return CLV_OK;
}

/* ---- pooling -------------------------------------------------------------------------------------- */

typedef struct text_rows {
    size_t first, count, counted;
    const int32_t *mask;
} text_rows;

static text_rows rows_of(const clv_train_batch *b, size_t text)
{
    const int32_t *rows = (const int32_t *)b->rows + 2 * text;
    text_rows r = { (size_t)rows[0], (size_t)rows[1], 0, b->mask };
    for (size_t t = 0; t < r.count; ++t)
        r.counted += !r.mask || r.mask[r.first + t];
    return r;
}

clv_status clv_plain_pool(clv_train_ops *ops, const clv_train_pool *p)
{
    (void)ops;
    for (size_t s = 0; s < p->batch->texts; ++s) {
        const text_rows r = rows_of(p->batch, s);
        for (size_t c = 0; c < p->width; ++c) {
            double sum = 0, high = r.counted ? -INFINITY : 0;
            const float *x = at(p->x) + r.first * p->width + c;
            for (size_t t = 0; t < r.count; ++t) {
                if (r.mask && !r.mask[r.first + t]) continue;
                if (p->kind != CLV_MODEL_CLS || t == 0) sum += (double)x[t * p->width];
                high = fmax(high, (double)x[t * p->width]);
            }
            at(p->y)[s * p->width + c] =
                (float)(p->kind == CLV_MODEL_MAX    ? high
                        : p->kind == CLV_MODEL_MEAN ? sum / (double)CLV_MAX(r.counted, (size_t)1)
                                                    : sum);
        }
    }
    return CLV_OK;
}

clv_status clv_plain_pool_back(clv_train_ops *ops, const clv_train_pool *p)
{
    (void)ops;
    for (size_t s = 0; s < p->batch->texts; ++s) {
        const text_rows r = rows_of(p->batch, s);
        for (size_t c = 0; c < p->width; ++c) {
            const float *x = at(p->x) + r.first * p->width + c;
            const double g = (double)at(p->g)[s * p->width + c];
            size_t best = r.count;
            for (size_t t = 0; t < r.count; ++t)
                if ((!r.mask || r.mask[r.first + t]) &&
                    (best == r.count || x[t * p->width] > x[best * p->width]))
                    best = t;
            for (size_t t = 0; t < r.count; ++t) {
                const bool counts = !r.mask || r.mask[r.first + t];
                const double share = p->kind == CLV_MODEL_MEAN  ? g / (double)r.counted
                                     : p->kind == CLV_MODEL_CLS ? (t == 0 ? g : 0)
                                                                : (t == best ? g : 0);
                at(p->dx)[(r.first + t) * p->width + c] = counts ? (float)share : 0;
            }
        }
    }
    return CLV_OK;
}
