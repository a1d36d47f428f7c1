/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a model: its configuration, one block of weights, and the table that names them. */
#ifndef CLEAVE_HOST_MODEL_MODEL_H
#define CLEAVE_HOST_MODEL_MODEL_H

#include "base/json.h"

#include <cleave/model.h>

struct clv_model {
    clv_model_config config;
    clv_model_weights weights;
    clv_model_layer *layers;
    float *block; /* all weights, from clv_alloc_pages */
    size_t block_count;
    clv_json *sentence; /* config_sentence_transformers.json; NULL: none */
};

/* One weight: its name in the transformers library, and where its pointer lies. */
typedef struct clv_weight {
    char name[96]; /* "encoder.layer.0.attention.self.query.weight" */
    size_t rank;   /* 1 or 2 */
    size_t shape[2];
    bool optional;
    const float **slot; /* of clv_model_weights or clv_model_layer */
} clv_weight;

enum { CLV_WEIGHTS_FIXED = 7, CLV_WEIGHTS_A_LAYER = 16 };

/* Returns how many weights a model of this configuration has. */
size_t clv_weights_count(const clv_model_config *config);
/* Describes weight `index`; `layers` is [config->layers]. */
void clv_weights_at(const clv_model_config *config, clv_model_weights *weights,
                    clv_model_layer *layers, size_t index, clv_weight *out);

/* Logs a warning if not all values are finite. */
void clv_weights_warn(const char *path, const char *name, const float *values, size_t count);

/* Reads config.json's object; `what` names the file. Pooling, normalize and max_length get defaults. */
clv_status clv_model_config_parse(const char *what, const clv_json *root, clv_model_config *out);
/* Reads config_sentence_transformers.json and checks that its prompts are texts and that the default prompt exists.
 * *root is NULL if there is no such file. */
clv_status clv_model_prompts(const char *folder, clv_json **root);
/* Reads the rest of the configuration: modules.json and the files that it names. */
clv_status clv_model_modules(const char *folder, clv_model_config *config);

#endif
