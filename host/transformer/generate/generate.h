/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a decoder: weights and room on one device. Weights are in the device's tensor cache: a
 * tensor with the table of words and a row of 0, one for each layer, and one with the last norm and
 * the matrix that makes scores. */
#ifndef CLEAVE_HOST_TRANSFORMER_GENERATE_GENERATE_H
#define CLEAVE_HOST_TRANSFORMER_GENERATE_GENERATE_H

#include "host/transformer/decoder.h"
#include "runtime/device/tensor_cache.h"

#include <cleave/generate.h>
#include <cleave/tensors.h>

struct clv_decoder {
    clv_decoder_config config;
    clv_queue *queue;
    clv_gemm_form form;
    clv_tensors *file; /* what was given up for other memory is read again */
    char *path;
    size_t zeros;                      /* where the row of 0 begins behind the words */
    size_t norm, scores;               /* in the last tensor */
    size_t layer_floats, score_floats; /* of a tensor */
    clv_buffer *turns;
    clv_decoder_layer *layers; /* their weights are there while a layer is enqueued */
    clv_decoder_room room;     /* for room_rows tokens */
    size_t room_rows, kept;    /* kept: tokens whose keys and values are there */
    clv_buffer *x, *ids, *blocks, *out;
};

/* config.json's sizes, checked. */
clv_status clv_decoder_config_read(const char *folder, clv_decoder_config *config);
/* Opens the weights, checks and brings all of them; form, queue and config are there. */
clv_status clv_decoder_bring(clv_decoder *decoder, const char *folder);

/* A tensor on the device, pinned. */
enum { CLV_DECODER_WORDS, CLV_DECODER_SCORES, CLV_DECODER_LAYERS };
clv_status clv_decoder_part(const clv_decoder *decoder, size_t part, clv_kept_tensor **out);

#endif
