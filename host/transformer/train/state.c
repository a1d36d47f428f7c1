/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores a trainer's whole state, on which its next step depends, or saves only the weights by name. */
#include "host/transformer/train/bits.h"
#include "host/transformer/train/trainer.h"
#include "host/transformer/train/watch.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/tensors.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 3, MOST_METADATA = 64, HEX = 64 };
static const char *const block_names[BLOCKS] = { "weights", "first_moment", "second_moment" };

static void *block_of(const clv_trainer *t, size_t i)
{
    void *const blocks[BLOCKS] = { t->net.weights, t->first, t->second };
    return blocks[i];
}

/* Writes the trainer's sizes and options as a text; a state is only valid for a trainer with the same text. */
static void describe(const clv_trainer *t, char out[512])
{
    const clv_model_config *c = &t->net.config;
    const clv_trainer_options *o = &t->options;
    char blocks[32] = "";
    if (o->block_tokens) snprintf(blocks, sizeof blocks, " blocks%zu", o->block_tokens);
    clv_format(out, 512,
               "D%zu H%zu L%zu F%zu V%zu P%zu T%zu act%d pool%d eps%.9g task%d classes%zu opt%d "
               "beta%.17g,%.17g eps%.17g momentum%.17g decay%.17g,%d clip%.17g scale%.17g "
               "frozen%zu,%d%s%s",
               c->width, c->heads, c->layers, c->ffn, c->vocabulary, c->positions, c->types,
               (int)c->act, (int)c->pooling, (double)c->eps, (int)o->task, o->classes,
               (int)o->optimizer, o->beta1, o->beta2, o->eps, o->momentum, o->decay, o->decay_all,
               o->clip, o->scale, o->frozen_layers, o->frozen_embedding,
               clv_head_has_pooler(t) ? " pooler" : "", blocks);
}

/* Returns the digest of the frozen parameters; a state contains this digest, but not the parameters. */
static const char *digest_of_rest(clv_trainer *t)
{
    const float *values;
    (void)clv_model_parameters(t->model, &values);
    if (!t->frozen[0]) {
        const clv_digest digest = clv_sha256(values, t->net.base * sizeof *values);
        clv_digest_hex(&digest, t->frozen);
    }
    return t->frozen;
}

/* Writes the digest of a block's numbers. */
static void sum_block(const clv_trainer *t, const float *values, char hex[HEX + 1])
{
    const clv_digest digest = clv_sha256(values, t->count * sizeof *values);
    clv_digest_hex(&digest, hex);
}

static clv_status write_state(clv_trainer *t, float *const *host, const char *path,
                              const char *const *metadata)
{
    char rules[512], steps[24], sums[BLOCKS * HEX + 1] = "";
    const char *all[2 * MOST_METADATA + 1];
    clv_tensor_source sources[BLOCKS];
    size_t used = 0, pairs = 0;
    describe(t, rules);
    snprintf(steps, sizeof steps, "%" PRIu64, t->steps);
    for (size_t i = 0; i < BLOCKS; ++i)
        if (host[i]) sum_block(t, host[i], sums + strlen(sums));
    const char *const own[] = { "cleave.rules", rules,
                                "cleave.steps", steps,
                                "cleave.stays", digest_of_rest(t),
                                "cleave.sums",  sums };
    for (; pairs < CLV_LEN(own); ++pairs)
        all[pairs] = own[pairs];
    for (; metadata && metadata[0] && metadata[1]; metadata += 2) {
        if (pairs + 2 >= CLV_LEN(all))
            return clv_fail(CLV_E_ARGUMENT, "%s: there are more than %d entries of metadata", path,
                            MOST_METADATA - 2);
        all[pairs++] = metadata[0], all[pairs++] = metadata[1];
    }
    all[pairs] = NULL;
    for (size_t i = 0; i < BLOCKS; ++i)
        if (host[i])
            sources[used++] = (clv_tensor_source){ .name = block_names[i],
                                                   .type = CLV_TENSOR_F32,
                                                   .rank = 1,
                                                   .shape = { t->count },
                                                   .data = host[i] };
    return clv_tensors_write(path, sources, used, all);
}

clv_status clv_trainer_save(clv_trainer *t, const char *path, const char *const *metadata)
{
    float *host[BLOCKS] = { NULL };
    clv_bits found = { 0 };
    clv_status status = CLV_OK;
    if (!t || !path) return clv_fail(CLV_E_ARGUMENT, "trainer: a NULL");
    for (size_t i = 0; i < BLOCKS && !status; ++i) {
        if (!block_of(t, i)) continue;
        host[i] = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *host[i]);
        status = host[i] ? t->ops->get(t->ops, (clv_mem){ block_of(t, i), 0 }, host[i], t->count)
                         : clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu weights", path,
                                    t->count);
        if (!status && !clv_watch_fits(t, i, 0, host[i], t->count))
            status = clv_watch_fail(t, "Nothing is written.");
        if (!status) clv_bits_add(i, host[i], t->count, &found);
    }
    if (!status && !clv_bits_fit(t, &found))
        status = clv_bits_fail(t, t->steps, "Nothing is written.");
    if (!status) status = write_state(t, host, path, metadata);
    for (size_t i = 0; i < BLOCKS; ++i)
        clv_free(host[i]);
    return status;
}

/* Checks everything in a state before any of it is used. */
static clv_status check_state(clv_trainer *t, const clv_tensors *file, const char *path,
                              uint64_t *steps)
{
    char rules[512];
    const char *found = clv_tensors_metadata(file, "cleave.rules");
    const char *count = clv_tensors_metadata(file, "cleave.steps");
    describe(t, rules);
    if (!found || !count || !clv_parse_u64(count, steps))
        return clv_fail(CLV_E_FORMAT, "%s is not the state of a training run", path);
    if (strcmp(found, rules) != 0)
        return clv_fail(
            CLV_E_FORMAT,
            "%s belongs to another model or other options: it has \"%s\", expected \"%s\"", path,
            found, rules);
    const char *rest = clv_tensors_metadata(file, "cleave.stays");
    if (t->net.base && (!rest || strcmp(rest, digest_of_rest(t)) != 0))
        return clv_fail(CLV_E_FORMAT, "%s belongs to a model with different frozen weights", path);
    for (size_t i = 0; i < BLOCKS; ++i) {
        const clv_tensor *tensor = clv_tensors_find(file, block_names[i]);
        if (block_of(t, i) &&
            (!tensor || tensor->type != CLV_TENSOR_F32 || tensor->count != t->count))
            return clv_fail(CLV_E_FORMAT, "%s: there is no tensor \"%s\" of %zu numbers", path,
                            block_names[i], t->count);
    }
    return CLV_OK;
}

/* Compares the numbers in a state with their digests; a state of version 0.2.0 or earlier has no digests. */
static clv_status check_sums(const clv_trainer *t, const clv_tensors *file, const char *path,
                             float *host)
{
    char hex[HEX + 1];
    const char *sums = clv_tensors_metadata(file, "cleave.sums");
    for (size_t i = 0; i < BLOCKS && sums; ++i) {
        if (!block_of(t, i)) continue;
        CLV_TRY(
            clv_tensors_read_f32(file, clv_tensors_find(file, block_names[i]), 0, t->count, host));
        sum_block(t, host, hex);
        if (strncmp(sums, hex, HEX) != 0)
            return clv_fail(CLV_E_FORMAT,
                            "%s is damaged: its tensor \"%s\" does not have the digest that was "
                            "written with it; use another checkpoint",
                            path, block_names[i]);
        sums += HEX;
    }
    return CLV_OK;
}

static clv_status read_state(clv_trainer *t, const clv_tensors *file, const char *path)
{
    uint64_t steps;
    CLV_TRY(check_state(t, file, path, &steps));
    float *host = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *host);
    clv_status status =
        host ? CLV_OK
             : clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu weights", path, t->count);
    if (!status) status = check_sums(t, file, path, host);
    for (size_t i = 0; i < BLOCKS && !status; ++i) {
        if (!block_of(t, i)) continue;
        status =
            clv_tensors_read_f32(file, clv_tensors_find(file, block_names[i]), 0, t->count, host);
        if (!status) status = t->ops->put(t->ops, (clv_mem){ block_of(t, i), 0 }, host, t->count);
        if (!i) clv_bits_note_rest(t, host);
    }
    clv_free(host);
    if (!status) t->steps = steps;
    t->looked = t->lost = t->summed = false; /* no check or sum exists for these weights */
    return status;
}

clv_status clv_trainer_restore(clv_trainer *t, const char *path)
{
    clv_tensors *file = NULL;
    if (!t || !path) return clv_fail(CLV_E_ARGUMENT, "trainer: a NULL");
    clv_status status = clv_tensors_open(path, &file);
    if (!status) status = read_state(t, file, path);
    clv_tensors_close(file);
    return status;
}

/* Returns the pointer into the block `to` that corresponds to `pointer` in the block `from`; returns a pointer that
 * lies before `from` unchanged. */
static const float *moved(const float *pointer, const float *from, const float *to)
{
    return pointer && pointer >= from ? to + (pointer - from) : pointer;
}

static void move_weights(const clv_model_weights *from, const float *old, const float *now,
                         size_t layers, clv_model_weights *to, clv_model_layer *layer)
{
    enum { POINTERS = sizeof(clv_model_layer) / sizeof(const float *) };
    _Static_assert(sizeof(clv_model_layer) == POINTERS * sizeof(const float *), "pointers only");
    *to = (clv_model_weights){ .size = sizeof(clv_model_weights),
                               .word = moved(from->word, old, now),
                               .position = moved(from->position, old, now),
                               .type = moved(from->type, old, now),
                               .norm_weight = moved(from->norm_weight, old, now),
                               .norm_bias = moved(from->norm_bias, old, now),
                               .layer = layer,
                               .pooler_weight = moved(from->pooler_weight, old, now),
                               .pooler_bias = moved(from->pooler_bias, old, now) };
    for (size_t i = 0; i < layers; ++i) {
        const float *pointers[POINTERS];
        memcpy(pointers, &from->layer[i], sizeof pointers);
        for (size_t k = 0; k < POINTERS; ++k)
            pointers[k] = moved(pointers[k], old, now);
        memcpy(&layer[i], pointers, sizeof pointers);
    }
}

clv_status clv_trainer_write(clv_trainer *t, const char *path, const char *const *metadata)
{
    if (!t || !path) return clv_fail(CLV_E_ARGUMENT, "trainer: a NULL");
    const float *old;
    const size_t layers = t->net.config.layers, classes = t->options.classes;
    clv_model_weights weights;
    clv_bits found = { 0, t->kept.moments }; /* this function reads the weights only */
    (void)clv_model_parameters(t->model, &old);
    float *now = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *now);
    clv_model_layer *layer = clv_alloc(layers + 1, sizeof *layer);
    clv_status status = now && layer ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    if (!status) status = t->ops->get(t->ops, (clv_mem){ t->net.weights, 0 }, now, t->count);
    if (!status && !clv_watch_fits(t, 0, 0, now, t->count))
        status = clv_watch_fail(t, "Nothing is written.");
    if (!status) clv_bits_add(0, now, t->count, &found);
    if (!status && !clv_bits_fit(t, &found))
        status = clv_bits_fail(t, t->steps, "Nothing is written.");
    if (!status) {
        const clv_tensor_source head[] = {
            { .name = "classifier.weight",
              .type = CLV_TENSOR_F32,
              .rank = 2,
              .shape = { classes, t->net.config.width },
              .data = now + t->head },
            { .name = "classifier.bias",
              .type = CLV_TENSOR_F32,
              .rank = 1,
              .shape = { classes },
              .data = now + t->head_bias },
        };
        move_weights(clv_model_get_weights(t->model), old + t->net.base, now, layers, &weights,
                     layer);
        if (clv_head_has_pooler(t)) {
            weights.pooler_weight = now + t->pooler;
            weights.pooler_bias = now + t->pooler_bias;
        }
        status = clv_model_write_as(t->model, &weights, clv_head_has_pooler(t) ? "bert." : "", head,
                                    classes ? CLV_LEN(head) : 0, path, metadata);
    }
    clv_free(now), clv_free(layer);
    return status;
}
