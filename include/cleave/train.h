/* SPDX-License-Identifier: Apache-2.0 */
/* Fine-tunes encoders by steps of SGD or AdamW, on one device or on several equal ones. Repeated runs give the same
 * bits. */
#ifndef CLEAVE_TRAIN_H
#define CLEAVE_TRAIN_H

#include <cleave/transformer.h>

CLV_BEGIN_DECLS

/** What the model learns. */
typedef enum clv_train_task {
    CLV_TRAIN_CLASSES = 0, /**< a linear layer on the pooled vector; cross-entropy of the class */
    CLV_TRAIN_PAIRS = 1, /**< texts 2i and 2i + 1 belong together, while 2i and the second texts of
                                the batch's other pairs do not: cross-entropy of scale * cosines */
} clv_train_task;

/** The layers after the encoder for CLV_TRAIN_CLASSES. */
typedef enum clv_train_head {
    CLV_TRAIN_HEAD_LINEAR = 0, /**< a linear layer on the pooled vector v: scores W v + b */
    /** transformers' BertForSequenceClassification: scores W tanh(P v + p) + b, where v is the first token's vector,
     *  whatever the model's pooling. P and p are the model's pooler and are trained as well. For a model without a
     *  pooler, P begins as the identity and p as 0. */
    CLV_TRAIN_HEAD_POOLER = 1,
} clv_train_head;

typedef enum clv_optimizer {
    CLV_OPTIMIZER_ADAMW = 0, /**< with decoupled weight decay and bias correction */
    CLV_OPTIMIZER_SGD = 1,   /**< with momentum; weight decay is added to the gradient */
} clv_optimizer;

/** Options of clv_trainer_open. Zero fields mean the default, which the comments state where it is not 0. */
typedef struct clv_trainer_options {
    size_t size; /**< sizeof(clv_trainer_options) */
    clv_train_task task;
    size_t classes; /**< for CLV_TRAIN_CLASSES, at least 2 */
    clv_optimizer optimizer;
    double beta1, beta2;   /**< for AdamW, in [0,1); default: 0.9 and 0.999 */
    double eps;            /**< for AdamW, from 1e-20 to less than 1; default: 1e-8 */
    double momentum;       /**< for SGD, in [0,1) */
    double decay;          /**< decay of the weights; biases and norms do not decay */
    bool decay_all;        /**< biases and norms decay too */
    double clip;           /**< longer gradients are shortened to this length; 0: never */
    double scale;          /**< for CLV_TRAIN_PAIRS; default: 20 */
    size_t frozen_layers;  /**< number of first layers that do not learn; if it is above 0,
                                neither do the embeddings. You may freeze all layers only with
                                CLV_TRAIN_CLASSES, whose own layer learns */
    bool frozen_embedding; /**< the embeddings do not learn */
    uint64_t seed;         /**< seed of the initial weights of the classes' layer */
    uint64_t check_every;  /**< steps between checks; 0: 200, or none with check_every_given */
    bool check_every_given;
    clv_train_head head; /**< for CLV_TRAIN_CLASSES */
    /** Least number of tokens of a block. A batch of at least twice this number is cut into blocks, which devices of
     *  the same kind share. The bits of a result depend on this number; the default is 4096. */
    size_t block_tokens;
} clv_trainer_options;

/** Loss and hits of a batch, from a step or an evaluation. Frozen. */
typedef struct clv_train_result {
    double loss;            /**< mean over the texts (or pairs) that count; 0 if none do */
    double gradient_length; /**< before clipping; 0 if clip is 0 or nothing was learnt */
    size_t counted, right;  /**< texts (or pairs) that count; how many were predicted right */
} clv_train_result;

/** A model that learns. Each parameter that learns takes 16 bytes: its weight, its gradient and two moments. Frozen
 *  parameters count in tensor_bytes of the device's clv_memory_stats; if the device shares the host's memory, it uses
 *  one frozen table in place. */
typedef struct clv_trainer clv_trainer;

/**
 * Copies the model's weights to the context's first device that works. If there is none, the host computes, slowly and
 * in double precision.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an option outside its range); CLV_E_SHAPE (heads wider than
 *         256); CLV_E_DEVICE_MEMORY; CLV_E_MEMORY.
 */
CLV_API clv_status clv_trainer_open(clv_context *context, const clv_model *model,
                                    const clv_trainer_options *options, clv_trainer **trainer);
/** Closes a trainer. Call it before you free its context and close its model. Accepts NULL. */
CLV_API void clv_trainer_close(clv_trainer *trainer);

/**
 * Takes one step: forward, backward, and an update of all weights that are not frozen.
 *
 * Give texts as for clv_encode. Gradients are those of the mean loss; there is no dropout.
 *
 * @param labels  [texts] for CLV_TRAIN_CLASSES: 0 to classes - 1, or -100 for a text that does not count. NULL for
 *                CLV_TRAIN_PAIRS, which needs an even number of texts.
 * @param rate    the learning rate of this step, from 0 to 1e30.
 * @param result  out, may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (ids, labels, offsets or rate out of range); CLV_E_SHAPE (a text that is too long,
 *         an odd number of texts); CLV_E_DEVICE_MEMORY; CLV_E_DEVICE. After CLV_E_DEVICE the weights are no longer
 *         usable, with two exceptions: after a failed check (see below) the trainer has the weights from before the
 *         step or from the last check, and a text with more tokens than the device's loop limit allows
 *         (clv_probe_flags) is refused before anything changes.
 *
 * A device's results are read back twice and compared. In addition, the first step and every `check_every`th one after
 * it are compared with plain C: loss, gradient (to 1e-3 of the largest value nearby) and new weights. A step that
 * differs is taken again, and the log says so. If it differs again, you get CLV_E_DEVICE, and the weights are those
 * before the step. Between two checks, a step is compared as well if its loss is 10 times the largest so far, or if its
 * gradient is 100 times as long as the longest. You also get CLV_E_DEVICE if weights or moments have changed since the
 * previous step wrote them, or, with AdamW, have changed by more than the steps since the last check can change them.
 * Each step notices the first kind of change; the next check, and any function that writes the weights, notice both. A
 * step that fails in this way restores the weights and the number of steps of the last check. A check takes as long as
 * about ten steps, and 16 bytes of host memory per parameter that learns; if there is not enough memory for checks, the
 * log says that there are none.
 *
 * Devices of the context that are equal to the first one share large batches (block_tokens); if one of them fails, the
 * log says so, and the first device computes its blocks.
 *
 * The same calls give the same bits on one device, with and without checks, and on several equal ones.
 * Threads: one call at a time.
 */
CLV_API clv_status clv_trainer_step(clv_trainer *trainer, const int32_t *ids, const size_t *offsets,
                                    size_t texts, const int32_t *labels, double rate,
                                    clv_train_result *result);

/** Computes the loss and hits of a batch as clv_trainer_step does, but does not change any weight. */
CLV_API clv_status clv_trainer_evaluate(clv_trainer *trainer, const int32_t *ids,
                                        const size_t *offsets, size_t texts, const int32_t *labels,
                                        clv_train_result *result);

/**
 * Evaluates a batch as clv_trainer_evaluate does, and also returns the scores from which the loss is computed: one per
 * class for CLV_TRAIN_CLASSES, and one per second text of the batch (scale times cosine) for CLV_TRAIN_PAIRS.
 * @param scores  out: [texts, classes], or [texts / 2, texts / 2]. The model predicts the class with the highest score,
 *                and of classes with equal scores the first.
 */
CLV_API clv_status clv_trainer_scores(clv_trainer *trainer, const int32_t *ids,
                                      const size_t *offsets, size_t texts, const int32_t *labels,
                                      float *scores, clv_train_result *result);

CLV_API uint64_t clv_trainer_steps(const clv_trainer *trainer); /**< number of steps taken so far */
/** Returns the label of the device that computes, or "host". */
CLV_API const char *clv_trainer_device(const clv_trainer *trainer);

/** Returns how many steps were compared with plain C so far; `repeated` (may be NULL) gets how many of them were taken
 *  again. Both are 0 if the host computes. */
CLV_API uint64_t clv_trainer_checked(const clv_trainer *trainer, uint64_t *repeated);

/**
 * Writes everything that the next step depends on to a safetensors file: weights that learn, moments, number of steps.
 * After a failure there is no incomplete file. `metadata` as in clv_tensors_write; may be NULL; keys that begin with
 * "cleave." are reserved.
 */
CLV_API clv_status clv_trainer_save(clv_trainer *trainer, const char *path,
                                    const char *const *metadata);
/** Restores the state that clv_trainer_save wrote, so that the next step gives the same bits as the step after
 *  clv_trainer_save would have given. Returns CLV_E_FORMAT if the file is not of this kind, or belongs to another model
 *  or other options; then nothing changes. The file does not hold frozen weights, but a digest of them, which must
 *  match. */
CLV_API clv_status clv_trainer_restore(clv_trainer *trainer, const char *path);

/** Writes the weights as clv_model_write does, and the classes' layer as "classifier.weight" [classes, D] and
 *  "classifier.bias" [classes]. With CLV_TRAIN_HEAD_POOLER the names are those of BertForSequenceClassification (the
 *  names of the model's weights begin with "bert."), and transformers loads the file and computes the same scores. With
 *  CLV_TRAIN_HEAD_LINEAR transformers would compute other scores, because it takes the pooler's vector instead of the
 *  pooled one. */
CLV_API clv_status clv_trainer_write(clv_trainer *trainer, const char *path,
                                     const char *const *metadata);

CLV_END_DECLS

#endif
