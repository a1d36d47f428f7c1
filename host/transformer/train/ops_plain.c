/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the ops of training in plain C on one thread, with sums in double precision, for hosts without a working
 * device, and as the reference of the kernels. */
#include "host/transformer/train/plain.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

static float *at(clv_mem m)
{
    return m.memory ? (float *)m.memory + m.at : NULL;
}

static clv_status take(clv_train_ops *ops, size_t count, void **memory)
{
    (void)ops;
    *memory = clv_alloc(CLV_MAX(count, (size_t)1), 4);
    return *memory ? CLV_OK
                   : clv_fail(CLV_E_MEMORY, "training: not enough memory for %zu numbers", count);
}

static void drop(clv_train_ops *ops, void *memory)
{
    (void)ops;
    clv_free(memory);
}

static clv_status put(clv_train_ops *ops, clv_mem to, const void *from, size_t count)
{
    (void)ops;
    if (count) memcpy(at(to), from, count * 4);
    return CLV_OK;
}

static clv_status get(clv_train_ops *ops, clv_mem from, void *to, size_t count)
{
    (void)ops;
    if (count) memcpy(to, at(from), count * 4);
    return CLV_OK;
}

static clv_status clear(clv_train_ops *ops, clv_mem what, size_t count)
{
    (void)ops;
    memset(at(what), 0, count * 4);
    return CLV_OK;
}

/* Holds the pieces where they are, in the caller's memory. */
static clv_status hold(clv_train_ops *ops, size_t part, const clv_weight_piece *pieces,
                       size_t count, size_t *places, clv_train_held *held)
{
    (void)ops, (void)part;
    for (size_t i = 0; i < count; ++i)
        places[i] = (size_t)(pieces[i].host - pieces[0].host);
    *held = (clv_train_held){ .memory = (void *)(uintptr_t)pieces[0].host };
    return CLV_OK;
}

static void let_go(clv_train_ops *ops, const clv_train_held *held)
{
    (void)ops, (void)held;
}

/* Computes C = alpha A B + add; element (i, j) of A lies at i * a_row + j * a_col. */
static void multiply(size_t m, size_t n, size_t k, const float *a, size_t a_row, size_t a_col,
                     const float *b, float alpha, const float *bias, const float *add, float *c)
{
    if (add && add != c) memcpy(c, add, m * n * sizeof *c);
    const clv_host_gemm g = { .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .a_row = a_row,
                              .a_col = a_col,
                              .b = b,
                              .b_row = n,
                              .b_col = 1,
                              .c = c,
                              .c_row = n,
                              .c_col = 1,
                              .alpha = alpha,
                              .beta = add ? 1 : 0,
                              .bias = bias };
    clv_gemm_host(&g);
}

static clv_status linear(clv_train_ops *ops, const clv_train_linear *l)
{
    (void)ops;
    float *turned = clv_alloc(l->n * l->k + 1, sizeof *turned);
    if (!turned) return clv_fail(CLV_E_MEMORY, "training: not enough memory to transpose a matrix");
    for (size_t j = 0; j < l->n; ++j)
        for (size_t q = 0; q < l->k; ++q)
            turned[q * l->n + j] = at(l->w)[j * l->k + q];
    multiply(l->rows, l->n, l->k, at(l->x), l->k, 1, turned, l->alpha, at(l->b), at(l->add),
             at(l->y));
    clv_free(turned);
    return CLV_OK;
}

static clv_status linear_back(clv_train_ops *ops, const clv_train_linear *l)
{
    (void)ops;
    const float *g = at(l->g);
    if (l->dw.memory)
        multiply(l->n, l->k, l->rows, g, 1, l->n, at(l->x), l->alpha, NULL, NULL, at(l->dw));
    for (size_t j = 0; l->db.memory && j < l->n; ++j) {
        double sum = 0;
        for (size_t r = 0; r < l->rows; ++r)
            sum += (double)g[r * l->n + j];
        at(l->db)[j] = (float)sum;
    }
    if (l->dx.memory)
        multiply(l->rows, l->k, l->n, g, l->n, 1, at(l->w), l->alpha, NULL, at(l->dx_add),
                 at(l->dx));
    return CLV_OK;
}

static clv_status norm(clv_train_ops *ops, const clv_train_norm *n)
{
    (void)ops;
    for (size_t r = 0; r < n->rows; ++r) {
        const float *x = at(n->x) + r * n->width;
        double mean = 0, squares = 0;
        for (size_t c = 0; c < n->width; ++c)
            mean += (double)x[c];
        mean = n->rms ? 0 : mean / (double)n->width;
        for (size_t c = 0; c < n->width; ++c)
            squares += ((double)x[c] - mean) * ((double)x[c] - mean);
        const double scale = 1 / sqrt(squares / (double)n->width + (double)n->eps);
        for (size_t c = 0; c < n->width; ++c)
            at(n->y)[r * n->width + c] =
                (float)(((double)x[c] - mean) * scale * (double)at(n->weight)[c] +
                        (n->rms ? 0 : (double)at(n->bias)[c]));
        at(n->moments)[2 * r] = (float)mean;
        at(n->moments)[2 * r + 1] = (float)scale;
    }
    return CLV_OK;
}

static void norm_parameters(const clv_train_norm *n)
{
    for (size_t c = 0; c < n->width; ++c) {
        double sum = 0, along = 0;
        for (size_t r = 0; r < n->rows; ++r) {
            const double g = (double)at(n->g)[r * n->width + c];
            sum += g;
            along += g * ((double)at(n->x)[r * n->width + c] - (double)at(n->moments)[2 * r]) *
                     (double)at(n->moments)[2 * r + 1];
        }
        if (n->dbias.memory) at(n->dbias)[c] = (float)sum;
        at(n->dweight)[c] = (float)along;
    }
}

static clv_status norm_back(clv_train_ops *ops, const clv_train_norm *n)
{
    (void)ops;
    const double width = (double)n->width;
    if (n->dweight.memory) norm_parameters(n);
    for (size_t r = 0; r < n->rows; ++r) {
        const float *x = at(n->x) + r * n->width, *g = at(n->g) + r * n->width;
        const float *add = n->dx_add.memory ? at(n->dx_add) + r * n->width : NULL;
        const double mean = (double)at(n->moments)[2 * r];
        const double scale = (double)at(n->moments)[2 * r + 1];
        double sum = 0, along = 0;
        for (size_t c = 0; c < n->width; ++c) {
            const double gw = (double)g[c] * (double)at(n->weight)[c];
            sum += gw;
            along += gw * ((double)x[c] - mean) * scale;
        }
        for (size_t c = 0; c < n->width; ++c) {
            const double gw = (double)g[c] * (double)at(n->weight)[c];
            const double t = ((double)x[c] - mean) * scale;
            const double level = n->rms ? 0 : sum / width;
            at(n->dx)[r * n->width + c] =
                (float)((gw - level - t * along / width) * scale + (add ? (double)add[c] : 0));
        }
    }
    return CLV_OK;
}

/* Returns act'(x), the derivative of the activation. */
static double slope_of(double x, clv_activation kind)
{
    const double a = 0.79788456080286536, b = 0.044715;
    switch (kind) {
    case CLV_ACTIVATION_GELU:
        return 0.5 * erfc(-x * 0.70710678118654752) + x * exp(-x * x / 2) * 0.3989422804014327;
    case CLV_ACTIVATION_GELU_TANH: {
        const double t = tanh(a * (x + b * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * a * (1 + 3 * b * x * x);
    }
    case CLV_ACTIVATION_SILU: {
        const double s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    }
    case CLV_ACTIVATION_TANH: {
        const double t = tanh(x);
        return (1 - t) * (1 + t);
    }
    case CLV_ACTIVATION_RELU:
        return x <= 0 ? 0 : 1;
    default:
        return 1;
    }
}

static clv_status activate(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t count,
                           clv_activation kind)
{
    (void)ops;
    for (size_t i = 0; i < count; ++i) {
        const double v = (double)at(x)[i];
        at(y)[i] =
            g.memory ? (float)((double)at(g)[i] * slope_of(v, kind)) : (float)clv_activate(v, kind);
    }
    return CLV_OK;
}

static clv_status gate(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width, clv_activation kind)
{
    (void)ops;
    for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < width; ++c) {
            const size_t first = 2 * r * width + c, second = first + width, one = r * width + c;
            const double a = (double)at(x)[first], b = (double)at(x)[second];
            if (g.memory) {
                const double slope = (double)at(g)[one];
                at(y)[first] = (float)(slope * b * slope_of(a, kind));
                at(y)[second] = (float)(slope * clv_activate(a, kind));
            } else {
                at(y)[one] = (float)(clv_activate(a, kind) * b);
            }
        }
    return CLV_OK;
}

/* Rotates each pair (i, half + i) of numbers of a head; the backward pass rotates in the opposite direction. */
static clv_status rope(clv_train_ops *ops, const clv_train_rope *r)
{
    (void)ops;
    for (size_t row = 0; row < r->rows; ++row)
        for (size_t h = 0; h < r->heads; ++h) {
            float *a = at(r->x) + row * r->stride + h * 2 * r->half, *b = a + r->half;
            const float *turns = at(r->turns) + 2 * (r->first + row) * r->half;
            for (size_t i = 0; i < r->half; ++i) {
                const double x = (double)a[i], y = (double)b[i], c = (double)turns[2 * i];
                const double s = (double)(r->back ? -turns[2 * i + 1] : turns[2 * i + 1]);
                a[i] = (float)(x * c - y * s);
                b[i] = (float)(x * s + y * c);
            }
        }
    return CLV_OK;
}

static clv_status embed(clv_train_ops *ops, const clv_train_embed *e)
{
    (void)ops;
    const int32_t *ids = e->batch->ids;
    for (size_t t = 0; t < e->batch->tokens; ++t)
        for (size_t c = 0; c < e->width; ++c)
            at(e->y)[t * e->width + c] = at(e->word)[(size_t)ids[2 * t] * e->width + c] +
                                         at(e->position)[(size_t)ids[2 * t + 1] * e->width + c] +
                                         at(e->type)[c];
    return CLV_OK;
}

static clv_status embed_back(clv_train_ops *ops, const clv_train_embed *e)
{
    (void)ops;
    const int32_t *ids = e->batch->ids;
    if (e->dtype.memory) memset(at(e->dtype), 0, e->width * sizeof(float));
    for (size_t t = 0; t < e->batch->tokens; ++t)
        for (size_t c = 0; c < e->width; ++c) {
            float *word = &at(e->dword)[(size_t)ids[2 * t] * e->width + c];
            float *position = &at(e->dposition)[(size_t)ids[2 * t + 1] * e->width + c];
            if (!e->g.memory) {
                *word = *position = 0;
                continue;
            }
            const float g = at(e->g)[t * e->width + c];
            *word += g, *position += g;
            if (e->dtype.memory) at(e->dtype)[c] += g;
        }
    return CLV_OK;
}

static clv_status unit(clv_train_ops *ops, clv_mem x, clv_mem g, clv_mem y, size_t rows,
                       size_t width)
{
    (void)ops;
    for (size_t r = 0; r < rows; ++r) {
        const float *v = at(x) + r * width, *slope = g.memory ? at(g) + r * width : v;
        float *to = at(y) + r * width;
        double squares = 0, along = 0;
        for (size_t c = 0; c < width; ++c) {
            squares += (double)v[c] * (double)v[c];
            along += (double)v[c] * (double)slope[c];
        }
        const double length = sqrt(squares), divisor = fmax(length, 1e-12);
        const double share = length > 1e-12 ? along / squares : 0;
        for (size_t c = 0; c < width; ++c)
            to[c] = (float)((g.memory ? (double)slope[c] - (double)v[c] * share : (double)v[c]) /
                            divisor);
    }
    return CLV_OK;
}

static clv_status loss(clv_train_ops *ops, const clv_train_loss *l)
{
    (void)ops;
    const int32_t *labels = (const int32_t *)l->labels.memory + l->labels.at;
    for (size_t r = 0; r < l->rows; ++r) {
        const float *x = at(l->x) + r * l->classes;
        double top = -HUGE_VAL, sum = 0;
        const bool counts = labels[r] != CLV_LABEL_IGNORED;
        for (size_t c = 0; c < l->classes; ++c)
            top = fmax(top, (double)x[c]);
        for (size_t c = 0; c < l->classes; ++c)
            sum += exp((double)x[c] - top);
        at(l->loss)[r] = counts ? (float)(log(sum) + top - (double)x[labels[r]]) : 0;
        for (size_t c = 0; c < l->classes; ++c) {
            const double p = exp((double)x[c] - top) / sum - ((int32_t)c == labels[r] ? 1 : 0);
            at(l->g)[r * l->classes + c] = counts ? (float)(p * (double)l->scale) : 0;
        }
    }
    return CLV_OK;
}

static clv_status squares_of(clv_train_ops *ops, clv_mem x, size_t count, double *sum)
{
    (void)ops;
    *sum = 0;
    for (size_t i = 0; i < count; ++i)
        *sum += (double)at(x)[i] * (double)at(x)[i];
    return CLV_OK;
}

static void sgd(const clv_train_rule *rule, const clv_train_update *u, float *w, const float *g,
                float *m)
{
    for (size_t i = 0; i < u->count; ++i) {
        double step = (double)g[i] * (double)u->scale + u->decay * (double)w[i];
        if (rule->momentum != 0) {
            if (u->step > 1) step += rule->momentum * (double)m[i];
            m[i] = (float)step;
        }
        w[i] = (float)((double)w[i] - u->rate * step);
    }
}

static clv_status update(clv_train_ops *ops, const clv_train_rule *rule, const clv_train_update *u)
{
    (void)ops;
    float *w = (float *)u->weights + u->at, *m = u->first ? (float *)u->first + u->at : NULL;
    const float *g = (const float *)u->gradient + u->at;
    if (rule->kind == CLV_OPTIMIZER_SGD) {
        sgd(rule, u, w, g, m);
        return CLV_OK;
    }
    float *v = (float *)u->second + u->at;
    const double left1 = 1 - pow(rule->beta1, (double)u->step);
    const double left2 = 1 - pow(rule->beta2, (double)u->step);
    for (size_t i = 0; i < u->count; ++i) {
        const double slope = (double)g[i] * (double)u->scale;
        m[i] = (float)(rule->beta1 * (double)m[i] + (1 - rule->beta1) * slope);
        v[i] = (float)(rule->beta2 * (double)v[i] + (1 - rule->beta2) * slope * slope);
        w[i] = (float)((double)w[i] * (1 - u->rate * u->decay) -
                       u->rate / left1 * (double)m[i] /
                           (sqrt((double)v[i]) / sqrt(left2) + rule->eps));
    }
    return CLV_OK;
}

static clv_status fail_ops(clv_train_ops *ops, clv_status status)
{
    (void)ops;
    return status;
}

static void close_ops(clv_train_ops *ops)
{
    clv_free(ops);
}

static const clv_train_ops table = {
    .form = { .lanes = 16, .local = 1, .tile = 16, .each = 1, .queries = 64 },
    .take = take,
    .drop = drop,
    .put = put,
    .get = get,
    .clear = clear,
    .hold = hold,
    .let_go = let_go,
    .linear = linear,
    .linear_back = linear_back,
    .norm = norm,
    .norm_back = norm_back,
    .attend = clv_plain_attend,
    .attend_back = clv_plain_attend_back,
    .activate = activate,
    .gate = gate,
    .rope = rope,
    .embed = embed,
    .embed_back = embed_back,
    .pool = clv_plain_pool,
    .pool_back = clv_plain_pool_back,
    .unit = unit,
    .loss = loss,
    .squares = squares_of,
    .update = update,
    .fail = fail_ops,
    .close = close_ops
};

clv_status clv_train_ops_plain(clv_train_ops **ops)
{
    *ops = clv_alloc(1, sizeof **ops);
    if (!*ops) return clv_fail(CLV_E_MEMORY, "training: out of memory");
    **ops = table;
    return CLV_OK;
}
