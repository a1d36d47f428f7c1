/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies texts: computes the probability of each class from an encoder's vectors, by the model's last linear
 * layer. */
#ifndef CLEAVE_CLASSES_H
#define CLEAVE_CLASSES_H

#include <cleave/export.h>
#include <cleave/model.h>
#include <cleave/status.h>

#include <stddef.h>

CLV_BEGIN_DECLS

/** An open classification layer. It never changes, so any number of threads may use it at the same time. */
typedef struct clv_classes clv_classes;

/**
 * Reads the classification layer of a model folder: classifier.weight [classes, D] and classifier.bias [classes] of
 * model.safetensors (classifier.out_proj for ELECTRA, RoBERTa and MPNet). If a layer has only one class, the model is a
 * cross-encoder: see rank.h. The classes' names come from id2label of config.json; without it they are "LABEL_0",
 * "LABEL_1", ...
 *
 * A BERT model whose names begin with "bert." is read as transformers' BertForSequenceClassification. The layer's input
 * is then tanh(W v + b) of the first token's vector v, with W = pooler.dense.weight and b = pooler.dense.bias. Models
 * of the other families are read as the family's model for sequence classification in transformers, such as
 * RobertaForSequenceClassification. In a BERT model without the prefix (CLV_TRAIN_HEAD_LINEAR), the layer's input is
 * the pooled vector, not divided by its length.
 *
 * @param model  opened from the same folder; must stay open as long as the layer.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_IO; CLV_E_FORMAT (no layer, a wrong shape, a missing name, a model that
 *         gives a text several classes at once, a classifier of tokens; the message says what was found and what was
 *         expected); CLV_E_MEMORY. *out is NULL after a failure.
 */
CLV_API clv_status clv_classes_open(const clv_model *model, const char *folder, clv_classes **out);
CLV_API void clv_classes_close(clv_classes *classes); /**< accepts NULL */

CLV_API size_t clv_classes_count(const clv_classes *classes);
/** Returns the name of a class by its number; NULL beyond the last. */
CLV_API const char *clv_classes_name(const clv_classes *classes, size_t index);
/** Returns the model's configuration with the pooling that the layer needs; pass it to clv_encoder_open. */
CLV_API const clv_model_config *clv_classes_get_config(const clv_classes *classes);

/**
 * Computes the probability p[t, c] that text t belongs to class c: p[t, c] = exp(s[t, c]) / sum over i of exp(s[t, i])
 * with the scores s = V W^T + b.
 *
 * The calling thread computes this, because the layer is small compared with the encoder.
 * @param vectors        V [texts, D], from an encoder with clv_classes_get_config
 * @param probabilities  [texts, classes]; NaN where a score is NaN or +inf
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY. The error of a score, and so the relative error of a
 *         probability, is about 1e-6 times |V| |W|.
 */
CLV_API clv_status clv_classes_probabilities(const clv_classes *classes, const float *vectors,
                                             size_t texts, float *probabilities);
/** Computes the scores s [texts, classes] from which clv_classes_probabilities computes the probabilities. Returns the
 *  same statuses. */
CLV_API clv_status clv_classes_scores(const clv_classes *classes, const float *vectors,
                                      size_t texts, float *scores);

CLV_END_DECLS

#endif
