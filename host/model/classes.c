/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layer of a classifier: reading it from a model folder, and its probabilities. */
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
    float *pooler_weight;     /* [D, D], transposed; NULL: the layer takes the encoder's vectors */
    const float *pooler_bias; /* owned by the model */
    float *weight, *bias;     /* [D, count], transposed; [count] */
    char **names;
    size_t count;
};

enum { MOST_CLASSES = 1 << 20 };

/* ---- the layer ----------------------------------------------------------------------------- */

static clv_status check_shapes(const char *path, size_t width, const clv_tensor *weight,
                               const clv_tensor *bias)
{
    if (!weight || !bias)
        return clv_fail(CLV_E_FORMAT,
                        "%s: no tensor \"classifier.%s\": nothing that tells classes; expected a "
                        "model that learnt them (`cleave finetune`)",
                        path, weight ? "bias" : "weight");
    if (weight->rank != 2 || weight->shape[1] != width || !weight->shape[0] ||
        weight->shape[0] > MOST_CLASSES)
        return clv_fail(CLV_E_FORMAT,
                        "%s: \"classifier.weight\" is %zux%zu (rank %zu), expected classes x %zu",
                        path, weight->rank > 0 ? weight->shape[0] : 0,
                        weight->rank > 1 ? weight->shape[1] : 0, weight->rank, width);
    if (bias->rank != 1 || bias->shape[0] != weight->shape[0])
        return clv_fail(CLV_E_FORMAT, "%s: \"classifier.bias\" has %zu numbers, expected %zu", path,
                        bias->count, weight->shape[0]);
    if (weight->type > CLV_TENSOR_BF16 || bias->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_FORMAT,
                        "%s: \"classifier\" is %s and %s, expected F32, F16, BF16 or F64", path,
                        weight->type_name, bias->type_name);
    return CLV_OK;
}

/* Tells whether the file is a classifier of transformers, which prefixes the encoder's names with "bert."; those of
 * this library and of sentence-transformers do not. */
static bool is_of_transformers(const clv_tensors *file)
{
    for (size_t i = 0; i < clv_tensors_count(file); ++i)
        if (!strncmp(clv_tensors_at(file, i)->name, "bert.", 5)) return true;
    return false;
}

/* Checks that by config.json the model assigns one class to each text. */
static clv_status check_task(const char *config, const clv_json *root, size_t classes)
{
    static const char expected[] = "BertForSequenceClassification";
    const clv_json *kinds = clv_json_get(root, "architectures");
    const char *problem = clv_json_string(clv_json_get(root, "problem_type"), "");
    bool fits = !clv_json_count(kinds);
    for (size_t i = 0; i < clv_json_count(kinds) && clv_json_is_array(kinds); ++i)
        fits |= !strcmp(clv_json_string(clv_json_at(kinds, i), ""), expected);
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

/* Transposes [rows, columns] to [columns, rows], because products run along rows. NULL without memory. */
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
        return clv_fail(CLV_E_FORMAT,
                        "%s: a classifier of transformers without \"bert.pooler.dense\", as those "
                        "of tokens are; expected BertForSequenceClassification",
                        path);
    c->pooler_weight = turned(weights->pooler_weight, c->config.width, c->config.width);
    if (!c->pooler_weight) return clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    c->pooler_bias = weights->pooler_bias;
    c->config.pooling = CLV_MODEL_CLS;
    return CLV_OK;
}

static clv_status read_numbers(clv_classes *c, const clv_tensors *file, const char *path,
                               const clv_tensor *weight, const clv_tensor *bias)
{
    float *rows = clv_alloc(weight->count, sizeof *rows);
    c->count = weight->shape[0];
    c->bias = clv_alloc(c->count, sizeof *c->bias);
    clv_status status = CLV_OK;
    if (!rows || !c->bias)
        status = clv_fail(CLV_E_MEMORY, "%s: no memory for %zu classes", path, c->count);
    if (!status) status = clv_tensors_read_f32(file, weight, 0, weight->count, rows);
    if (!status) status = clv_tensors_read_f32(file, bias, 0, bias->count, c->bias);
    if (!status) {
        clv_weights_warn(path, weight->name, rows, weight->count);
        clv_weights_warn(path, bias->name, c->bias, bias->count);
        c->weight = turned(rows, c->count, c->config.width);
        if (!c->weight)
            status = clv_fail(CLV_E_MEMORY, "%s: no memory for %zu classes", path, c->count);
    }
    clv_free(rows);
    return status;
}

static clv_status read_layer(clv_classes *c, const clv_model *model, const char *path,
                             const char *config, const clv_json *root)
{
    clv_tensors *file = NULL;
    CLV_TRY(clv_tensors_open(path, &file));
    const clv_tensor *weight = clv_tensors_find(file, "classifier.weight");
    const clv_tensor *bias = clv_tensors_find(file, "classifier.bias");
    clv_status status = check_shapes(path, c->config.width, weight, bias);
    if (!status && is_of_transformers(file)) {
        status = check_task(config, root, weight->shape[0]);
        if (!status) status = take_pooler(c, path, clv_model_get_weights(model));
    }
    if (!status) status = read_numbers(c, file, path, weight, bias);
    clv_tensors_close(file);
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
        return clv_fail(CLV_E_FORMAT, "%s: id2label has %zu names, model.safetensors %zu classes",
                        path, clv_json_count(names), c->count);
    c->names = clv_zalloc(c->count, sizeof *c->names);
    for (size_t i = 0; c->names && i < c->count; ++i) {
        char number[32], made[32];
        snprintf(number, sizeof number, "%zu", i);
        snprintf(made, sizeof made, "LABEL_%zu", i);
        const char *name = none ? made : clv_json_string(clv_json_get(names, number), NULL);
        if (!name) return clv_fail(CLV_E_FORMAT, "%s: id2label: no name for class %zu", path, i);
        c->names[i] = clv_strdup(name);
        if (!c->names[i]) break;
    }
    return c->names && c->names[c->count - 1]
               ? CLV_OK
               : clv_fail(CLV_E_MEMORY, "%s: no memory for %zu names", path, c->count);
}

clv_status clv_classes_open(const clv_model *model, const char *folder, clv_classes **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_classes_open: out is NULL");
    *out = NULL;
    if (!model || !folder) return clv_fail(CLV_E_ARGUMENT, "clv_classes_open: a NULL");
    clv_json *root = NULL;
    clv_classes *c = clv_zalloc(1, sizeof *c);
    char *config = clv_folder_path(folder, "config.json");
    char *weights = clv_folder_path(folder, "model.safetensors");
    clv_status status =
        c && config && weights ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: no memory", folder);
    if (!status) status = clv_folder_json(folder, "config.json", true, &root);
    if (!status) {
        c->config = *clv_model_get_config(model);
        c->config.normalize = false;
        status = read_layer(c, model, weights, config, root);
    }
    if (!status) status = take_names(c, config, root);
    clv_json_free(root);
    clv_free(config), clv_free(weights);
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

/* y [rows, n] = x [rows, k] w [k, n] + b. */
static void linear(const float *x, size_t rows, size_t k, const float *w, const float *b, size_t n,
                   float *y)
{
    const clv_host_gemm g = { .m = rows,
                              .n = n,
                              .k = k,
                              .a = x,
                              .a_row = k,
                              .a_col = 1,
                              .b = w,
                              .b_row = n,
                              .b_col = 1,
                              .c = y,
                              .c_row = n,
                              .c_col = 1,
                              .alpha = 1,
                              .bias = b };
    clv_gemm_host(&g);
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
        return clv_fail(CLV_E_ARGUMENT, "clv_classes_scores: a NULL");
    enum { AT_ONCE = 256 };
    const size_t d = c->config.width, most = CLV_MIN(texts, (size_t)AT_ONCE);
    float *pooled =
        c->pooler_weight ? clv_alloc(CLV_MAX(most, (size_t)1) * d, sizeof *pooled) : NULL;
    if (c->pooler_weight && !pooled)
        return clv_fail(CLV_E_MEMORY, "no memory for %zu pooled texts", most);
    for (size_t t = 0; t < texts; t += AT_ONCE) {
        const size_t rows = CLV_MIN(texts - t, (size_t)AT_ONCE);
        const float *v = vectors + t * d;
        if (pooled) {
            linear(v, rows, d, c->pooler_weight, c->pooler_bias, d, pooled);
            for (size_t i = 0; i < rows * d; ++i)
                pooled[i] = tanhf(pooled[i]);
            v = pooled;
        }
        linear(v, rows, d, c->weight, c->bias, c->count, scores + t * c->count);
    }
    clv_free(pooled);
    return CLV_OK;
}
