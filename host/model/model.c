/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the weights of a model folder by name into one block of memory, makes random weights, and writes weights to a
 * file. */
#include "host/model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- finding them in a file ---------------------------------------------------------------- */

/* The prefixes of weights' names. Models of transformers have none or that of their family; the others come from models
 * that were saved as modules of PyTorch. */
static const char *const other_prefixes[] = { "0.auto_model.", "model." };

/* Finds a weight by its name, by its name with a prefix, or, for a layer norm's two weights, by their old names. *twin
 * is another tensor that could be meant; NULL: there is none. */
static const clv_tensor *find(const clv_weight_files *files, clv_model_family family,
                              const char *name, const clv_tensors **file, const clv_tensor **twin)
{
    const char *const prefixes[] = { "", clv_family_prefix(family), other_prefixes[0],
                                     other_prefixes[1] };
    const char *norm = strstr(name, "LayerNorm.");
    const int start = norm ? (int)(norm - name) + (int)strlen("LayerNorm.") : 0;
    const clv_tensor *found = NULL;
    *twin = NULL;
    for (size_t i = 0; i < CLV_LEN(prefixes) * (norm ? 2 : 1) && !*twin; ++i) {
        const clv_tensors *where;
        const bool old = i >= CLV_LEN(prefixes);
        char full[160];
        snprintf(full, sizeof full, "%s%.*s%s", prefixes[i % CLV_LEN(prefixes)],
                 old ? start : (int)strlen(name), name,
                 !old                                  ? ""
                 : strcmp(name + start, "weight") == 0 ? "gamma"
                                                       : "beta");
        const clv_tensor *tensor = clv_weight_files_find(files, full, &where);
        if (tensor && found)
            *twin = tensor;
        else if (tensor)
            found = tensor, *file = where;
    }
    return found;
}

/* Fails if two tensors may be meant by one name. Warns about prefixes that transformers does not know. */
static clv_status check_name(const char *path, const clv_tensor *tensor, const clv_tensor *twin,
                             bool *warned)
{
    if (tensor && twin)
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensors \"%s\" and \"%s\" are the same weight; expected one of them",
                        path, tensor->name, twin->name);
    for (size_t i = 0; i < CLV_LEN(other_prefixes) && tensor && !*warned; ++i)
        if (strncmp(tensor->name, other_prefixes[i], strlen(other_prefixes[i])) == 0) {
            clv_log(CLV_LOG_WARN,
                    "%s: the names of tensors begin with \"%s\"; Cleave reads them, but "
                    "transformers does not find them and uses random numbers in their place",
                    path, other_prefixes[i]);
            *warned = true;
        }
    return CLV_OK;
}

static const char *shape_text(size_t rank, const size_t *shape, char out[160])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < rank; ++i)
        used += (size_t)snprintf(out + used, 160 - used, i ? ",%zu" : "%zu", shape[i]);
    return out;
}

static clv_status check(const char *path, const clv_weight *w, const clv_tensor *tensor)
{
    char wanted[160], found[160];
    if (!tensor)
        return clv_fail(CLV_E_FORMAT, "%s: there is no tensor \"%s\"; expected a tensor [%s]", path,
                        w->name, shape_text(w->rank, w->shape, wanted));
    if (tensor->rank != w->rank || memcmp(tensor->shape, w->shape, w->rank * sizeof *w->shape) != 0)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is [%s], but config.json says [%s]", path,
                        tensor->name, shape_text(tensor->rank, tensor->shape, found),
                        shape_text(w->rank, w->shape, wanted));
    if (tensor->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\" is %s, expected F32, F16, BF16 or F64",
                        path, tensor->name, tensor->type_name);
    return CLV_OK;
}

/* Lets layers that share weights point to the weights of their group's first layer. */
static void share_layers(clv_model *m)
{
    /* backwards, because a group's number is never above its layers' numbers */
    for (size_t i = m->config.layers; i-- > 0;)
        m->layers[i] = m->layers[clv_layer_of(&m->config, i)];
}

/* Allocates one block for all weights that the files contain (`files` NULL: for all weights), and sets the pointers
 * into it. */
static clv_status place(clv_model *m, const clv_weight_files *files, const char *path)
{
    clv_weight w;
    const clv_tensors *file;
    const clv_tensor *twin = NULL;
    bool warned = false;
    size_t total = 0, at = 0;
    m->layers = clv_zalloc(m->config.layers, sizeof *m->layers);
    if (!m->layers) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    m->weights.size = sizeof m->weights;
    m->weights.layer = m->layers;
    const size_t count = clv_weights_count(&m->config);
    for (size_t i = 0; i < count; ++i) { /* checks all weights before allocating */
        if (!clv_weights_at(&m->config, &m->weights, m->layers, i, &w)) continue;
        const bool in_file = files && !w.made;
        const clv_tensor *tensor =
            in_file ? find(files, m->config.family, w.name, &file, &twin) : NULL;
        if (in_file && !tensor && w.optional) continue;
        CLV_TRY(check_name(path, tensor, twin, &warned));
        if (in_file) CLV_TRY(check(path, &w, tensor));
        if (!clv_size_add(total, clv_weight_elements(&w), &total))
            return clv_fail(CLV_E_MEMORY, "%s: the weights need more memory than can be addressed",
                            path);
    }
    size_t bytes;
    const uint64_t there = clv_memory_most();
    if (!clv_size_mul(total, sizeof(float), &bytes) || bytes > there ||
        !(m->block = clv_alloc_pages(bytes))) {
        char free_now[16];
        return clv_fail(CLV_E_MEMORY,
                        "%s: not enough memory for %zu weights of 4 bytes each: only %s are free",
                        path, total, clv_format_bytes(there, free_now));
    }
    m->block_count = total;
    for (size_t i = 0; i < count; ++i) {
        if (!clv_weights_at(&m->config, &m->weights, m->layers, i, &w)) continue;
        if (files && !w.made && !find(files, m->config.family, w.name, &file, &twin)) continue;
        *w.slot = m->block + at;
        if (w.made) memset(m->block + at, 0, clv_weight_elements(&w) * sizeof(float));
        at += clv_weight_elements(&w);
    }
    return CLV_OK;
}

static clv_status read_weights(clv_model *m, const char *folder)
{
    clv_weight_files *files = NULL;
    const clv_tensors *file;
    const clv_tensor *twin;
    clv_weight w;
    CLV_TRY(clv_weight_files_open(folder, &files));
    const char *path = clv_weight_files_path(files), *lora = clv_weight_files_with(files, ".lora_");
    clv_status status = CLV_OK;
    if (lora)
        status = clv_fail(CLV_E_FORMAT,
                          "%s: tensor \"%s\" belongs to an adapter (LoRA), which is not supported; "
                          "expected a model without it (peft's merge_and_unload makes one)",
                          path, lora);
    if (!status) status = place(m, files, path);
    for (size_t i = 0; !status && i < clv_weights_count(&m->config); ++i) {
        if (!clv_weights_at(&m->config, &m->weights, m->layers, i, &w) || !*w.slot || w.made)
            continue;
        float *values = m->block + (*w.slot - m->block);
        const clv_tensor *tensor = find(files, m->config.family, w.name, &file, &twin);
        status = clv_tensors_read_f32(file, tensor, 0, clv_weight_elements(&w), values);
        if (!status) clv_weights_warn(path, w.name, values, clv_weight_elements(&w));
    }
    if (!status) share_layers(m);
    clv_weight_files_close(files);
    return status;
}

clv_status clv_model_open(const char *folder, clv_model **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_model_open: out is NULL");
    *out = NULL;
    if (!folder) return clv_fail(CLV_E_ARGUMENT, "clv_model_open: folder is NULL");
    clv_json *root = NULL;
    clv_model *m = clv_zalloc(1, sizeof *m);
    char *inside = NULL, *config = NULL;
    clv_status status = m ? clv_folder_transformer(folder, &inside)
                          : clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status && !(config = clv_folder_path(inside, "config.json")))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status) status = clv_folder_json(inside, "config.json", true, &root);
    if (!status) status = clv_model_config_parse(config, root, &m->config);
    if (!status) status = clv_model_modules(folder, inside, &m->config, &m->steps);
    if (!status) status = clv_model_prompts(folder, &m->sentence);
    if (!status) status = clv_model_cut(folder, m->sentence, &m->config, &m->steps);
    if (!status) status = read_weights(m, inside);
    clv_json_free(root);
    clv_free(config), clv_free(inside);
    if (status)
        clv_model_close(m);
    else
        *out = m;
    return status;
}

void clv_model_close(clv_model *m)
{
    if (!m) return;
    clv_free(m->layers);
    clv_free(m->block);
    clv_model_steps_free(m->steps, m->config.step_count);
    clv_json_free(m->sentence);
    clv_free(m);
}

const clv_model_config *clv_model_get_config(const clv_model *m)
{
    return &m->config;
}

const clv_model_weights *clv_model_get_weights(const clv_model *m)
{
    return &m->weights;
}

size_t clv_model_parameters(const clv_model *m, const float **first)
{
    if (first) *first = m->block;
    return m->block_count;
}

/* ---- made and written ---------------------------------------------------------------------- */

/* Returns a normally distributed number, computed from two uniform ones of SplitMix64. */
static float normal(uint64_t *state)
{
    double u[2];
    for (int i = 0; i < 2; ++i) {
        uint64_t z = *state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        u[i] = ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
    }
    return (float)(sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
}

clv_status clv_model_create_random(const clv_model_config *config, unsigned seed, clv_model **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_model_create_random: out is NULL");
    *out = NULL;
    if (!config) return clv_fail(CLV_E_ARGUMENT, "clv_model_create_random: config is NULL");
    clv_model_config own;
    CLV_TRY(
        clv_take_struct(&own, sizeof own, config, "clv_model_create_random", "clv_model_config"));
    const clv_model_config *c = &own;
    enum { MOST = 1 << 24 };
    const bool narrow = c->family == CLV_MODEL_ELECTRA || c->family == CLV_MODEL_ALBERT;
    if (c->joined_count > CLV_LEN(c->joined))
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_model_create_random: got %zu joined poolings, expected at most %zu",
                        c->joined_count, CLV_LEN(c->joined));
    if (c->embedding && !narrow)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_model_create_random: embedding is %zu, but only the families ELECTRA "
                        "and ALBERT have narrower tables; expected 0",
                        c->embedding);
    if (c->family > CLV_MODEL_ALBERT || c->embedding > MOST || c->first_position > MOST ||
        c->groups > c->layers || c->buckets > MOST || c->steps || c->step_count)
        return clv_fail(
            CLV_E_ARGUMENT,
            "clv_model_create_random: the family does not exist, or the sizes do not fit it");
    if (!c->width || !c->heads || c->width % c->heads || !c->layers || !c->ffn || !c->vocabulary ||
        !c->types || c->max_length < 2 || c->max_length > c->positions || !(c->eps > 0) ||
        c->width > MOST || c->ffn > MOST || c->vocabulary > MOST || c->positions > MOST ||
        c->types > MOST || c->layers > 4096)
        return clv_fail(CLV_E_ARGUMENT, "clv_model_create_random: the sizes do not fit together");
    clv_model *m = clv_zalloc(1, sizeof *m);
    if (!m) return clv_fail(CLV_E_MEMORY, "not enough memory for a model");
    m->config = own;
    if (!own.output) m->config.output = CLV_MAX(own.joined_count, (size_t)1) * own.width;
    const clv_status status = place(m, NULL, "random model");
    if (status) {
        clv_model_close(m);
        return status;
    }
    uint64_t state = seed;
    clv_weight w;
    for (size_t i = 0; i < clv_weights_count(c); ++i) {
        if (!clv_weights_at(c, &m->weights, m->layers, i, &w) || w.made) continue;
        float *values = m->block + (*w.slot - m->block);
        const bool norm = strstr(w.name, "LayerNorm") || strstr(w.name, "layer_norm");
        for (size_t k = 0; k < clv_weight_elements(&w); ++k)
            values[k] = !norm ? 0.02f * normal(&state) : strstr(w.name, "bias") ? 0.0f : 1.0f;
    }
    share_layers(m);
    *out = m;
    return CLV_OK;
}

clv_status clv_model_write(const clv_model *m, const clv_model_weights *weights, const char *path,
                           const char *const *metadata)
{
    return clv_model_write_with(m, weights, NULL, 0, path, metadata);
}

clv_status clv_model_write_with(const clv_model *m, const clv_model_weights *weights,
                                const clv_tensor_source *more, size_t more_count, const char *path,
                                const char *const *metadata)
{
    return clv_model_write_as(m, weights, "", more, more_count, path, metadata);
}

clv_status clv_model_write_as(const clv_model *m, const clv_model_weights *weights,
                              const char *prefix, const clv_tensor_source *more, size_t more_count,
                              const char *path, const char *const *metadata)
{
    enum { LONGEST_PREFIX = 16 };
    if (!m || !path || !prefix || (more_count && !more))
        return clv_fail(CLV_E_ARGUMENT, "clv_model_write: an argument is NULL");
    if (strlen(prefix) > LONGEST_PREFIX)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_model_write_as: the prefix has %zu bytes; expected at most %d",
                        strlen(prefix), LONGEST_PREFIX);
    clv_model_weights all = m->weights;
    if (weights)
        CLV_TRY(clv_take_struct(&all, sizeof all, weights, "clv_model_write", "clv_model_weights"));
    if (!all.layer) return clv_fail(CLV_E_ARGUMENT, "clv_model_write: weights->layer is NULL");
    const size_t count = clv_weights_count(&m->config);
    clv_weight *named_ones = clv_alloc(count, sizeof *named_ones);
    clv_tensor_source *sources = clv_zalloc(count + more_count, sizeof *sources);
    clv_model_layer *layers = clv_alloc(m->config.layers, sizeof *layers);
    clv_status status = CLV_OK;
    size_t used = 0;
    if (!named_ones || !sources || !layers) {
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
        goto cleanup;
    }
    /* backwards, so that the first layer of a group is assigned last */
    for (size_t i = m->config.layers; i-- > 0;)
        layers[clv_layer_of(&m->config, i)] = all.layer[i];
    for (size_t i = 0; i < count; ++i) {
        clv_weight *w = &named_ones[i];
        if (!clv_weights_at(&m->config, &all, layers, i, w) || w->made) continue;
        if (!*w->slot && w->optional) continue;
        if (!*w->slot) {
            status = clv_fail(CLV_E_ARGUMENT, "clv_model_write: the weights have no %s", w->name);
            goto cleanup;
        }
        const size_t before = strlen(prefix);
        memmove(w->name + before, w->name, CLV_MIN(strlen(w->name) + 1, sizeof w->name - before));
        memcpy(w->name, prefix, before);
        sources[used++] = (clv_tensor_source){ .name = w->name,
                                               .type = CLV_TENSOR_F32,
                                               .rank = w->rank,
                                               .shape = { w->shape[0], w->shape[1] },
                                               .data = *w->slot };
    }
    for (size_t i = 0; i < more_count; ++i)
        sources[used++] = more[i];
    status = clv_tensors_write(path, sources, used, metadata);
cleanup:
    clv_free(named_ones), clv_free(sources), clv_free(layers);
    return status;
}
