/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of a trainer: the block of parameters, the encoder, and the memory of the head. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H

#include "host/transformer/train/net.h"

#include <cleave/train.h>

enum { CLV_TRAINER_CHECK_EVERY = 200 }; /* default number of steps between two checks */

/* Adjacent parameters that are updated together, with or without weight decay. */
typedef struct clv_trainable {
    size_t at, count;
    bool decays;
} clv_trainable;

typedef struct clv_train_share clv_train_share; /* share.h */

/* Sums of the bits of all trained weights and their moments, as integers modulo 2^32. */
typedef struct clv_bits {
    uint32_t weights, moments;
} clv_bits;

struct clv_trainer {
    clv_context *context; /* NULL: a twin, which plain C computes */
    const clv_model *model;
    clv_trainer_options options; /* with all defaults filled in */
    char device[160];
    clv_train_ops *ops;
    clv_net net;
    size_t count;               /* trainable parameters: the model's, then the head's */
    size_t head, head_bias;     /* [classes, D], [classes] */
    size_t pooler, pooler_bias; /* [D, D], [D]; CLV_TRAIN_HEAD_POOLER only */
    void *first, *second;       /* moments */
    bool stale;                 /* a step failed: the word table's gradient may not be 0 */
    clv_trainable *parts;
    size_t part_count;
    uint64_t steps;
    bool is_reference;          /* this trainer runs in plain C itself */
    clv_train_share *share;     /* blocks of large batches; NULL: no batch has been cut yet */
    clv_trainer *twin;          /* the same trainer in plain C, for checks; NULL: not opened yet */
    bool looked;                /* a step was checked since the twin was opened */
    uint64_t checked, repeated; /* number of checked steps, and of repeated ones */
    /* For the steps between checks (watch.h): the largest loss and the longest gradient so far; whether a loss or a
     * gradient was not finite; and how far AdamW and its decay may have moved weights since the last check. */
    double most_loss, most_length;
    bool lost;
    double way, shrinking;
    /* For bits.h: the device's sums of the step that runs; and in `kept`, if `summed`, the sums that the last step
     * wrote. */
    clv_room bits;
    uint32_t rest; /* if rest_known: the sum of the weights that no step changes */
    clv_bits kept;
    bool summed, rest_known;
    char frozen[65]; /* digest of the frozen parameters; "": not computed yet */
    clv_batch_rooms batch;
    clv_room pooled, unit, g_pooled, scores, g_scores, labels, losses, g;
    clv_room dense, g_dense;   /* CLV_TRAIN_HEAD_POOLER: P v + p and dL/dv; `unit` is its tanh */
    int32_t *ids, *label_list; /* ids: for pairs, all first texts, then all second texts */
    size_t *offsets;
    size_t id_room, label_room, offset_room;
};

/* Returns whether a dense layer with tanh lies between the pooled vectors and the classes. */
bool clv_head_has_pooler(const clv_trainer *trainer);
/* Runs the batch through the net and its head, and fills in the result and, unless NULL, the scores. With `learns`, it
 * also runs the backward pass. */
clv_status clv_head_run(clv_trainer *trainer, const int32_t *labels, bool learns, float *scores,
                        clv_train_result *result);
/* Lists the trained parameters in trainer->parts. */
clv_status clv_trainer_choose_parts(clv_trainer *trainer);
/* Updates the weights with the gradient times `scale`. */
clv_status clv_trainer_apply(clv_trainer *trainer, double rate, float scale);
/* Computes the factor that shortens the gradient to the length of the option `clip`; `result` receives the gradient's
 * full length. */
clv_status clv_trainer_shorten(clv_trainer *trainer, clv_train_result *result, float *scale);
/* Describes the update of a part's parameters by a step. */
clv_train_update clv_trainer_update_of(const clv_trainer *trainer, const clv_trainable *part,
                                       float scale, double rate);
clv_train_rule clv_trainer_rule(const clv_trainer *trainer);

/* Opens trainer->twin, a trainer in plain C with memory of its own. */
clv_status clv_trainer_open_twin(clv_trainer *trainer);

#endif
