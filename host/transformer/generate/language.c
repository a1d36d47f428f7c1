/* SPDX-License-Identifier: Apache-2.0 */
/* Implements clv_language: opens a model, distributes its layers over the devices, and reports on the model and on its
 * devices. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "runtime/device/device.h"
#include "runtime/device/queue.h"
#include "runtime/record/context.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_CONTEXT = 4096, USUAL_CHUNK = 512, MOST_CHUNK = 4096, MOST_PARTS = 64 };

/* A working device that may hold layers, with its queue. */
typedef struct candidate {
    clv_queue *queue; /* NULL once a part owns it */
    clv_lm_place place;
} candidate;

typedef struct opening {
    clv_language *l;
    clv_language_options options;
    candidate all[MOST_PARTS];
    size_t count;
} opening;

/* ---- devices --------------------------------------------------------------------------------------- */

/* Returns whether a device shares its cores with a candidate, in which case both together are no faster than one. */
static bool is_double(const opening *o, const clv_device *device)
{
    for (size_t i = 0; i < o->count; ++i)
        if (device->pool_group >= 0 &&
            clv_queue_device(o->all[i].queue)->pool_group == device->pool_group)
            return true;
    return false;
}

static clv_status find_devices(opening *o)
{
    clv_context *context = o->l->context;
    const size_t devices = context ? clv_context_device_count(context) : 0;
    for (size_t i = 0; i < devices && o->count < MOST_PARTS; ++i) {
        clv_device *device = clv_context_device(context, i);
        candidate *c = &o->all[o->count];
        if (!o->options.split && is_double(o, device)) continue;
        if (clv_queue_create(device, &c->queue)) {
            clv_log(CLV_LOG_WARN, "%s cannot hold a model: %s", clv_device_label(device),
                    clv_error_message());
            continue;
        }
        c->place = (clv_lm_place){ .room = clv_device_room(device).free_bytes };
        ++o->count;
    }
    if (devices && !o->count) return clv_fail(CLV_E_NO_DEVICE, "no device of the context works");
    return CLV_OK;
}

/* Measures the device's memory bandwidth in bytes per second, which limits its tokens per second. Takes the better of
 * two timed copies, in which each byte counts as one read and one write. Returns 0 if the copies fail, which ranks the
 * device as the slowest. */
static double measure_speed(candidate *c)
{
    const size_t bytes = CLV_MIN((size_t)32 << 20, (size_t)(c->place.room / 8)) / 64 * 64;
    clv_buffer *from = NULL, *to = NULL;
    clv_device *device = clv_queue_device(c->queue);
    double best = 0;
    clv_status status =
        clv_buffer_create(device, CLV_MAX(bytes, (size_t)64), CLV_BUFFER_DEVICE, &from);
    if (!status)
        status = clv_buffer_create(device, CLV_MAX(bytes, (size_t)64), CLV_BUFFER_DEVICE, &to);
    if (!status) status = clv_fill_enqueue(c->queue, from, 0, bytes, 0, NULL);
    for (int i = 0; i < 3 && !status; ++i) { /* the first copy only makes the pages resident */
        status = clv_queue_finish(c->queue, CLV_OK);
        const double started = clv_now();
        if (!status) status = clv_copy_enqueue(c->queue, from, 0, to, 0, bytes, NULL);
        if (!status) status = clv_queue_finish(c->queue, CLV_OK);
        const double took = clv_now() - started;
        if (!status && i && took > 0) best = CLV_MAX(best, 2 * (double)bytes / took);
    }
    if (status) clv_queue_drain(c->queue);
    clv_buffer_free(from), clv_buffer_free(to);
    return best;
}

/* Logs how the layers are distributed over several devices, and why. */
static void tell_split(const opening *o)
{
    const size_t layers = o->l->model->config.layers;
    bool alone = false;
    for (size_t i = 0; i < o->count; ++i)
        alone = alone || o->all[i].place.layers == layers;
    for (size_t i = 0; i < o->count && o->count > 1; ++i) {
        const clv_lm_place *p = &o->all[i].place;
        clv_log(alone ? CLV_LOG_INFO : CLV_LOG_WARN,
                "%s: gets %zu of %zu layers; its memory reads %.1f GB/s and has room for %.0f MB%s",
                clv_device_label(clv_queue_device(o->all[i].queue)), p->layers, layers,
                p->speed * 1e-9, (double)p->room * 1e-6,
                !alone ? "; the model does not fit on one device"
                : p->layers
                    ? "; a token goes through devices one after the other, so that a slower "
                      "one would only add its time"
                    : "");
    }
}

/* ---- layers to devices ----------------------------------------------------------------------------- */

static clv_status split_as_told(opening *o)
{
    const size_t layers = o->l->model->config.layers;
    size_t given = 0;
    if (o->options.split_count > o->count)
        return clv_fail(CLV_E_ARGUMENT, "the split is for %zu devices, but %zu devices work",
                        o->options.split_count, o->count);
    for (size_t i = 0; i < o->options.split_count; ++i) {
        o->all[i].place.first = given;
        o->all[i].place.layers = o->options.split[i];
        if (o->options.split[i] > layers - given) given = SIZE_MAX / 2;
        given += o->options.split[i];
    }
    if (given == layers) return CLV_OK;
    return clv_fail(CLV_E_ARGUMENT, "the parts of the split must add up to the model's %zu layers",
                    layers);
}

static clv_status split_by_room(opening *o, size_t context)
{
    const clv_lm_model *m = o->l->model;
    const size_t layers = m->config.layers;
    const uint64_t token = clv_lm_cache_bytes(&m->config, o->l->half);
    const uint64_t work = clv_lm_work_bytes(&m->config, o->l->chunk);
    clv_lm_place places[MOST_PARTS];
    uint64_t *bytes = clv_alloc(layers, sizeof *bytes);
    if (!bytes) return clv_fail(CLV_E_MEMORY, "%s: out of memory", m->path);
    for (size_t i = 0; i < layers; ++i)
        bytes[i] = clv_lm_layer_bytes(m, i) + token * context;
    for (size_t i = 0; i < o->count; ++i) {
        places[i] = o->all[i].place;
        places[i].room -= CLV_MIN(places[i].room, work);
    }
    const uint64_t words = clv_lm_table_bytes(m, CLV_LM_WORDS);
    const bool fits = clv_lm_cut(
        bytes, layers, words,
        m->config.tied && o->count == 1 ? 0 : clv_lm_table_bytes(m, CLV_LM_OUT), places, o->count);
    clv_free(bytes);
    for (size_t i = 0; i < o->count; ++i)
        o->all[i].place.first = places[i].first, o->all[i].place.layers = places[i].layers;
    return fits ? CLV_OK : CLV_E_DEVICE_MEMORY;
}

/* Assigns all layers to one device with enough memory, or distributes them over several devices. Unless the caller has
 * set the length of the context, halves it until everything fits. */
static clv_status split(opening *o, size_t *context)
{
    const clv_lm_model *m = o->l->model;
    if (o->options.split) return split_as_told(o);
    for (size_t i = 0; i < o->count && o->count > 1; ++i)
        o->all[i].place.speed = measure_speed(&o->all[i]);
    for (;; *context /= 2) {
        const clv_status status = split_by_room(o, *context);
        if (!status) tell_split(o);
        if (status != CLV_E_DEVICE_MEMORY) return status;
        if (o->options.context || *context < 64) break;
    }
    uint64_t room = 0;
    for (size_t i = 0; i < o->count; ++i)
        room += o->all[i].place.room;
    return clv_fail(
        CLV_E_DEVICE_MEMORY,
        "%s: %.0f MB of weights and %zu tokens of context do not fit into the %.0f MB that the "
        "devices have room for; try a shorter context, a cache in float16, or a larger --mem-limit",
        m->path, (double)m->bytes * 1e-6, *context, (double)room * 1e-6);
}

static int by_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->place.first > y->place.first) - (x->place.first < y->place.first);
}

static clv_status open_parts(opening *o)
{
    clv_language *l = o->l;
    size_t used = 0;
    for (size_t i = 0; i < o->count; ++i) /* drops devices without layers */
        if (o->all[i].place.layers)
            o->all[used++] = o->all[i];
        else
            clv_queue_free(o->all[i].queue);
    o->count = used;
    qsort(o->all, used, sizeof *o->all, by_first);
    l->parts = clv_zalloc(used, sizeof *l->parts);
    l->speeds = clv_zalloc(used, sizeof *l->speeds);
    if (!l->parts || !l->speeds) return clv_fail(CLV_E_MEMORY, "%s: out of memory", l->model->path);
    for (size_t i = 0; i < used; ++i) {
        candidate *c = &o->all[i];
        clv_queue *queue = c->queue;
        c->queue = NULL;
        l->part_count = i + 1;
        l->speeds[i] = c->place.speed;
        CLV_TRY(clv_lm_part_open(l->context, l->model, queue, c->place.first, c->place.layers,
                                 l->half, l->int8, &l->parts[i]));
    }
    return CLV_OK;
}

/* ---- opening --------------------------------------------------------------------------------------- */

/* Chooses the most tokens of a text: the caller's number, or else the lower one of USUAL_CONTEXT and the model's limit.
 * A caller's number above the model's limit is an error. */
static clv_status choose_context(const opening *o, size_t *context)
{
    const clv_lm_config *c = &o->l->model->config;
    const size_t most = c->window ? CLV_MIN(c->window, c->context) : c->context;
    *context = o->options.context == SIZE_MAX ? most
               : o->options.context           ? o->options.context
                                              : CLV_MIN(most, (size_t)USUAL_CONTEXT);
    if (*context <= most) return CLV_OK;
    return clv_fail(CLV_E_ARGUMENT,
                    "%s: a context of %zu tokens was asked for, but the model has at most %zu",
                    o->l->model->path, *context, most);
}

static clv_status open_all(opening *o)
{
    clv_language *l = o->l;
    size_t context, wanted;
    CLV_TRY(choose_context(o, &context));
    wanted = context;
    CLV_TRY(find_devices(o));
    if (o->count) {
        CLV_TRY(split(o, &context));
        CLV_TRY(open_parts(o));
    }
    l->room = context;
    if (context < wanted)
        clv_log(CLV_LOG_WARN,
                "the context is limited to %zu tokens: there is not enough memory for %zu", context,
                wanted);
    return CLV_OK;
}

static clv_status check_options(const clv_language_options *o)
{
    if (o->cache > CLV_LANGUAGE_CACHE_F16)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_language_open: cache is %d, which is not one of its enumerators",
                        (int)o->cache);
    if (o->activations > CLV_LANGUAGE_INT8)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_language_open: activations is %d, which is not one of its enumerators",
                        (int)o->activations);
    if (o->chunk > MOST_CHUNK)
        return clv_fail(CLV_E_ARGUMENT, "clv_language_open: chunk is %zu, expected at most %d",
                        o->chunk, MOST_CHUNK);
    if (o->split_count > MOST_PARTS || (o->split_count && !o->split) ||
        (o->split && !o->split_count))
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_language_open: the split has %zu parts; expected 1 to %d",
                        o->split_count, MOST_PARTS);
    return CLV_OK;
}

clv_status clv_lm_language_open(clv_context *context, const char *path, bool texts,
                                const clv_language_options *options, clv_language **out)
{
    opening o = { 0 };
    *out = NULL;
    CLV_TRY(clv_take_struct(&o.options, sizeof o.options, options, "clv_language_open",
                            "clv_language_options"));
    CLV_TRY(check_options(&o.options));
    clv_language *l = o.l = clv_zalloc(1, sizeof *l);
    if (!l) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    l->context = context;
    l->half = o.options.cache == CLV_LANGUAGE_CACHE_F16;
    l->int8 = o.options.activations == CLV_LANGUAGE_INT8;
    l->chunk = o.options.chunk ? o.options.chunk : USUAL_CHUNK;
    pthread_mutex_init(&l->lock, NULL);
    clv_status status = clv_lm_open(path, texts, &l->model);
    if (!status) status = open_all(&o);
    for (size_t i = 0; i < o.count; ++i)
        clv_queue_free(o.all[i].queue);
    if (status)
        clv_language_close(l);
    else
        *out = l;
    return status;
}

clv_status clv_language_open(clv_context *context, const char *path,
                             const clv_language_options *options, clv_language **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_language_open: out is NULL");
    *out = NULL;
    if (!path) return clv_fail(CLV_E_ARGUMENT, "clv_language_open: path is NULL");
    return clv_lm_language_open(context, path, true, options, out);
}

void clv_language_close(clv_language *l)
{
    if (!l) return;
    for (size_t i = 0; l->parts && i < l->part_count; ++i)
        clv_lm_part_close(&l->parts[i]);
    clv_lm_plain_free(l->plain);
    clv_lm_close(l->model);
    clv_free(l->parts), clv_free(l->speeds);
    pthread_mutex_destroy(&l->lock);
    clv_free(l);
}

/* ---- telling --------------------------------------------------------------------------------------- */

/* Copies as many bytes of the struct `own` to `out` as the caller's version of the struct has: the caller sets the
 * struct's first field, `size`. */
static clv_status give(const char *function, const void *own, size_t bytes, void *out)
{
    size_t size;
    memcpy(&size, out, sizeof size);
    if (size < sizeof size)
        return clv_fail(CLV_E_ARGUMENT, "%s: start the struct with CLV_INIT", function);
    memcpy(out, own, CLV_MIN(size, bytes));
    memcpy(out, &size, sizeof size);
    return CLV_OK;
}

clv_status clv_language_get_info(const clv_language *l, clv_language_info *info)
{
    if (!l || !info) return clv_fail(CLV_E_ARGUMENT, "clv_language_get_info: an argument is NULL");
    const clv_lm_model *m = l->model;
    const clv_lm_config *c = &m->config;
    const clv_language_info all = { .size = sizeof all,
                                    .architecture = c->architecture,
                                    .name = c->name,
                                    .template_ = m->chat_template,
                                    .layers = c->layers,
                                    .width = c->width,
                                    .heads = c->heads,
                                    .kv_heads = c->kv_heads,
                                    .head_width = c->head,
                                    .ffn = c->ffn,
                                    .vocabulary = c->vocabulary,
                                    .context = c->context,
                                    .room = l->room,
                                    .parameters = m->parameters,
                                    .bytes = m->bytes,
                                    .ends = m->ends,
                                    .end_count = m->end_count,
                                    .device_count = l->part_count,
                                    .tied = c->tied,
                                    .types = m->types };
    return give("clv_language_get_info", &all, sizeof all, info);
}

clv_status clv_language_get_share(const clv_language *l, size_t index, clv_language_share *share)
{
    if (!l || !share)
        return clv_fail(CLV_E_ARGUMENT, "clv_language_get_share: an argument is NULL");
    if (index >= l->part_count)
        return clv_fail(
            CLV_E_ARGUMENT,
            "clv_language_get_share: device %zu was asked for, but there are %zu, counted from 0",
            index, l->part_count);
    const clv_lm_part *p = &l->parts[index];
    const clv_language_share all = {
        .size = sizeof all,
        .device = clv_device_label(clv_queue_device(p->queue)),
        .first = p->first,
        .layers = p->count,
        .weight_bytes = p->weight_bytes,
        .cache_bytes = p->count * clv_lm_cache_bytes(&l->model->config, l->half),
        .bytes_s = l->speeds[index],
        .int8 = p->int8,
    };
    return give("clv_language_get_share", &all, sizeof all, share);
}

const clv_tokenizer *clv_language_tokenizer(const clv_language *l)
{
    return l ? l->model->tokenizer : NULL;
}
