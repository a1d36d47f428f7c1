/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder's weights by name, to its device: norms as they are, matrices packed for its products. */
#include "host/transformer/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/transformer/weights.h"
#include "runtime/device/queue.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PATH = 4096 };

/* What a decoder's tensor is filled with. */
typedef struct filling {
    const clv_decoder *decoder;
    size_t part;
} filling;

/* A vector [n] (k 0) or a matrix [n,k], of which `second` (may be NULL) is the lower half, and where
 * it begins in its tensor. */
typedef struct piece {
    const char *name, *second;
    size_t n, k, at;
} piece;

/* Floats of a tensor [n] (k 0) or [n,k] onto `out`. */
static clv_status read_one(const clv_decoder *d, const char *name, size_t n, size_t k, float *out)
{
    const clv_tensor *t = clv_tensors_find(d->file, name);
    char wanted[48];
    snprintf(wanted, sizeof wanted, k ? "[%zu,%zu]" : "[%zu]", n, k);
    if (!t)
        return clv_fail(CLV_E_FORMAT, "%s: no tensor \"%s\", expected one of shape %s", d->path,
                        name, wanted);
    if (t->rank != (k ? 2u : 1u) || t->shape[0] != n || (k && t->shape[1] != k))
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\" has %zu numbers in rank %zu, config.json says %s",
                        d->path, name, t->count, t->rank, wanted);
    if (t->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is %s, expected F32, F16, BF16 or F64",
                        d->path, name, t->type_name);
    return clv_tensors_read_f32(d->file, t, 0, t->count, out);
}

static clv_status fill_piece(const clv_decoder *d, clv_queue *queue, clv_buffer *to, const piece *p)
{
    const size_t columns = CLV_MAX(p->k, (size_t)1), rows = p->second ? p->n / 2 : p->n;
    float *host = clv_alloc(p->n * columns, sizeof *host);
    if (!host)
        return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu weights", d->path, p->n * columns);
    clv_status status = read_one(d, p->name, rows, p->k, host);
    if (!status && p->second) status = read_one(d, p->second, rows, p->k, host + rows * columns);
    const clv_weight_piece all = { host, p->n, p->k };
    if (!status) status = clv_weight_bring(queue, &d->form, false, &all, to, p->at);
    clv_free(host);
    return status;
}

/* ---- where everything lies ------------------------------------------------------------------------- */

static size_t place(const clv_decoder *d, size_t *used, size_t n, size_t k)
{
    const size_t at = *used;
    *used += clv_weight_room(&d->form, n, k);
    return at;
}

/* All layers are alike. */
static void lay_out(clv_decoder *d)
{
    const clv_decoder_config *c = &d->config;
    const size_t width = c->width, kv = width / c->heads * c->kv_heads;
    d->zeros = clv_round_up(c->vocabulary * width, 16);
    for (size_t i = 0; i < c->layers; ++i) {
        clv_decoder_layer *l = &d->layers[i];
        size_t used = 0;
        l->norm1 = place(d, &used, width, 0);
        l->q = place(d, &used, width, width);
        l->k = place(d, &used, kv, width);
        l->v = place(d, &used, kv, width);
        l->out = place(d, &used, width, width);
        l->norm2 = place(d, &used, width, 0);
        l->gate_up = place(d, &used, 2 * c->ffn, width);
        l->down = place(d, &used, width, c->ffn);
        d->layer_floats = used;
    }
    d->score_floats = 0;
    d->norm = place(d, &d->score_floats, width, 0);
    d->scores = place(d, &d->score_floats, c->vocabulary, width);
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

static clv_status fill_words(const clv_decoder *d, clv_queue *queue, clv_buffer *to)
{
    const clv_decoder_config *c = &d->config;
    const size_t count = c->vocabulary * c->width;
    float *host = clv_alloc(count, sizeof *host);
    if (!host) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu weights", d->path, count);
    const clv_weight_piece words = { host, count, 0 };
    clv_status status = read_one(d, "model.embed_tokens.weight", c->vocabulary, c->width, host);
    if (!status) status = clv_weight_bring(queue, &d->form, false, &words, to, 0);
    clv_free(host);
    return status ? status
                  : clv_fill_enqueue(queue, to, d->zeros * sizeof(float), c->width * sizeof(float),
                                     0, NULL);
}

static clv_status fill_scores(const clv_decoder *d, clv_queue *queue, clv_buffer *to)
{
    const clv_decoder_config *c = &d->config;
    const piece norm = { "model.norm.weight", NULL, c->width, 0, d->norm };
    const piece scores = { c->tied ? "model.embed_tokens.weight" : "lm_head.weight", NULL,
                           c->vocabulary, c->width, d->scores };
    CLV_TRY(fill_piece(d, queue, to, &norm));
    return fill_piece(d, queue, to, &scores);
}

static clv_status fill_layer(const clv_decoder *d, clv_queue *queue, clv_buffer *to, size_t i)
{
    const clv_decoder_config *c = &d->config;
    const clv_decoder_layer *l = &d->layers[i];
    const size_t width = c->width, kv = width / c->heads * c->kv_heads;
    const piece all[] = { { "input_layernorm", NULL, width, 0, l->norm1 },
                          { "self_attn.q_proj", NULL, width, width, l->q },
                          { "self_attn.k_proj", NULL, kv, width, l->k },
                          { "self_attn.v_proj", NULL, kv, width, l->v },
                          { "self_attn.o_proj", NULL, width, width, l->out },
                          { "post_attention_layernorm", NULL, width, 0, l->norm2 },
                          { "mlp.gate_proj", "mlp.up_proj", 2 * c->ffn, width, l->gate_up },
                          { "mlp.down_proj", NULL, width, c->ffn, l->down } };
    for (size_t k = 0; k < CLV_LEN(all); ++k) {
        char name[96], second[96];
        piece p = all[k];
        snprintf(name, sizeof name, "model.layers.%zu.%s.weight", i, p.name);
        if (p.second) snprintf(second, sizeof second, "model.layers.%zu.%s.weight", i, p.second);
        p.name = name, p.second = p.second ? second : NULL;
        CLV_TRY(fill_piece(d, queue, to, &p));
    }
    return CLV_OK;
}

static clv_status fill(clv_queue *queue, clv_buffer *to, const void *user)
{
    const filling *f = user;
    if (f->part == CLV_DECODER_WORDS) return fill_words(f->decoder, queue, to);
    if (f->part == CLV_DECODER_SCORES) return fill_scores(f->decoder, queue, to);
    return fill_layer(f->decoder, queue, to, f->part - CLV_DECODER_LAYERS);
}

clv_status clv_decoder_part(const clv_decoder *d, size_t part, clv_kept_tensor **out)
{
    const filling f = { d, part };
    const size_t floats = part == CLV_DECODER_WORDS    ? d->zeros + d->config.width
                          : part == CLV_DECODER_SCORES ? d->score_floats
                                                       : d->layer_floats;
    return clv_tensor_get(d->queue, d, part, floats * sizeof(float), fill, &f, out);
}

clv_status clv_decoder_bring(clv_decoder *d, const char *folder)
{
    char path[MOST_PATH];
    const int length = snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (length < 0 || length >= MOST_PATH)
        return clv_fail(CLV_E_ARGUMENT, "decoder: a path of %d bytes", length);
    d->path = clv_alloc((size_t)length + 1, 1);
    if (!d->path) return clv_fail(CLV_E_MEMORY, "decoder: no memory for a path");
    memcpy(d->path, path, (size_t)length + 1);
    CLV_TRY(clv_tensors_open(path, &d->file));
    lay_out(d);
    for (size_t part = 0; part < CLV_DECODER_LAYERS + d->config.layers; ++part) {
        clv_kept_tensor *tensor;
        CLV_TRY(clv_decoder_part(d, part, &tensor));
        clv_tensor_put(tensor);
    }
    return CLV_OK;
}
