/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trainer: parameters side by side, the encoder, and what its head needs. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H

#include "host/transformer/train/net.h"

#include <cleave/train.h>

/* Parameters that are changed together: next to each other, with or without decay. */
typedef struct clv_trainable {
    size_t at, count;
    bool decays;
} clv_trainable;

struct clv_trainer {
    const clv_model *model;
    clv_trainer_options options; /* nothing is left open */
    char device[160];
    clv_train_ops *ops;
    clv_net net;
    size_t count;           /* parameters that learn: of the model, then the head's */
    size_t head, head_bias; /* [classes, D], [classes] */
    void *first, *second;   /* moments */
    bool stale;             /* a step failed: words that are not in the next one have slopes */
    clv_trainable *parts;
    size_t part_count;
    uint64_t steps;
    char frozen[65]; /* digest of the parameters that stay; "": not taken yet */
    clv_batch_rooms batch;
    clv_room pooled, unit, g_pooled, scores, g_scores, labels, losses, g;
    int32_t *ids, *label_list; /* of pairs: firsts, then seconds */
    size_t *offsets;
    size_t id_room, label_room, offset_room;
};

/* What a batch's head found; its gradient waits in g_pooled when `learns`. */
clv_status clv_head_run(clv_trainer *trainer, const int32_t *labels, bool learns,
                        clv_train_result *result);
/* Which parameters are changed. */
clv_status clv_trainer_choose_parts(clv_trainer *trainer);
clv_status clv_trainer_update(clv_trainer *trainer, double rate, clv_train_result *result);

#endif
