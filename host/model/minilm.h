/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the sizes of all-MiniLM-L6-v2, for models of random weights that replace it in measurements. */
#ifndef CLEAVE_HOST_MODEL_MINILM_H
#define CLEAVE_HOST_MODEL_MINILM_H

#include <cleave/model.h>

static const clv_model_config clv_minilm_config = { .size = sizeof(clv_model_config),
                                                    .width = 384,
                                                    .heads = 12,
                                                    .layers = 6,
                                                    .ffn = 1536,
                                                    .vocabulary = 30522,
                                                    .positions = 512,
                                                    .types = 2,
                                                    .eps = 1e-12f,
                                                    .act = CLV_ACTIVATION_GELU,
                                                    .pooling = CLV_MODEL_MEAN,
                                                    .normalize = true,
                                                    .max_length = 256 };

#endif
