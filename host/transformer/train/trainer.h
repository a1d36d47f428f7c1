/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a trainer: parameters side by side, the encoder, and the memory of its head. */
#ifndef CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H
#define CLEAVE_HOST_TRANSFORMER_TRAIN_TRAINER_H

#include "host/transformer/train/net.h"

#include <cleave/train.h>

enum { CLV_TRAINER_CHECK_EVERY = 200 }; /* default number of steps between two checks */

/* Adjacent parameters that are updated together, with or without decay. */
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
    bool stale;                 /* a step failed: the word table may hold slopes of its words */
    clv_trainable *parts;
    size_t part_count;
    uint64_t steps;
    bool is_reference;          /* this trainer runs in plain C itself */
    clv_train_share *share;     /* blocks of large batches; NULL: there was none yet */
    clv_trainer *twin;          /* the same trainer in plain C, for checks; NULL: none yet */
    bool looked;                /* a step was checked since the twin was opened */
    uint64_t checked, repeated; /* numbers of steps */
    /* Of the steps between checks, see watch.h: the largest loss and longest gradient so far; whether one of them was
     * no number; how far AdamW and its decay may have moved weights since the last check. */
    double most_loss, most_length;
    bool lost;
    double way, shrinking;
    /* See bits.h: the sums of the step that runs, and of what the last one wrote, if `summed`. */
    clv_room bits;
    uint32_t rest; /* of the weights that no step changes */
    clv_bits kept;
    bool summed, rest_known;
    char frozen[65]; /* digest of the frozen parameters; "": not computed yet */
    clv_batch_rooms batch;
    clv_room pooled, unit, g_pooled, scores, g_scores, labels, losses, g;
    clv_room dense, g_dense;   /* CLV_TRAIN_HEAD_POOLER: P v + p and dL/dv; `unit` is its tanh */
    int32_t *ids, *label_list; /* ids: for pairs, all first texts, then all second ones */
    size_t *offsets;
    size_t id_room, label_room, offset_room;
};

/* Returns whether a dense layer with tanh lies between the pooled vectors and the classes. */
bool clv_head_has_pooler(const clv_trainer *trainer);
/* Runs the batch through the net and its head, and fills in the result and, unless NULL, the scores. With `learns`, it
 * also runs the backward pass. */
clv_status clv_head_run(clv_trainer *trainer, const int32_t *labels, bool learns, float *scores,
                        clv_train_result *result);
/* Lists the parameters that are trained, in parts. */
clv_status clv_trainer_choose_parts(clv_trainer *trainer);
/* Updates the weights with the gradient times `scale`. */
clv_status clv_trainer_apply(clv_trainer *trainer, double rate, float scale);
/* Computes the factor that shortens the gradient to the length `clip`; the result receives its full length. */
clv_status clv_trainer_shorten(clv_trainer *trainer, clv_train_result *result, float *scale);
/* Describes what a step does to parameters [at, at + count) of a part. */
clv_train_update clv_trainer_update_of(const clv_trainer *trainer, const clv_trainable *part,
                                       float scale, double rate);
clv_train_rule clv_trainer_rule(const clv_trainer *trainer);

/* Opens trainer->twin, with memory of its own. */
clv_status clv_trainer_open_twin(clv_trainer *trainer);

#endif
