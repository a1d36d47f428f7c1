/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of a model: its configuration, its weights in one block, and the table of their names. */
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
    clv_json *sentence;    /* config_sentence_transformers.json; NULL: none */
    clv_model_step *steps; /* config.steps; the model owns their numbers */
};

/* A weight: its name in the transformers library, its shape, and the pointer to it. */
typedef struct clv_weight {
    char name[96]; /* "encoder.layer.0.attention.self.query.weight" */
    size_t rank;   /* 1 or 2 */
    size_t shape[2];
    bool optional;
    bool made;          /* no file contains the weight, so it is zero */
    const float **slot; /* points to a member of clv_model_weights or clv_model_layer */
} clv_weight;

enum { CLV_WEIGHTS_FIXED = 10, CLV_WEIGHTS_A_LAYER = 16 };

/* Returns the largest number of weights of a model of this configuration. */
size_t clv_weights_count(const clv_model_config *config);
/* Describes weight `index` in *out. `layers` has one element for each layer with weights of its own. Returns false if
 * the model has no such weight. */
bool clv_weights_at(const clv_model_config *config, clv_model_weights *weights,
                    clv_model_layer *layers, size_t index, clv_weight *out);
/* clv_layers_own returns the number of layers that have weights of their own; clv_layer_of returns which of them has
 * the weights of layer `index`. */
size_t clv_layers_own(const clv_model_config *config);
size_t clv_layer_of(const clv_model_config *config, size_t index);
size_t clv_weight_elements(const clv_weight *weight);
/* Returns the prefix, such as "bert.", that transformers puts before the weights' names in a model with a head. */
const char *clv_family_prefix(clv_model_family family);

/* The files that contain a model's weights: one file, or several with an index. */
typedef struct clv_weight_files clv_weight_files;
clv_status clv_weight_files_open(const char *folder, clv_weight_files **out);
void clv_weight_files_close(clv_weight_files *files); /* accepts NULL */
/* Returns the tensor called `name`, and sets *file to the file that contains it; NULL if there is none. */
const clv_tensor *clv_weight_files_find(const clv_weight_files *files, const char *name,
                                        const clv_tensors **file);
/* Returns whether any tensor's name begins with `prefix`. */
bool clv_weight_files_prefixed(const clv_weight_files *files, const char *prefix);
/* Returns the name of a tensor that contains `part`, borrowed; NULL if there is none. */
const char *clv_weight_files_with(const clv_weight_files *files, const char *part);
const char *clv_weight_files_path(const clv_weight_files *files); /* for messages */

/* Logs a warning if a value of the weight `name` is not finite. */
void clv_weights_warn(const char *path, const char *name, const float *values, size_t count);

/* Reads a model's configuration from `root`, the object of config.json; `what` names the file in messages. Pooling,
 * normalize and max_length get their defaults. */
clv_status clv_model_config_parse(const char *what, const clv_json *root, clv_model_config *out);
/* Reads config_sentence_transformers.json and checks that its prompts are texts and that the default prompt exists.
 * *root is NULL if there is no such file. */
clv_status clv_model_prompts(const char *folder, clv_json **root);
/* Reads the rest of the configuration from modules.json and the files that it names. `inside` is the transformer's
 * folder. The caller owns *steps and frees them with clv_model_steps_free, also after a failure. */
clv_status clv_model_modules(const char *folder, const char *inside, clv_model_config *config,
                             clv_model_step **steps);
/* Shortens vectors to their first `truncate_dim` numbers, if `sentence`, the object of
 * config_sentence_transformers.json, has a truncate_dim below the length of vectors. May allocate *steps and append a
 * step. */
clv_status clv_model_cut(const char *folder, const clv_json *sentence, clv_model_config *config,
                         clv_model_step **steps);
void clv_model_steps_free(clv_model_step *steps, size_t count);

#endif
