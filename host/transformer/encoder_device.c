/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads a model's weights to a device: tables and vectors unchanged, matrices packed for the device's GEMM and stored
 * in its tensor cache. */
#include "host/transformer/encoder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "host/transformer/weights.h"
#include "runtime/device/queue.h"

#include <string.h>

/* The usual number of rows of C in a batch of texts; it decides for which form of GEMM the weights are packed. */
enum { USUAL_ROWS = 512 };

static size_t take(size_t *used, size_t floats)
{
    const size_t at = *used;
    *used += clv_round_up(floats, 16);
    return at;
}

/* Assigns an offset to every weight; all layers have the same layout. */
static void lay_out(const clv_model_config *c, clv_encoder_device *d, size_t *parameters)
{
    const size_t width = c->width, ffn = c->ffn, narrow = clv_table_width(c);
    *parameters = 0;
    d->position = take(parameters, (c->positions + c->first_position) * narrow);
    d->type = take(parameters, narrow);
    d->norm_weight = take(parameters, narrow);
    d->norm_bias = take(parameters, narrow);
    if (c->embedding) d->project_bias = take(parameters, width);
    if (c->buckets) d->relative = take(parameters, 2 * clv_relative_reach(c) * c->heads);
    for (size_t i = 0; i < c->layers; ++i) {
        clv_layer_place *l = &d->layers[i];
        size_t elements = 0;
        l->qkv = take(&elements, clv_weight_room(&d->form, 3 * width, width));
        l->out = take(&elements, clv_weight_room(&d->form, width, width));
        l->up = take(&elements, clv_weight_room(&d->form, ffn, width));
        l->down = take(&elements, clv_weight_room(&d->form, width, ffn));
        d->layer_elements = elements;
        l->qkv_bias = take(parameters, 3 * width);
        l->out_bias = take(parameters, width);
        l->up_bias = take(parameters, ffn);
        l->down_bias = take(parameters, width);
        l->norm1_weight = take(parameters, width);
        l->norm1_bias = take(parameters, width);
        l->norm2_weight = take(parameters, width);
        l->norm2_bias = take(parameters, width);
    }
}

/* Collects all parameters side by side on the host; returns NULL if memory is out. */
static float *gather(const clv_encoder *e, const clv_encoder_device *d, size_t floats)
{
    const clv_model_config *c = &e->config;
    const clv_model_weights *w = &e->weights;
    const size_t bytes = c->width * sizeof(float);
    float *all = clv_zalloc(floats, sizeof *all);
    if (!all) return NULL;
    const size_t row = clv_table_width(c) * sizeof(float);
    memcpy(all + d->position, w->position, (c->positions + c->first_position) * row);
    memcpy(all + d->type, w->type, row);
    memcpy(all + d->norm_weight, w->norm_weight, row);
    memcpy(all + d->norm_bias, w->norm_bias, row);
    if (c->embedding) memcpy(all + d->project_bias, w->project_bias, bytes);
    if (c->buckets) clv_relative_fill(c, w->relative, all + d->relative);
    for (size_t i = 0; i < c->layers; ++i) {
        const clv_layer_place *p = &d->layers[i];
        const clv_model_layer *l = &w->layer[i];
        memcpy(all + p->qkv_bias, l->q_bias, bytes);
        memcpy(all + p->qkv_bias + c->width, l->k_bias, bytes);
        memcpy(all + p->qkv_bias + 2 * c->width, l->v_bias, bytes);
        memcpy(all + p->out_bias, l->out_bias, bytes);
        memcpy(all + p->up_bias, l->up_bias, c->ffn * sizeof(float));
        memcpy(all + p->down_bias, l->down_bias, bytes);
        memcpy(all + p->norm1_weight, l->norm1_weight, bytes);
        memcpy(all + p->norm1_bias, l->norm1_bias, bytes);
        memcpy(all + p->norm2_weight, l->norm2_weight, bytes);
        memcpy(all + p->norm2_bias, l->norm2_bias, bytes);
    }
    return all;
}

/* Writes W [n,k] to the elements [at, ...) of the layer's tensor. */
static clv_status bring_matrix(clv_queue *queue, const clv_encoder_device *d, clv_buffer *to,
                               const float *host, size_t n, size_t k, size_t at)
{
    const clv_weight_piece piece = { host, n, k };
    return clv_weight_bring(queue, &d->form, d->half, &piece, to, at);
}

/* Writes the matrices of q, k and v as one matrix [3 D, D]. It first copies them together, unless they already follow
 * each other in the host's memory. */
static clv_status bring_qkv(clv_queue *queue, const clv_encoder_device *d, clv_buffer *to,
                            const clv_model_layer *l, size_t width, size_t at)
{
    const size_t floats = width * width;
    if (l->k_weight == l->q_weight + floats && l->v_weight == l->k_weight + floats)
        return bring_matrix(queue, d, to, l->q_weight, 3 * width, width, at);
    float *joined = clv_alloc(3 * floats, sizeof *joined);
    if (!joined) return clv_fail(CLV_E_MEMORY, "encoder: not enough memory to join q, k and v");
    memcpy(joined, l->q_weight, floats * sizeof *joined);
    memcpy(joined + floats, l->k_weight, floats * sizeof *joined);
    memcpy(joined + 2 * floats, l->v_weight, floats * sizeof *joined);
    const clv_status status = bring_matrix(queue, d, to, joined, 3 * width, width, at);
    clv_free(joined);
    return status;
}

static clv_status bring_parameters(const clv_encoder *e, clv_queue *queue, clv_encoder_device *d,
                                   size_t floats)
{
    float *all = gather(e, d, floats);
    if (!all)
        return clv_fail(CLV_E_MEMORY, "encoder: not enough memory for %zu parameters", floats);
    clv_status status =
        clv_buffer_create(d->device, floats * sizeof(float), CLV_BUFFER_DEVICE, &d->parameters);
    if (!status) status = clv_write(queue, d->parameters, 0, all, floats * sizeof(float));
    clv_free(all);
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

enum { WORD }; /* tensor numbers: the word table, then the layers */

typedef struct filling {
    const clv_encoder *encoder;
    const clv_encoder_device *device;
    size_t layer;
} filling;

static clv_status fill_layer(clv_queue *queue, clv_buffer *to, const void *user)
{
    const filling *f = user;
    const clv_model_config *c = &f->encoder->config;
    const clv_model_layer *l = &f->encoder->weights.layer[f->layer];
    const clv_encoder_device *d = f->device;
    const clv_layer_place *p = &d->layers[f->layer];
    CLV_TRY(bring_qkv(queue, d, to, l, c->width, p->qkv));
    CLV_TRY(bring_matrix(queue, d, to, l->out_weight, c->width, c->width, p->out));
    CLV_TRY(bring_matrix(queue, d, to, l->up_weight, c->ffn, c->width, p->up));
    return bring_matrix(queue, d, to, l->down_weight, c->width, c->ffn, p->down);
}

clv_status clv_encoder_layer(const clv_encoder *e, const clv_encoder_device *d, clv_queue *queue,
                             size_t layer, clv_kept_tensor **out)
{
    const clv_model_layer *all = e->weights.layer;
    for (size_t i = 0; i < layer; ++i) /* layers that share weights share a tensor */
        if (all[i].q_weight == all[layer].q_weight) layer = i;
    const filling f = { e, d, layer };
    const size_t element = d->half ? sizeof(uint16_t) : sizeof(float);
    return clv_tensor_get(queue, e, WORD + 1 + layer, d->layer_elements * element, fill_layer, &f,
                          out);
}

static clv_status fill_project(clv_queue *queue, clv_buffer *to, const void *user)
{
    const filling *f = user;
    const clv_model_config *c = &f->encoder->config;
    return bring_matrix(queue, f->device, to, f->encoder->weights.project_weight, c->width,
                        c->embedding, 0);
}

clv_status clv_encoder_project(const clv_encoder *e, const clv_encoder_device *d, clv_queue *queue,
                               clv_kept_tensor **out)
{
    const clv_model_config *c = &e->config;
    const filling f = { e, d, 0 };
    const size_t element = d->half ? sizeof(uint16_t) : sizeof(float);
    *out = NULL;
    if (!c->embedding) return CLV_OK;
    return clv_tensor_get(queue, e, WORD + 1 + c->layers,
                          clv_weight_room(&d->form, c->width, c->embedding) * element, fill_project,
                          &f, out);
}

static clv_status fill_word(clv_queue *queue, clv_buffer *to, const void *user)
{
    const clv_encoder *e = user;
    return clv_write(queue, to, 0, e->weights.word, clv_buffer_bytes(to));
}

clv_status clv_encoder_word(const clv_encoder *e, const clv_encoder_device *d, clv_queue *queue,
                            clv_kept_tensor **out)
{
    *out = NULL;
    if (d->word) return CLV_OK;
    return clv_tensor_get(queue, e, WORD,
                          e->config.vocabulary * clv_table_width(&e->config) * sizeof(float),
                          fill_word, e, out);
}

/* ---- a device ------------------------------------------------------------------------------------ */

/* Says why a device keeps rows as floats although the caller allows halves. */
static void tell_products(const clv_encoder_device *d)
{
    clv_gemm_form forms[CLV_GEMM_MOST_HALVES];
    if (d->form.halves) return;
    clv_log(CLV_LOG_WARN, "%s: products of fp16 with fp16 are not used, because %s",
            clv_device_label(d->device),
            clv_gemm_halves_forms(d->device, forms)
                ? "those of fp16 with fp32 were faster here, or no others were right"
                : "the device offers neither fp16 nor matrix units");
}

static clv_status bring(const clv_encoder *e, clv_queue *queue, clv_encoder_device *d)
{
    const clv_model_config *c = &e->config;
    const size_t word_bytes = c->vocabulary * clv_table_width(c) * sizeof(float);
    size_t parameters;
    clv_kept_tensor *tensor;
    d->device = clv_queue_device(queue);
    d->half = e->half;
    d->layers = clv_zalloc(CLV_MAX(c->layers, (size_t)1), sizeof *d->layers);
    if (!d->layers)
        return clv_fail(CLV_E_MEMORY, "encoder: not enough memory for %zu layers", c->layers);
    CLV_TRY((e->half_products ? clv_gemm_choose_halves : clv_gemm_choose)(e->context, queue,
                                                                          USUAL_ROWS, &d->form));
    if (e->half_products && !queue->rehearsing) tell_products(d);
    lay_out(c, d, &parameters);
    CLV_TRY(bring_parameters(e, queue, d, parameters));
    /* a device that shares the host's memory reads the word table, the largest table, without a copy */
    if (clv_buffer_wrap(d->device, (void *)(uintptr_t)e->weights.word, word_bytes, &d->word))
        d->word = NULL;
    /* uploaded now, so that no chunk's time includes the upload */
    CLV_TRY(clv_encoder_word(e, d, queue, &tensor));
    clv_tensor_put(tensor);
    CLV_TRY(clv_encoder_project(e, d, queue, &tensor));
    clv_tensor_put(tensor);
    for (size_t i = 0; i < c->layers; ++i) {
        CLV_TRY(clv_encoder_layer(e, d, queue, i, &tensor));
        clv_tensor_put(tensor);
    }
    return CLV_OK;
}

void clv_encoder_device_free(const clv_encoder *e, clv_encoder_device *d)
{
    if (!d) return;
    if (d->device) clv_tensors_drop(d->device, e);
    clv_buffer_free(d->word);
    clv_buffer_free(d->parameters);
    clv_free(d->layers);
    clv_free(d);
}

static clv_encoder_device *find(clv_encoder *e, const clv_device *device)
{
    clv_encoder_device *found = NULL;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->device_count && !found; ++i)
        if (e->devices[i]->device == device) found = e->devices[i];
    pthread_mutex_unlock(&e->lock);
    return found;
}

/* Removes the entry that a rehearsal made for a device without uploading weights. Only the device's thread uses the
 * entry. */
static void drop_rehearsed(clv_encoder *e, clv_encoder_device *d)
{
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->device_count; ++i)
        if (e->devices[i] == d) e->devices[i--] = e->devices[--e->device_count];
    pthread_mutex_unlock(&e->lock);
    clv_encoder_device_free(e, d);
}

clv_status clv_encoder_on_device(clv_encoder *e, clv_queue *queue, clv_encoder_device **out)
{
    *out = find(e, clv_queue_device(queue));
    if (*out && (!(*out)->rehearsed || queue->rehearsing)) return CLV_OK;
    if (*out) drop_rehearsed(e, *out);
    *out = NULL;
    clv_encoder_device *d = clv_zalloc(1, sizeof *d);
    clv_status status = d ? bring(e, queue, d) : clv_fail(CLV_E_MEMORY, "encoder: out of memory");
    if (d) d->rehearsed = queue->rehearsing;
    pthread_mutex_lock(&e->lock);
    if (!status && e->device_count == CLV_LEN(e->devices))
        status =
            clv_fail(CLV_E_INTERNAL, "encoder: the context has more devices than a job can use");
    if (!status) e->devices[e->device_count++] = *out = d;
    pthread_mutex_unlock(&e->lock);
    if (status) clv_encoder_device_free(e, d);
    return status;
}
