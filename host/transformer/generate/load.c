/* SPDX-License-Identifier: Apache-2.0 */
/* Loads weights from their files to a device: assigns an offset to each tensor, interleaves its rows, and writes it. */
#include "host/transformer/generate/part.h"

#include "base/alloc.h"
#include "base/error.h"
#include "probe/host/host.h"
#include "runtime/device/device.h"
#include "runtime/device/queue.h"

#include <string.h>

enum { ALIGN = 256, CHUNK = 4 << 20 };

/* ---- offsets of the weights ----------------------------------------------------------------------- */

static size_t place_vector(uint64_t *used, const clv_lm_tensor *t)
{
    const size_t at = (size_t)(*used / sizeof(float));
    *used += clv_lm_padded_rows(t->columns) * sizeof(float);
    return at;
}

static clv_lm_linear place_matrix(uint64_t *used, const clv_lm_tensor *t, size_t at)
{
    const clv_lm_linear w = { .type = t->type,
                              .rows = clv_lm_padded_rows(t->rows),
                              .columns = t->columns,
                              .blocks = clv_lm_blocks(t->type, t->columns),
                              .offset = *used,
                              .at = at };
    *used += clv_lm_matrix_bytes(t->type, t->rows, t->columns);
    return w;
}

/* Places the matrices of queries, keys and values side by side; neighbours of the same type become one matrix. */
static void place_qkv(clv_lm_layer *l, const clv_lm_tensor *t, uint64_t *used)
{
    const bool biased = t[CLV_LM_Q_BIAS].name || t[CLV_LM_K_BIAS].name || t[CLV_LM_V_BIAS].name;
    const size_t bias = (size_t)(*used / sizeof(float));
    const clv_lm_tensor *all[] = { &t[CLV_LM_Q], &t[CLV_LM_K], &t[CLV_LM_V] };
    size_t at = 0;
    for (size_t i = 0; biased && i < 3; ++i)
        *used += clv_lm_padded_rows(all[i]->rows) * sizeof(float);
    *used = clv_round_up((size_t)*used, ALIGN);
    l->qkv_count = 0;
    for (size_t i = 0; i < 3; ++i) {
        clv_lm_linear w = place_matrix(used, all[i], at);
        w.biased = biased, w.bias = bias + at;
        at += w.rows;
        clv_lm_linear *last = l->qkv_count ? &l->qkv[l->qkv_count - 1] : NULL;
        if (last && last->type == w.type)
            last->rows += w.rows;
        else
            l->qkv[l->qkv_count++] = w;
    }
}

static void place_layer(const clv_lm_model *m, size_t layer, clv_lm_layer *l)
{
    const clv_lm_tensor *t = m->layers[layer];
    uint64_t used = 0;
    l->attn_norm = place_vector(&used, &t[CLV_LM_ATTN_NORM]);
    l->ffn_norm = place_vector(&used, &t[CLV_LM_FFN_NORM]);
    if (t[CLV_LM_Q_NORM].name) l->q_norm = place_vector(&used, &t[CLV_LM_Q_NORM]);
    if (t[CLV_LM_K_NORM].name) l->k_norm = place_vector(&used, &t[CLV_LM_K_NORM]);
    const size_t out_bias = t[CLV_LM_O_BIAS].name ? place_vector(&used, &t[CLV_LM_O_BIAS]) : 0;
    place_qkv(l, t, &used);
    l->out = place_matrix(&used, &t[CLV_LM_O], 0);
    l->out.biased = t[CLV_LM_O_BIAS].name != NULL;
    l->out.bias = out_bias;
    l->gate = place_matrix(&used, &t[CLV_LM_GATE], 0);
    l->up = place_matrix(&used, &t[CLV_LM_UP], 0);
    l->down = place_matrix(&used, &t[CLV_LM_DOWN], 0);
    l->paired = l->gate.type == l->up.type;
    l->bytes = used;
}

uint64_t clv_lm_layer_bytes(const clv_lm_model *m, size_t layer)
{
    clv_lm_layer l = { 0 };
    place_layer(m, layer, &l);
    return l.bytes;
}

uint64_t clv_lm_table_bytes(const clv_lm_model *m, clv_lm_role role)
{
    const clv_lm_tensor *t = &m->top[m->config.tied ? CLV_LM_WORDS : role];
    return clv_lm_matrix_bytes(t->type, t->rows, t->columns);
}

/* ---- uploading ------------------------------------------------------------------------------------ */

typedef struct loader {
    const clv_lm_model *m;
    clv_queue *queue;
    unsigned char *raw, *ready; /* CHUNK bytes each, or more if a group of 16 rows is larger */
    size_t raw_room, ready_room;
} loader;

static clv_status need(loader *k, size_t raw, size_t ready)
{
    if (clv_reserve(&k->raw, &k->raw_room, raw, 1) &&
        clv_reserve(&k->ready, &k->ready_room, ready, 1))
        return CLV_OK;
    return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu bytes of weights", k->m->path,
                    raw);
}

static clv_status bring_matrix(loader *k, const clv_lm_tensor *t, clv_buffer *to, uint64_t offset)
{
    const size_t row = clv_lm_row_bytes(t);
    const size_t group = clv_lm_blocks(t->type, t->columns) * clv_lm_block_bytes(t->type);
    const size_t at_once = CLV_MAX((size_t)CHUNK / group, (size_t)1);
    const size_t groups = clv_lm_padded_rows(t->rows) / CLV_LM_LANES;
    for (size_t g = 0; g < groups; g += at_once) {
        const size_t now = CLV_MIN(at_once, groups - g), first = g * CLV_LM_LANES;
        const size_t rows = CLV_MIN(now * CLV_LM_LANES, t->rows - first);
        CLV_TRY(need(k, rows * row, now * group));
        CLV_TRY(clv_lm_read(k->m, t, first, rows, k->raw));
        for (size_t i = 0; i < now; ++i)
            clv_lm_interleave(t->type, k->raw + i * CLV_LM_LANES * row, row,
                              CLV_MIN(rows - i * CLV_LM_LANES, (size_t)CLV_LM_LANES), t->columns,
                              k->ready + i * group);
        CLV_TRY(clv_write(k->queue, to, (size_t)offset, k->ready, now * group));
        offset += now * group;
    }
    return CLV_OK;
}

/* Writes a vector, padded with zeros to a multiple of 16 floats; writes only zeros if the model lacks the vector. */
static clv_status bring_vector(loader *k, const clv_lm_tensor *t, size_t columns, clv_buffer *to,
                               size_t at)
{
    const size_t padded = clv_lm_padded_rows(columns);
    CLV_TRY(need(k, padded * sizeof(float), 1));
    float *values = (float *)(void *)k->raw;
    memset(values, 0, padded * sizeof *values);
    if (t->name) CLV_TRY(clv_lm_read_vector(k->m, t, values));
    return clv_write(k->queue, to, at * sizeof *values, values, padded * sizeof *values);
}

static clv_status bring_qkv(loader *k, const clv_lm_tensor *t, const clv_lm_layer *l,
                            clv_buffer *to)
{
    static const clv_lm_role matrices[] = { CLV_LM_Q, CLV_LM_K, CLV_LM_V };
    static const clv_lm_role biases[] = { CLV_LM_Q_BIAS, CLV_LM_K_BIAS, CLV_LM_V_BIAS };
    uint64_t offset = l->qkv[0].offset;
    size_t bias = l->qkv[0].bias;
    for (size_t i = 0; i < 3; ++i) {
        const clv_lm_tensor *w = &t[matrices[i]];
        CLV_TRY(bring_matrix(k, w, to, offset));
        offset += clv_lm_matrix_bytes(w->type, w->rows, w->columns);
        if (l->qkv[0].biased) CLV_TRY(bring_vector(k, &t[biases[i]], w->rows, to, bias));
        bias += clv_lm_padded_rows(w->rows);
    }
    return CLV_OK;
}

static clv_status bring_layer(loader *k, size_t layer, const clv_lm_layer *l, clv_buffer *to)
{
    const clv_lm_tensor *t = k->m->layers[layer];
    const struct {
        clv_lm_role role;
        size_t at;
    } vectors[] = { { CLV_LM_ATTN_NORM, l->attn_norm },
                    { CLV_LM_FFN_NORM, l->ffn_norm },
                    { CLV_LM_Q_NORM, l->q_norm },
                    { CLV_LM_K_NORM, l->k_norm },
                    { CLV_LM_O_BIAS, l->out.bias } };
    const struct {
        clv_lm_role role;
        const clv_lm_linear *w;
    } matrices[] = { { CLV_LM_O, &l->out },
                     { CLV_LM_GATE, &l->gate },
                     { CLV_LM_UP, &l->up },
                     { CLV_LM_DOWN, &l->down } };
    for (size_t i = 0; i < CLV_LEN(vectors); ++i) {
        const clv_lm_tensor *v = &t[vectors[i].role];
        if (v->name) CLV_TRY(bring_vector(k, v, v->columns, to, vectors[i].at));
    }
    CLV_TRY(bring_qkv(k, t, l, to));
    for (size_t i = 0; i < CLV_LEN(matrices); ++i)
        CLV_TRY(bring_matrix(k, &t[matrices[i].role], to, matrices[i].w->offset));
    return CLV_OK;
}

/* ---- tensors that stay while there is room -------------------------------------------------------- */

typedef struct filling {
    const clv_lm_part *part;
    size_t which;
} filling;

static const clv_lm_tensor *table_of(const clv_lm_model *m, size_t which)
{
    return &m->top[which == CLV_LM_KEPT_WORDS || m->config.tied ? CLV_LM_WORDS : CLV_LM_OUT];
}

static clv_status fill(clv_queue *queue, clv_buffer *to, const void *user)
{
    const filling *f = user;
    const clv_lm_part *p = f->part;
    const size_t layer = f->which - CLV_LM_KEPT_LAYERS;
    loader k = { .m = p->model, .queue = queue };
    const clv_status status = f->which >= CLV_LM_KEPT_LAYERS
                                  ? bring_layer(&k, p->first + layer, &p->layers[layer], to)
                                  : bring_matrix(&k, table_of(p->model, f->which), to, 0);
    clv_free(k.raw), clv_free(k.ready);
    return status;
}

static uint64_t bytes_of(const clv_lm_part *p, size_t which)
{
    if (which >= CLV_LM_KEPT_LAYERS) return p->layers[which - CLV_LM_KEPT_LAYERS].bytes;
    const clv_lm_tensor *t = table_of(p->model, which);
    return clv_lm_matrix_bytes(t->type, t->rows, t->columns);
}

clv_status clv_lm_part_hold(const clv_lm_part *p, size_t which, clv_kept_tensor **out)
{
    const filling f = { p, which };
    return clv_tensor_get(p->queue, p, which, (size_t)bytes_of(p, which), fill, &f, out);
}

/* Uploads all tensors of the part. If they do not fit into the device's memory together, later steps upload some of
 * them again. */
static clv_status bring(clv_lm_part *p)
{
    const bool own_scores = p->scored && p->scores_in == CLV_LM_KEPT_SCORES;
    for (size_t i = 0; i < CLV_LM_KEPT_LAYERS + p->count; ++i) {
        clv_kept_tensor *tensor;
        if (i == CLV_LM_KEPT_WORDS && p->first) continue;
        if (i == CLV_LM_KEPT_SCORES && !own_scores) continue;
        CLV_TRY(clv_lm_part_hold(p, i, &tensor));
        clv_tensor_put(tensor);
        p->weight_bytes += bytes_of(p, i);
    }
    return CLV_OK;
}

static clv_status bring_norm(clv_lm_part *p)
{
    const clv_lm_model *m = p->model;
    const size_t floats = clv_lm_padded_rows(m->config.width);
    loader k = { .m = m, .queue = p->queue };
    CLV_TRY(clv_buffer_create(clv_queue_device(p->queue), floats * sizeof(float), CLV_BUFFER_DEVICE,
                              &p->out_norm));
    const clv_status status =
        bring_vector(&k, &m->top[CLV_LM_OUT_NORM], m->config.width, p->out_norm, 0);
    clv_free(k.raw), clv_free(k.ready);
    return status;
}

clv_status clv_lm_part_open(clv_context *context, const clv_lm_model *m, clv_queue *queue,
                            size_t first, size_t count, bool half, bool int8, clv_lm_part *p)
{
    const clv_device *device = clv_queue_device(queue);
    uint64_t used = 0;
    *p = (clv_lm_part){ .model = m,
                        .queue = queue,
                        .family = CLV_LM_CORES,
                        .half = half,
                        .first = first,
                        .count = count,
                        .scored = first + count == m->config.layers,
                        .units = CLV_MAX(clv_device_facts(device)->compute_units, 1u) };
    p->form = clv_gemm_form_of(device, 0);
    if (p->form.provider == CLV_GEMM_ROWS)
        p->form.block = 512; /* whole blocks of 256 weights */
    else
        p->family = CLV_LM_ITEMS;
    p->int8 = int8 && p->family == CLV_LM_CORES;
    p->items = 4 * p->units;
    p->workers = CLV_MIN(p->units, (size_t)clv_host_threads(""));
    p->layers = clv_zalloc(count + 1, sizeof *p->layers);
    if (!p->layers) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    for (size_t i = 0; i < count; ++i)
        place_layer(m, first + i, &p->layers[i]);
    p->scores_in = m->config.tied && !first ? CLV_LM_KEPT_WORDS : CLV_LM_KEPT_SCORES;
    p->word_rows = place_matrix(&used, table_of(m, CLV_LM_KEPT_WORDS), 0);
    used = 0;
    p->scores = place_matrix(&used, table_of(m, CLV_LM_KEPT_SCORES), 0);
    if (p->family == CLV_LM_ITEMS) CLV_TRY(clv_lm_items_choose(context, p));
    CLV_TRY(bring(p));
    return p->scored ? bring_norm(p) : CLV_OK;
}
