/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder's weights by name, to its device: norms as they are, matrices packed for its products. */
#include "host/transformer/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/queue.h"

#include <stdio.h>

enum { MOST_PATH = 4096 };

/* Filled twice: first sizes are added up, then weights brought. */
typedef struct filling {
    clv_decoder *decoder;
    const clv_tensors *file;
    const char *path;
    size_t used;
    bool brings;
} filling;

/* Floats of a tensor [n] (k 0) or [n,k] onto `out`. */
static clv_status read_one(const filling *f, const char *name, size_t n, size_t k, float *out)
{
    const clv_tensor *t = clv_tensors_find(f->file, name);
    if (!t) return clv_fail(CLV_E_FORMAT, "%s: no tensor \"%s\"", f->path, name);
    if (t->rank != (k ? 2u : 1u) || t->shape[0] != n || (k && t->shape[1] != k))
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\" has %zu numbers in rank %zu, expected "
                        "[%zu,%zu]",
                        f->path, name, t->count, t->rank, n, k);
    if (t->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is %s, expected F32, F16, BF16 or F64",
                        f->path, name, t->type_name);
    return clv_tensors_read_f32(f->file, t, 0, t->count, out);
}

static clv_status bring(const filling *f, const float *host, size_t n, size_t k, size_t at)
{
    clv_decoder *d = f->decoder;
    const size_t bytes = n * CLV_MAX(k, (size_t)1) * sizeof *host;
    clv_buffer *raw = NULL;
    if (!k || !clv_gemm_packed_b(&d->form, n, k))
        return clv_write(d->queue, d->weights, at * sizeof *host, host, bytes);
    CLV_TRY(clv_buffer_create(clv_queue_device(d->queue), bytes, CLV_BUFFER_DEVICE, &raw));
    const clv_matrix b = { raw, 0, 1, k, 0 };
    clv_status status = clv_write(d->queue, raw, 0, host, bytes);
    if (!status) status = clv_gemm_pack_b_enqueue(d->queue, &d->form, n, k, 1, &b, d->weights, at);
    status = clv_queue_finish(d->queue, status);
    clv_buffer_free(raw);
    return status;
}

/* A vector [n] (k 0) or a matrix [n,k], of which `second` (may be NULL) is the lower half; where it
 * begins goes to *at. */
static clv_status add(filling *f, const char *name, const char *second, size_t n, size_t k,
                      size_t *at)
{
    const size_t columns = CLV_MAX(k, (size_t)1);
    const size_t packed = k ? clv_gemm_packed_b(&f->decoder->form, n, k) : 0;
    *at = f->used;
    f->used += clv_round_up(packed ? packed : n * columns, 16);
    if (!f->brings) return CLV_OK;
    const size_t rows = second ? n / 2 : n;
    float *host = clv_alloc(n * columns, sizeof *host);
    if (!host) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu weights", f->path, n * columns);
    clv_status status = read_one(f, name, rows, k, host);
    if (!status && second) status = read_one(f, second, rows, k, host + rows * columns);
    if (!status) status = bring(f, host, n, k, *at);
    clv_free(host);
    return status;
}

static clv_status add_layer(filling *f, size_t i)
{
    const clv_decoder_config *c = &f->decoder->config;
    clv_decoder_layer *l = &f->decoder->layers[i];
    const size_t d = c->width, kv = d / c->heads * c->kv_heads;
    const struct {
        const char *name, *second;
        size_t n, k, *at;
    } all[] = { { "input_layernorm", NULL, d, 0, &l->norm1 },
                { "self_attn.q_proj", NULL, d, d, &l->q },
                { "self_attn.k_proj", NULL, kv, d, &l->k },
                { "self_attn.v_proj", NULL, kv, d, &l->v },
                { "self_attn.o_proj", NULL, d, d, &l->out },
                { "post_attention_layernorm", NULL, d, 0, &l->norm2 },
                { "mlp.gate_proj", "mlp.up_proj", 2 * c->ffn, d, &l->gate_up },
                { "mlp.down_proj", NULL, d, c->ffn, &l->down } };
    for (size_t k = 0; k < CLV_LEN(all); ++k) {
        char name[96], second[96];
        snprintf(name, sizeof name, "model.layers.%zu.%s.weight", i, all[k].name);
        if (all[k].second)
            snprintf(second, sizeof second, "model.layers.%zu.%s.weight", i, all[k].second);
        CLV_TRY(add(f, name, all[k].second ? second : NULL, all[k].n, all[k].k, all[k].at));
    }
    return CLV_OK;
}

static clv_status add_all(filling *f)
{
    clv_decoder *d = f->decoder;
    const clv_decoder_config *c = &d->config;
    d->zeros = 0;
    f->used = clv_round_up(c->width, 16);
    for (size_t i = 0; i < c->layers; ++i)
        CLV_TRY(add_layer(f, i));
    CLV_TRY(add(f, "model.norm.weight", NULL, c->width, 0, &d->norm));
    return add(f, c->tied ? "model.embed_tokens.weight" : "lm_head.weight", NULL, c->vocabulary,
               c->width, &d->scores);
}

static clv_status bring_word(filling *f)
{
    clv_decoder *d = f->decoder;
    const size_t count = d->config.vocabulary * d->config.width;
    float *host = clv_alloc(count, sizeof *host);
    if (!host) return clv_fail(CLV_E_MEMORY, "%s: no memory for %zu weights", f->path, count);
    clv_status status =
        read_one(f, "model.embed_tokens.weight", d->config.vocabulary, d->config.width, host);
    if (!status)
        status = clv_buffer_create(clv_queue_device(d->queue), count * sizeof *host,
                                   CLV_BUFFER_DEVICE, &d->word);
    if (!status) status = clv_write(d->queue, d->word, 0, host, count * sizeof *host);
    clv_free(host);
    return status;
}

clv_status clv_decoder_bring(clv_decoder *d, const char *folder)
{
    char path[MOST_PATH];
    clv_tensors *file = NULL;
    const int length = snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (length < 0 || length >= MOST_PATH)
        return clv_fail(CLV_E_ARGUMENT, "decoder: a path of %d bytes", length);
    CLV_TRY(clv_tensors_open(path, &file));
    filling f = { .decoder = d, .file = file, .path = path };
    clv_status status = add_all(&f);
    if (!status)
        status = clv_buffer_create(clv_queue_device(d->queue), f.used * sizeof(float),
                                   CLV_BUFFER_DEVICE, &d->weights);
    f.brings = true;
    if (!status)
        status =
            clv_fill_enqueue(d->queue, d->weights, 0, d->config.width * sizeof(float), 0, NULL);
    if (!status) status = add_all(&f);
    if (!status) status = bring_word(&f);
    clv_tensors_close(file);
    return status;
}
