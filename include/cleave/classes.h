/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layer behind an encoder that tells to which class a text belongs. */
#ifndef CLEAVE_CLASSES_H
#define CLEAVE_CLASSES_H

#include <cleave/export.h>
#include <cleave/model.h>
#include <cleave/status.h>

#include <stddef.h>

CLV_BEGIN_DECLS

/** An open layer; never changes: any number of threads may use one. */
typedef struct clv_classes clv_classes;

/**
 * Reads the layer of a model folder: classifier.weight [classes, D] and classifier.bias [classes] of
 * model.safetensors, at least two classes; their names from id2label of config.json, "LABEL_0",
 * "LABEL_1", ... where it has none.
 *
 * Fine-tuning (clv_trainer_write, `cleave finetune`) puts the layer on the model's pooled vector, not
 * divided by its length. A file whose names begin with "bert." is read as transformers'
 * BertForSequenceClassification: the layer lies on tanh(W v + b) of the first token's vector v, with
 * pooler.dense.weight and pooler.dense.bias.
 *
 * @param model  opened from the same folder; must stay open as long as the layer.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_IO; CLV_E_FORMAT names what was found and what was
 *         expected (no layer, its shape, a name too few, several classes at a time, a classifier of
 *         tokens); CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_classes_open(const clv_model *model, const char *folder, clv_classes **out);
CLV_API void clv_classes_close(clv_classes *classes); /**< accepts NULL */

CLV_API size_t clv_classes_count(const clv_classes *classes);
/** Names by number; NULL beyond the last. */
CLV_API const char *clv_classes_name(const clv_classes *classes, size_t index);
/** The model's configuration with the pooling that the layer wants: for clv_encoder_open. */
CLV_API const clv_model_config *clv_classes_get_config(const clv_classes *classes);

/**
 * p[t, c] = exp(s[t, c]) / sum over i of exp(s[t, i]), s = V W^T + b: how probable each class is.
 *
 * On the calling thread; a layer is small beside the encoder.
 * @param vectors        V [texts, D], of an encoder with clv_classes_get_config
 * @param probabilities  [texts, classes]; NaN where a score is NaN or +inf
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY. Error of a score about 1e-6 times
 *         |V| |W|, and so the relative one of a probability.
 */
CLV_API clv_status clv_classes_probabilities(const clv_classes *classes, const float *vectors,
                                             size_t texts, float *probabilities);

CLV_END_DECLS

#endif
