/* SPDX-License-Identifier: Apache-2.0 */
/* Processes pooled vectors on the host: concatenates the poolings and runs the model's modules after pooling. There is
 * only one such vector per text, so that this is little work compared with the layers. */
#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

bool clv_encode_has_tail(const clv_model_config *c)
{
    return c->joined_count || c->step_count;
}

clv_status clv_encode_tail_make(clv_encoder *e)
{
    const clv_model_config *c = &e->config;
    if (!c->step_count) return CLV_OK;
    e->turned = clv_zalloc(c->step_count, sizeof *e->turned);
    if (!e->turned)
        return clv_fail(CLV_E_MEMORY, "encoder: not enough memory for %zu steps", c->step_count);
    for (size_t s = 0; s < c->step_count; ++s) {
        const clv_model_step *step = &c->steps[s];
        size_t count;
        if (step->kind != CLV_STEP_DENSE) continue;
        if (!clv_size_mul(step->in, step->out, &count) ||
            !(e->turned[s] = clv_alloc(count, sizeof **e->turned)))
            return clv_fail(CLV_E_MEMORY,
                            "encoder: not enough memory for a dense step of %zu x %zu", step->out,
                            step->in);
        for (size_t i = 0; i < step->out; ++i) /* transposed, so that products run along rows */
            for (size_t k = 0; k < step->in; ++k)
                e->turned[s][k * step->out + i] = step->weight[i * step->in + k];
    }
    return CLV_OK;
}

void clv_encode_tail_free(clv_encoder *e)
{
    for (size_t s = 0; e->turned && s < e->config.step_count; ++s)
        clv_free(e->turned[s]);
    clv_free(e->turned);
}

/* Concatenates the poolings of every text. */
static void join(const clv_encode_plan *p, size_t first, size_t count, const float *result,
                 float *out)
{
    const clv_model_config *c = &p->encoder->config;
    const size_t modes = CLV_MAX(c->joined_count, (size_t)1), width = c->width;
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < modes; ++k) {
            const int32_t tokens = p->rows[2 * (first + i) + 1];
            const bool grows = c->joined_count && c->joined[k] == CLV_MODEL_MEAN_SQRT;
            const float by = grows ? sqrtf((float)tokens) : 1;
            const float *from = result + (k * count + i) * width;
            float *to = out + (i * modes + k) * width;
            for (size_t n = 0; n < width; ++n)
                to[n] = from[n] * by;
        }
}

static double apply(double x, clv_step_function function)
{
    switch (function) {
    case CLV_STEP_TANH:
        return tanh(x);
    case CLV_STEP_RELU:
        return x > 0 || isnan(x) ? x : 0;
    case CLV_STEP_GELU:
        return clv_activate(x, CLV_ACTIVATION_GELU);
    case CLV_STEP_SIGMOID:
        return 1 / (1 + exp(-x));
    case CLV_STEP_SILU:
        return clv_activate(x, CLV_ACTIVATION_SILU);
    default:
        return x;
    }
}

static void run_dense(const clv_model_step *s, const float *turned, size_t rows, const float *x,
                      float *y)
{
    clv_linear_host(x, rows, s->in, turned, s->bias, s->out, y);
    for (size_t i = 0; i < rows * s->out && s->function != CLV_STEP_IDENTITY; ++i)
        y[i] = (float)apply((double)y[i], s->function);
}

static void run_norm(const clv_model_step *s, float *row)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < s->out; ++i)
        mean += (double)row[i];
    mean /= (double)s->out;
    for (size_t i = 0; i < s->out; ++i)
        squares += ((double)row[i] - mean) * ((double)row[i] - mean);
    const double scale = 1 / sqrt(squares / (double)s->out + (double)s->eps);
    for (size_t i = 0; i < s->out; ++i)
        row[i] = (float)(((double)row[i] - mean) * scale * (double)s->weight[i] +
                         (s->bias ? (double)s->bias[i] : 0));
}

static void divide_by_length(float *row, size_t width)
{
    double squares = 0;
    for (size_t i = 0; i < width; ++i)
        squares += (double)row[i] * (double)row[i];
    const double length = fmax(sqrt(squares), 1e-12);
    for (size_t i = 0; i < width; ++i)
        row[i] = (float)((double)row[i] / length);
}

/* Runs the model's steps on `rows` vectors in `x`; returns the result, which lies in `x` or `y`. */
static float *run_steps(const clv_encode_plan *p, size_t rows, float *x, float *y)
{
    const clv_encoder *e = p->encoder;
    for (size_t s = 0; s < e->config.step_count; ++s) {
        const clv_model_step *step = &e->config.steps[s];
        if (step->kind == CLV_STEP_DENSE) {
            run_dense(step, e->turned[s], rows, x, y);
            float *swap = x;
            x = y, y = swap;
            continue;
        }
        for (size_t i = 0; i < rows; ++i) {
            if (step->kind == CLV_STEP_NORM)
                run_norm(step, x + i * step->out);
            else
                divide_by_length(x + i * step->out, step->out);
        }
    }
    return x;
}

clv_status clv_encode_tail(const clv_encode_plan *p, size_t first, size_t count,
                           const float *result, float *out)
{
    const clv_model_config *c = &p->encoder->config;
    const size_t output = c->output ? c->output : c->width;
    size_t widest = c->width * CLV_MAX(c->joined_count, (size_t)1), floats;
    for (size_t s = 0; s < c->step_count; ++s)
        widest = CLV_MAX(widest, c->steps[s].out);
    if (!clv_size_mul(count, widest, &floats)) floats = SIZE_MAX;
    float *x = clv_alloc(CLV_MAX(floats, (size_t)1), sizeof *x);
    float *y = clv_alloc(CLV_MAX(floats, (size_t)1), sizeof *y);
    const bool enough = x && y;
    if (enough) {
        join(p, first, count, result, x);
        float *made = run_steps(p, count, x, y);
        for (size_t i = 0; i < count && c->normalize; ++i)
            divide_by_length(made + i * output, output);
        memcpy(out, made, count * output * sizeof *out);
    }
    clv_free(x), clv_free(y);
    return enough ? CLV_OK
                  : clv_fail(CLV_E_MEMORY, "encode: not enough memory for %zu vectors", count);
}
