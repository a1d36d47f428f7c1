/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the linear layer of a classifier from a model folder, and computes the probabilities of classes. */
#include <cleave/classes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "host/model/model.h"
#include "runtime/blas/gemm.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

struct clv_classes {
    clv_model_config config;
    /* [D, D], transposed; NULL: no pooler, `weight` applies to the encoder's vectors */
    float *pooler_weight;
    const float *pooler_bias; /* [D]; borrowed from the model, or own_bias */
    float *own_bias;
    clv_step_function function; /* applied after the pooler, before `weight` */
    float *weight, *bias;       /* weight: [D, count], transposed; bias: [count] */
    char **names;
    size_t count;
};

enum { MOST_CLASSES = 1 << 20 };

/* The classifiers of transformers: a layer of width D on the first token's vector, an activation function, and the
 * layer of the classes. */
static const struct {
    const char *kind;
    const char *hidden; /* the layer of width D; NULL: the model's pooler */
    clv_step_function function;
    const char *layer;
} heads[] = {
    [CLV_MODEL_BERT] = { "BertForSequenceClassification", NULL, CLV_STEP_TANH, "classifier" },
    [CLV_MODEL_DISTILBERT] = { "DistilBertForSequenceClassification", "pre_classifier",
                               CLV_STEP_RELU, "classifier" },
    [CLV_MODEL_ELECTRA] = { "ElectraForSequenceClassification", "classifier.dense", CLV_STEP_GELU,
                            "classifier.out_proj" },
    [CLV_MODEL_ROBERTA] = { "RobertaForSequenceClassification", "classifier.dense", CLV_STEP_TANH,
                            "classifier.out_proj" },
    [CLV_MODEL_MPNET] = { "MPNetForSequenceClassification", "classifier.dense", CLV_STEP_TANH,
                          "classifier.out_proj" },
    [CLV_MODEL_ALBERT] = { "AlbertForSequenceClassification", NULL, CLV_STEP_TANH, "classifier" },
};

/* ---- the layer ----------------------------------------------------------------------------- */

static clv_status check_shapes(const char *path, const char *name, size_t width,
                               const clv_tensor *weight, const clv_tensor *bias)
{
    if (!weight || !bias)
        return clv_fail(CLV_E_FORMAT,
                        "%s: there is no tensor \"%s.%s\", so the model cannot classify; give a "
                        "model that was trained on classes (`cleave finetune` makes one)",
                        path, name, weight ? "bias" : "weight");
    if (weight->rank != 2 || weight->shape[1] != width || !weight->shape[0] ||
        weight->shape[0] > MOST_CLASSES)
        return clv_fail(CLV_E_FORMAT,
                        "%s: \"%s.weight\" is %zux%zu (rank %zu), expected classes x %zu", path,
                        name, weight->rank > 0 ? weight->shape[0] : 0,
                        weight->rank > 1 ? weight->shape[1] : 0, weight->rank, width);
    if (bias->rank != 1 || bias->shape[0] != weight->shape[0])
        return clv_fail(CLV_E_FORMAT, "%s: \"%s.bias\" has %zu numbers, expected %zu", path, name,
                        bias->count, weight->shape[0]);
    if (weight->type > CLV_TENSOR_BF16 || bias->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT,
                        "%s: \"%s.weight\" is of type %s and its bias of type %s; expected F32, "
                        "F16, BF16 or F64",
                        path, name, weight->type_name, bias->type_name);
    return CLV_OK;
}

/* Checks that the model assigns one class to each text, according to config.json. */
static clv_status check_task(const char *config, const clv_json *root, const char *expected,
                             size_t classes)
{
    const clv_json *kinds = clv_json_get(root, "architectures");
    const char *problem = clv_json_string(clv_json_get(root, "problem_type"), "");
    bool fits = !clv_json_count(kinds);
    for (size_t i = 0; i < clv_json_count(kinds) && clv_json_is_array(kinds); ++i)
        fits |= !strcmp(clv_json_string(clv_json_at(kinds, i), ""), expected) ||
                /* XLM-RoBERTa is RoBERTa under another name */
                (!strncmp(clv_json_string(clv_json_at(kinds, i), ""), "XLM", 3) &&
                 !strcmp(clv_json_string(clv_json_at(kinds, i), "") + 3,
                         "RobertaForSequenceClassification") &&
                 !strcmp(expected, "RobertaForSequenceClassification"));
    if (!fits)
        return clv_fail(CLV_E_FORMAT, "%s: architectures: %.60s, expected %s", config,
                        clv_json_string(clv_json_at(kinds, 0), "no names"), expected);
    if (*problem && strcmp(problem, "single_label_classification") != 0 &&
        (classes > 1 || strcmp(problem, "regression") != 0))
        return clv_fail(CLV_E_FORMAT,
                        "%s: problem_type is %.60s, expected single_label_classification", config,
                        problem);
    return CLV_OK;
}

/* Returns `w` [rows, columns] transposed to [columns, rows], because products run along rows; NULL if memory runs out.
 * The caller owns the copy. */
static float *turned(const float *w, size_t rows, size_t columns)
{
    float *out = clv_alloc(rows * columns, sizeof *out);
    for (size_t i = 0; out && i < rows; ++i)
        for (size_t k = 0; k < columns; ++k)
            out[k * rows + i] = w[i * columns + k];
    return out;
}

static clv_status take_pooler(clv_classes *c, const char *path, const clv_model_weights *weights)
{
    if (!weights->pooler_weight || !weights->pooler_bias)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the model lacks \"%s%s\", so it may classify single tokens, which is not "
            "supported; expected %s",
            path, clv_family_prefix(c->config.family),
            c->config.family == CLV_MODEL_ALBERT ? "pooler" : "pooler.dense",
            heads[c->config.family].kind);
    c->pooler_weight = turned(weights->pooler_weight, c->config.width, c->config.width);
    if (!c->pooler_weight) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    c->pooler_bias = weights->pooler_bias;
    return CLV_OK;
}

/* The tensors of a linear layer, and the files that contain them. */
typedef struct layer {
    const clv_tensor *weight, *bias;
    const clv_tensors *weight_file, *bias_file;
} layer;

static layer find_layer(const clv_weight_files *files, const char *name)
{
    char full[64];
    layer l = { 0 };
    snprintf(full, sizeof full, "%s.weight", name);
    l.weight = clv_weight_files_find(files, full, &l.weight_file);
    snprintf(full, sizeof full, "%s.bias", name);
    l.bias = clv_weight_files_find(files, full, &l.bias_file);
    return l;
}

/* Reads a layer: its matrix, transposed, and its bias. The caller owns both, *bias also after a failure. */
static clv_status read_numbers(const layer *l, const char *path, float **weight, float **bias)
{
    const size_t count = l->weight->shape[0];
    float *rows = clv_alloc(l->weight->count, sizeof *rows);
    *bias = clv_alloc(count, sizeof **bias);
    clv_status status = CLV_OK;
    if (!rows || !*bias)
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu classes", path, count);
    if (!status)
        status = clv_tensors_read_f32(l->weight_file, l->weight, 0, l->weight->count, rows);
    if (!status) status = clv_tensors_read_f32(l->bias_file, l->bias, 0, l->bias->count, *bias);
    if (!status) {
        clv_weights_warn(path, l->weight->name, rows, l->weight->count);
        clv_weights_warn(path, l->bias->name, *bias, l->bias->count);
        *weight = turned(rows, count, l->weight->shape[1]);
        if (!*weight)
            status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu classes", path, count);
    }
    clv_free(rows);
    return status;
}

/* Reads the layer of width D that precedes the layer of the classes in the model's family. */
static clv_status read_hidden(clv_classes *c, const clv_weight_files *files,
                              const clv_model_weights *weights)
{
    const char *name = heads[c->config.family].hidden, *path = clv_weight_files_path(files);
    const size_t width = c->config.width;
    c->config.pooling = CLV_MODEL_CLS;
    c->function = heads[c->config.family].function;
    if (!name) return take_pooler(c, path, weights);
    const layer l = find_layer(files, name);
    CLV_TRY(check_shapes(path, name, width, l.weight, l.bias));
    if (l.weight->shape[0] != width)
        return clv_fail(CLV_E_FORMAT, "%s: \"%s.weight\" has %zu rows, expected %zu", path, name,
                        l.weight->shape[0], width);
    const clv_status status = read_numbers(&l, path, &c->pooler_weight, &c->own_bias);
    c->pooler_bias = c->own_bias;
    return status;
}

static clv_status read_layer(clv_classes *c, const clv_model *model, const char *folder,
                             const char *config, const clv_json *root)
{
    const clv_model_family family = c->config.family;
    clv_weight_files *files = NULL;
    CLV_TRY(clv_weight_files_open(folder, &files));
    const char *path = clv_weight_files_path(files), *name = heads[family].layer;
    const layer l = find_layer(files, name);
    clv_status status = check_shapes(path, name, c->config.width, l.weight, l.bias);
    /* Classifiers of transformers put a prefix before the names of the encoder's tensors. Linear heads of this library
     * and models of sentence-transformers have no prefix; they belong to the family BERT. */
    if (!status &&
        (family != CLV_MODEL_BERT || clv_weight_files_prefixed(files, clv_family_prefix(family)))) {
        status = check_task(config, root, heads[family].kind, l.weight->shape[0]);
        if (!status) status = read_hidden(c, files, clv_model_get_weights(model));
    }
    if (!status) c->count = l.weight->shape[0];
    if (!status) status = read_numbers(&l, path, &c->weight, &c->bias);
    clv_weight_files_close(files);
    return status;
}

/* ---- the names ----------------------------------------------------------------------------- */

static clv_status take_names(clv_classes *c, const char *path, const clv_json *root)
{
    const clv_json *names = clv_json_get(root, "id2label");
    const bool none = clv_folder_absent(names);
    if (!none && !clv_json_is_object(names))
        return clv_fail(CLV_E_FORMAT, "%s: id2label is %s, expected an object", path,
                        clv_folder_kind(names));
    if (!none && clv_json_count(names) != c->count)
        return clv_fail(CLV_E_FORMAT,
                        "%s: id2label has %zu names, but model.safetensors has %zu classes", path,
                        clv_json_count(names), c->count);
    c->names = clv_zalloc(c->count, sizeof *c->names);
    for (size_t i = 0; c->names && i < c->count; ++i) {
        char number[32], made[32];
        snprintf(number, sizeof number, "%zu", i);
        snprintf(made, sizeof made, "LABEL_%zu", i);
        const char *name = none ? made : clv_json_string(clv_json_get(names, number), NULL);
        if (!name) return clv_fail(CLV_E_FORMAT, "%s: id2label has no name for class %zu", path, i);
        c->names[i] = clv_strdup(name);
        if (!c->names[i]) break;
    }
    return c->names && c->names[c->count - 1]
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu names", path, c->count);
}

clv_status clv_classes_open(const clv_model *model, const char *folder, clv_classes **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_classes_open: out is NULL");
    *out = NULL;
    if (!model || !folder) return clv_fail(CLV_E_ARGUMENT, "clv_classes_open: an argument is NULL");
    clv_json *root = NULL;
    clv_classes *c = clv_zalloc(1, sizeof *c);
    char *inside = NULL, *config = NULL;
    clv_status status = c ? clv_folder_transformer(folder, &inside)
                          : clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status && !(config = clv_folder_path(inside, "config.json")))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status) status = clv_folder_json(inside, "config.json", true, &root);
    if (!status) {
        c->config = *clv_model_get_config(model);
        c->config.normalize = false;
        c->config.joined_count = c->config.step_count = 0; /* no modules run after the pooling */
        c->config.steps = NULL;
        c->config.output = c->config.width;
        status = read_layer(c, model, inside, config, root);
    }
    if (!status) status = take_names(c, config, root);
    clv_json_free(root);
    clv_free(config), clv_free(inside);
    if (status)
        clv_classes_close(c);
    else
        *out = c;
    return status;
}

void clv_classes_close(clv_classes *c)
{
    if (!c) return;
    for (size_t i = 0; c->names && i < c->count; ++i)
        clv_free(c->names[i]);
    clv_free(c->names), clv_free(c->weight), clv_free(c->bias), clv_free(c->pooler_weight);
    clv_free(c->own_bias);
    clv_free(c);
}

size_t clv_classes_count(const clv_classes *c)
{
    return c->count;
}

const char *clv_classes_name(const clv_classes *c, size_t index)
{
    return index < c->count ? c->names[index] : NULL;
}

const clv_model_config *clv_classes_get_config(const clv_classes *c)
{
    return &c->config;
}

/* ---- the probabilities --------------------------------------------------------------------- */

static float apply(float x, clv_step_function function)
{
    if (function == CLV_STEP_TANH) return tanhf(x);
    if (function == CLV_STEP_RELU) return x > 0 || isnan(x) ? x : 0;
    return (float)(0.5 * (double)x * erfc(-(double)x * 0.70710678118654752)); /* GELU */
}

static void softmax(float *scores, size_t count)
{
    float most = scores[0];
    double sum = 0;
    for (size_t i = 1; i < count; ++i)
        most = fmaxf(most, scores[i]);
    for (size_t i = 0; i < count; ++i)
        sum += exp((double)scores[i] - (double)most);
    for (size_t i = 0; i < count; ++i)
        scores[i] = (float)(exp((double)scores[i] - (double)most) / sum);
}

clv_status clv_classes_probabilities(const clv_classes *c, const float *vectors, size_t texts,
                                     float *probabilities)
{
    CLV_TRY(clv_classes_scores(c, vectors, texts, probabilities));
    for (size_t t = 0; t < texts; ++t)
        softmax(probabilities + t * c->count, c->count);
    return CLV_OK;
}

clv_status clv_classes_scores(const clv_classes *c, const float *vectors, size_t texts,
                              float *scores)
{
    if (!c || (texts && (!vectors || !scores)))
        return clv_fail(CLV_E_ARGUMENT, "clv_classes_scores: an argument is NULL");
    enum { AT_ONCE = 256 };
    const size_t d = c->config.width, most = CLV_MIN(texts, (size_t)AT_ONCE);
    float *pooled =
        c->pooler_weight ? clv_alloc(CLV_MAX(most, (size_t)1) * d, sizeof *pooled) : NULL;
    if (c->pooler_weight && !pooled)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu pooled texts", most);
    for (size_t t = 0; t < texts; t += AT_ONCE) {
        const size_t rows = CLV_MIN(texts - t, (size_t)AT_ONCE);
        const float *v = vectors + t * d;
        if (pooled) {
            clv_linear_host(v, rows, d, c->pooler_weight, c->pooler_bias, d, pooled);
            for (size_t i = 0; i < rows * d; ++i)
                pooled[i] = apply(pooled[i], c->function);
            v = pooled;
        }
        clv_linear_host(v, rows, d, c->weight, c->bias, c->count, scores + t * c->count);
    }
    clv_free(pooled);
    return CLV_OK;
}
