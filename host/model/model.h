/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a model: configuration, one block of weights, and the table that names them. */
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

/* One weight: what transformers call it, and where its pointer lies. */
typedef struct clv_weight {
    char name[96]; /* "encoder.layer.0.attention.self.query.weight" */
    size_t rank;   /* 1 or 2 */
    size_t shape[2];
    bool optional;
    const float **slot; /* of clv_model_weights or clv_model_layer */
} clv_weight;

enum { CLV_WEIGHTS_FIXED = 7, CLV_WEIGHTS_A_LAYER = 16 };

/* How many weights a model of this configuration has. */
size_t clv_weights_count(const clv_model_config *config);
/* Describes weight `index`; `layers` is [config->layers]. */
void clv_weights_at(const clv_model_config *config, clv_model_weights *weights,
                    clv_model_layer *layers, size_t index, clv_weight *out);

/* A warning where not all of them are finite. */
void clv_weights_warn(const char *path, const char *name, const float *values, size_t count);

/* config.json's object; `what` names the file. Pooling, normalize and max_length get defaults. */
clv_status clv_model_config_parse(const char *what, const clv_json *root, clv_model_config *out);
/* config_sentence_transformers.json: its prompts are texts, the default one is there. NULL: no such file. */
clv_status clv_model_prompts(const char *folder, clv_json **root);
/* The rest: modules.json and what it names. */
clv_status clv_model_modules(const char *folder, clv_model_config *config);

#endif
