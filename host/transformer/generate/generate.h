/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a decoder: weights and room on one device. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_GENERATE_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_GENERATE_H

#include "host/transformer/decoder.h"

#include <cleave/generate.h>
#include <cleave/tensors.h>

struct clv_decoder {
    clv_decoder_config config;
    clv_queue *queue;
    clv_gemm_form form;
    clv_buffer *word, *weights, *turns;
    size_t zeros, norm, scores; /* in `weights`: a row of 0, the last norm, what makes scores */
    clv_decoder_layer *layers;
    clv_decoder_room room;  /* for room_rows tokens */
    size_t room_rows, kept; /* kept: tokens whose keys and values are there */
    clv_buffer *x, *ids, *blocks, *out;
};

/* config.json's sizes, checked. */
clv_status clv_decoder_config_read(const char *folder, clv_decoder_config *config);
/* Weights to the device, packed for its products; form, queue and config are there. */
clv_status clv_decoder_bring(clv_decoder *decoder, const char *folder);

#endif
