/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a language model in plain C, for hosts without a device, and as the reference with which tests compare the
 * kernels. Weights are converted to floats row by row; sums are in double precision. */
#define _GNU_SOURCE
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/quant.h"
#include "base/text.h"

#include <math.h>
#include <sched.h>
#include <string.h>

enum { MOST_THREADS = 64, LEAST_WORK = 1 << 16 };

struct clv_lm_plain {
    unsigned char *top[CLV_LM_MODEL_ROLES];
    unsigned char *(*layers)[CLV_LM_ROLES];
    float *angles; /* [angle_room][turned] */
    size_t angle_room;
};

void clv_lm_plain_free(clv_lm_plain *p)
{
    if (!p) return;
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        clv_free(p->top[i]);
    /* the array ends with an entry whose attention norm is NULL; in every layer that was read, it is not NULL */
    for (size_t l = 0; p->layers && p->layers[l][CLV_LM_ATTN_NORM]; ++l)
        for (size_t i = 0; i < CLV_LM_ROLES; ++i)
            clv_free(p->layers[l][i]);
    clv_free(p->layers), clv_free(p->angles);
    clv_free(p);
}

static size_t bytes_of(const clv_lm_tensor *t)
{
    return t->rows * (t->rows == 1 ? t->columns * sizeof(float) : clv_lm_row_bytes(t));
}

static clv_status read_one(const clv_lm_model *m, const clv_lm_tensor *t, unsigned char **out)
{
    if (!t->name || *out) return CLV_OK;
    *out = clv_alloc(bytes_of(t), 1);
    if (!*out) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its weights", m->path);
    const clv_status status = t->rows == 1 ? clv_lm_read_vector(m, t, (float *)(void *)*out)
                                           : clv_lm_read(m, t, 0, t->rows, *out);
    if (status) clv_free(*out), *out = NULL; /* the next call reads it again */
    return status;
}

/* Checks that the host's memory suffices before anything is read: a sparse file may claim a huge size on a small
 * disk. */
static clv_status check_room(const clv_lm_model *m, const clv_lm_plain *p)
{
    const uint64_t there = clv_memory_most();
    double needed = 0;
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        if (m->top[i].name && !p->top[i]) needed += (double)bytes_of(&m->top[i]);
    for (size_t k = 0; k < m->config.layers; ++k)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i)
            if (m->layers[k][i].name && !p->layers[k][i])
                needed += (double)bytes_of(&m->layers[k][i]);
    if (needed <= (double)there) return CLV_OK;
    char free_now[16];
    return clv_fail(CLV_E_MEMORY, "%s: its weights take %.3g bytes, but only %s of memory are free",
                    m->path, needed, clv_format_bytes(there, free_now));
}

static clv_status read_all(clv_language *l)
{
    const clv_lm_model *m = l->model;
    clv_lm_plain *p = l->plain;
    if (!p) p = l->plain = clv_zalloc(1, sizeof *p);
    if (p && !p->layers) p->layers = clv_zalloc(m->config.layers + 1, sizeof *p->layers);
    if (!p || !p->layers) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    CLV_TRY(check_room(m, p));
    for (size_t i = 0; i < CLV_LM_MODEL_ROLES; ++i)
        CLV_TRY(read_one(m, &m->top[i], &p->top[i]));
    for (size_t k = 0; k < m->config.layers; ++k)
        for (size_t i = CLV_LM_MODEL_ROLES; i < CLV_LM_ROLES; ++i)
            CLV_TRY(read_one(m, &m->layers[k][i], &p->layers[k][i]));
    return CLV_OK;
}

/* ---- y = W x, rows shared among threads ------------------------------------------------------------ */

typedef struct work {
    const clv_lm_tensor *t;
    const unsigned char *weights;
    const double *x;
    double *y;
    size_t first, last;
    bool fails;
} work;

static void *multiply(void *argument)
{
    work *k = argument;
    const clv_lm_tensor *t = k->t;
    const size_t bytes = clv_lm_row_bytes(t), count = clv_quant_get_facts(t->type)->count;
    float *row = clv_alloc(t->columns, sizeof *row);
    k->fails = !row;
    for (size_t r = k->first; row && r < k->last; ++r) {
        double sum = 0;
        clv_quant_widen(t->type, k->weights + r * bytes, t->columns / count, row);
        for (size_t c = 0; c < t->columns; ++c)
            sum += (double)row[c] * k->x[c];
        k->y[r] = sum;
    }
    clv_free(row);
    return NULL;
}

static size_t cores(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return (size_t)CLV_MIN(CLV_MAX(count, 1), MOST_THREADS);
}

static clv_status product(const clv_lm_tensor *t, const unsigned char *weights, const double *x,
                          double *y)
{
    work all[MOST_THREADS];
    clv_thread threads[MOST_THREADS];
    bool started[MOST_THREADS] = { false }, fails = false;
    const size_t parts = t->rows * t->columns < LEAST_WORK ? 1 : cores();
    for (size_t i = 0; i < parts; ++i) {
        all[i] = (work){ .t = t,
                         .weights = weights,
                         .x = x,
                         .y = y,
                         .first = t->rows * i / parts,
                         .last = t->rows * (i + 1) / parts };
        if (i) started[i] = clv_thread_start(&threads[i], "clv-language", multiply, &all[i]);
    }
    for (size_t i = 0; i < parts; ++i) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            multiply(&all[i]);
        fails = fails || all[i].fails;
    }
    return fails ? clv_fail(CLV_E_MEMORY, "not enough memory for a row of weights") : CLV_OK;
}

/* ---- a token --------------------------------------------------------------------------------------- */

typedef struct token {
    const clv_language *l;
    clv_sequence *s;
    size_t position;
    double *x, *h, *q, *k, *v, *seen, *gate, *up, *weights;
} token;

static void norm(const double *x, const float *weight, size_t width, double eps, double *y)
{
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
        sum += x[i] * x[i];
    const double factor = 1 / sqrt(sum / (double)width + eps);
    for (size_t i = 0; i < width; ++i)
        y[i] = x[i] * factor * (double)weight[i];
}

static void turn(const token *k, double *x, size_t heads, const float *weight)
{
    const clv_lm_config *c = &k->l->model->config;
    const size_t half = c->turned / 2;
    for (size_t h = 0; h < heads; ++h, x += c->head) {
        if (weight) norm(x, weight, c->head, (double)c->eps, x);
        for (size_t t = 0; t < half; ++t) {
            const double angle = (double)k->position * clv_lm_speed(k->l->model, t);
            const double along = c->swell * cos(angle), across = c->swell * sin(angle);
            double *a = x + (c->neighbours ? 2 * t : t);
            double *b = x + (c->neighbours ? 2 * t + 1 : t + half);
            const double was = *a;
            *a = was * along - *b * across;
            *b = was * across + *b * along;
        }
    }
}

static void add(double *x, const unsigned char *bias, size_t count)
{
    const float *b = (const float *)(const void *)bias;
    for (size_t i = 0; b && i < count; ++i)
        x[i] += (double)b[i];
}

static void attend(const token *k, size_t layer)
{
    const clv_lm_config *c = &k->l->model->config;
    const size_t kv = c->kv_heads * c->head, group = c->heads / c->kv_heads;
    const float *keys = k->s->keys + layer * k->s->plain_room * kv;
    const float *values = k->s->values + layer * k->s->plain_room * kv;
    const double scale = 1 / sqrt((double)c->head);
    for (size_t h = 0; h < c->heads; ++h) {
        const double *q = k->q + h * c->head;
        const size_t at = h / group * c->head;
        double top = -INFINITY, sum = 0, *out = k->seen + h * c->head;
        for (size_t j = 0; j <= k->position; ++j) {
            double dot = 0;
            for (size_t i = 0; i < c->head; ++i)
                dot += q[i] * (double)keys[j * kv + at + i];
            k->weights[j] = dot * scale;
            top = fmax(top, k->weights[j]);
        }
        for (size_t j = 0; j <= k->position; ++j)
            sum += k->weights[j] = exp(k->weights[j] - top);
        memset(out, 0, c->head * sizeof *out);
        for (size_t j = 0; j <= k->position; ++j)
            for (size_t i = 0; i < c->head; ++i)
                out[i] += k->weights[j] / sum * (double)values[j * kv + at + i];
    }
}

#define VECTOR(w, role) ((const float *)(const void *)(w)[role])

static clv_status run_layer(token *k, size_t layer)
{
    const clv_lm_model *m = k->l->model;
    const clv_lm_config *c = &m->config;
    const clv_lm_tensor *t = m->layers[layer];
    unsigned char *const *w = k->l->plain->layers[layer];
    const size_t kv = c->kv_heads * c->head;
    norm(k->x, VECTOR(w, CLV_LM_ATTN_NORM), c->width, (double)c->eps, k->h);
    CLV_TRY(product(&t[CLV_LM_Q], w[CLV_LM_Q], k->h, k->q));
    CLV_TRY(product(&t[CLV_LM_K], w[CLV_LM_K], k->h, k->k));
    CLV_TRY(product(&t[CLV_LM_V], w[CLV_LM_V], k->h, k->v));
    add(k->q, w[CLV_LM_Q_BIAS], c->heads * c->head);
    add(k->k, w[CLV_LM_K_BIAS], kv), add(k->v, w[CLV_LM_V_BIAS], kv);
    turn(k, k->q, c->heads, VECTOR(w, CLV_LM_Q_NORM));
    turn(k, k->k, c->kv_heads, VECTOR(w, CLV_LM_K_NORM));
    const size_t at = (layer * k->s->plain_room + k->position) * kv;
    for (size_t i = 0; i < kv; ++i)
        k->s->keys[at + i] = (float)k->k[i], k->s->values[at + i] = (float)k->v[i];
    attend(k, layer);
    CLV_TRY(product(&t[CLV_LM_O], w[CLV_LM_O], k->seen, k->h));
    add(k->h, w[CLV_LM_O_BIAS], c->width);
    for (size_t i = 0; i < c->width; ++i)
        k->x[i] += k->h[i];
    norm(k->x, VECTOR(w, CLV_LM_FFN_NORM), c->width, (double)c->eps, k->h);
    CLV_TRY(product(&t[CLV_LM_GATE], w[CLV_LM_GATE], k->h, k->gate));
    CLV_TRY(product(&t[CLV_LM_UP], w[CLV_LM_UP], k->h, k->up));
    for (size_t i = 0; i < c->ffn; ++i)
        k->gate[i] = k->gate[i] / (1 + exp(-k->gate[i])) * k->up[i];
    CLV_TRY(product(&t[CLV_LM_DOWN], w[CLV_LM_DOWN], k->gate, k->h));
    for (size_t i = 0; i < c->width; ++i)
        k->x[i] += k->h[i];
    return CLV_OK;
}

static clv_status take_word(token *k, int32_t id)
{
    const clv_lm_tensor *t = &k->l->model->top[CLV_LM_WORDS];
    float *row = clv_alloc(t->columns, sizeof *row);
    if (!row) return clv_fail(CLV_E_MEMORY, "not enough memory for a row of weights");
    clv_quant_widen(t->type, k->l->plain->top[CLV_LM_WORDS] + (size_t)id * clv_lm_row_bytes(t),
                    t->columns / clv_quant_get_facts(t->type)->count, row);
    for (size_t i = 0; i < t->columns; ++i)
        k->x[i] = (double)row[i];
    clv_free(row);
    return CLV_OK;
}

static clv_status take_scores(token *k, float *scores)
{
    const clv_lm_model *m = k->l->model;
    const clv_lm_config *c = &m->config;
    const clv_lm_role role = c->tied ? CLV_LM_WORDS : CLV_LM_OUT;
    double *out = clv_alloc(c->vocabulary, sizeof *out);
    if (!out) return clv_fail(CLV_E_MEMORY, "not enough memory for %zu scores", c->vocabulary);
    norm(k->x, VECTOR(k->l->plain->top, CLV_LM_OUT_NORM), c->width, (double)c->eps, k->h);
    const clv_status status = product(&m->top[role], k->l->plain->top[role], k->h, out);
    for (size_t i = 0; i < c->vocabulary && !status; ++i)
        scores[i] = (float)out[i];
    clv_free(out);
    return status;
}

/* ---- tokens ---------------------------------------------------------------------------------------- */

/* Allocates room for the keys and values of `positions` tokens, and copies the existing keys and values to it. */
static clv_status fit(clv_sequence *s, size_t positions)
{
    const clv_lm_config *c = &s->language->model->config;
    const size_t kv = c->kv_heads * c->head, room = CLV_MAX(positions, 2 * s->plain_room);
    if (positions <= s->plain_room) return CLV_OK;
    float *keys = clv_zalloc(c->layers * room * kv, sizeof *keys);
    float *values = clv_zalloc(c->layers * room * kv, sizeof *values);
    if (!keys || !values) {
        clv_free(keys), clv_free(values);
        return clv_fail(CLV_E_MEMORY, "not enough memory for the keys and values of %zu tokens",
                        room);
    }
    for (size_t l = 0; l < c->layers && s->count; ++l) {
        const size_t bytes = s->count * kv * sizeof *keys;
        memcpy(keys + l * room * kv, s->keys + l * s->plain_room * kv, bytes);
        memcpy(values + l * room * kv, s->values + l * s->plain_room * kv, bytes);
    }
    clv_free(s->keys), clv_free(s->values);
    s->keys = keys, s->values = values, s->plain_room = room;
    return CLV_OK;
}

clv_status clv_lm_plain_feed(clv_sequence *s, size_t first, const int32_t *ids, size_t count,
                             float *scores)
{
    const clv_lm_config *c = &s->language->model->config;
    const size_t widths[] = { c->width,
                              CLV_MAX(c->width, c->ffn),
                              c->heads * c->head,
                              c->kv_heads * c->head,
                              c->kv_heads * c->head,
                              c->heads * c->head,
                              c->ffn,
                              c->ffn,
                              first + count };
    size_t all = 0;
    CLV_TRY(read_all(s->language));
    CLV_TRY(fit(s, first + count));
    for (size_t i = 0; i < CLV_LEN(widths); ++i)
        all += widths[i];
    double *memory = clv_alloc(all, sizeof *memory), *at = memory;
    if (!memory) return clv_fail(CLV_E_MEMORY, "not enough memory for a token");
    token k = { .l = s->language, .s = s };
    double **const places[] = { &k.x, &k.h, &k.q, &k.k, &k.v, &k.seen, &k.gate, &k.up, &k.weights };
    for (size_t i = 0; i < CLV_LEN(widths); ++i)
        *places[i] = at, at += widths[i];
    clv_status status = CLV_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        k.position = first + i;
        status = take_word(&k, ids[i]);
        for (size_t l = 0; l < c->layers && !status; ++l)
            status = run_layer(&k, l);
    }
    if (!status) status = take_scores(&k, scores);
    clv_free(memory);
    return status;
}
