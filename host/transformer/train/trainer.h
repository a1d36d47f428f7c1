/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trainer: parameters side by side, the encoder, and what its head needs. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H

#include "host/transformer/train/net.h"

#include <cleave/train.h>

enum { CLV_TRAINER_CHECK_EVERY = 200 }; /* steps from check to check, unless told otherwise */

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
    bool is_reference;          /* plain C itself */
    clv_trainer *twin;          /* the same in plain C, which checks compare with; NULL: none yet */
    bool looked;                /* a step was checked since the weights came */
    uint64_t checked, repeated; /* steps */
    char frozen[65];            /* digest of the parameters that stay; "": not taken yet */
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
/* The factor that shortens the gradient to `clip`; its length goes to the result. */
clv_status clv_trainer_shorten(clv_trainer *trainer, clv_train_result *result, float *scale);
/* What a step does to parameters [at, at + count) of a part. */
clv_train_update clv_trainer_update_of(const clv_trainer *trainer, const clv_trainable *part,
                                       float scale, double rate);
clv_train_rule clv_trainer_rule(const clv_trainer *trainer);

/* trainer->twin, with its own memory. */
clv_status clv_trainer_open_twin(clv_trainer *trainer);

#endif
