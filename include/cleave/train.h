/* SPDX-License-Identifier: Apache-2.0 */
/* Fine-tuning of encoders: steps of SGD or AdamW on one device, the same bits at every run. */
#ifndef CLEAVE_TRAIN_H
#define CLEAVE_TRAIN_H

#include <cleave/transformer.h>

CLV_BEGIN_DECLS

/** What is learnt. */
typedef enum clv_train_task {
    CLV_TRAIN_CLASSES = 0, /**< a linear layer on the pooled vector says the class; cross-entropy */
    CLV_TRAIN_PAIRS = 1, /**< texts 2i and 2i + 1 belong together, the seconds of the other pairs of
                                the batch do not: cross-entropy of scale * cosines */
} clv_train_task;

typedef enum clv_optimizer {
    CLV_OPTIMIZER_ADAMW = 0, /**< decoupled decay, bias corrected */
    CLV_OPTIMIZER_SGD = 1,   /**< momentum; decay is added to the gradient */
} clv_optimizer;

/** All-zero where nothing else is said: the value in brackets. */
typedef struct clv_trainer_options {
    size_t size; /**< sizeof(clv_trainer_options) */
    clv_train_task task;
    size_t classes; /**< of CLV_TRAIN_CLASSES, at least 2 */
    clv_optimizer optimizer;
    double beta1, beta2;  /**< of AdamW, in [0,1) [0.9, 0.999] */
    double eps;           /**< of AdamW [1e-8] */
    double momentum;      /**< of SGD, in [0,1) */
    double decay;         /**< of weights; biases and norms have none */
    bool decay_all;       /**< they do as well */
    double clip;          /**< gradients longer than that are shortened to it; 0: never */
    double scale;         /**< of CLV_TRAIN_PAIRS [20] */
    size_t frozen_layers; /**< the first so many stay, and then the embeddings too; all of them only
                                with CLV_TRAIN_CLASSES, whose layer learns */
    bool frozen_embedding; /**< the embeddings stay */
    uint64_t seed;         /**< of the first weights of the classes' layer */
    uint64_t check_every;  /**< steps from check to check; 0 with check_every_given: none [200] */
    bool check_every_given;
} clv_trainer_options;

/** What a step or an evaluation found. Frozen. */
typedef struct clv_train_result {
    double loss;            /**< mean over the texts (or pairs) that counted; 0 when none did */
    double gradient_length; /**< before it was shortened; 0 when clip is 0, or nothing was learnt */
    size_t counted, right;  /**< texts (or pairs), and those whose highest score is the right one */
} clv_train_result;

/** A model that learns: weights, gradients and moments, 16 bytes a parameter that learns; those that
 *  stay are among the weights that the device keeps (clv_memory_stats). */
typedef struct clv_trainer clv_trainer;

/**
 * Copies the model's weights to the context's first device that works; without one the host
 * computes (slowly, in double precision).
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, an option outside its range); CLV_E_SHAPE (heads wider than
 *         256); CLV_E_DEVICE_MEMORY; CLV_E_MEMORY.
 */
CLV_API clv_status clv_trainer_open(clv_context *context, const clv_model *model,
                                    const clv_trainer_options *options, clv_trainer **trainer);
CLV_API void clv_trainer_close(clv_trainer *trainer); /**< before its context and its model; NULL */

/**
 * One step: forward, backward, and a change of all weights that are not frozen.
 *
 * Texts are given as for clv_encode. Gradients are those of the mean loss; no dropout.
 *
 * @param labels  [texts] of CLV_TRAIN_CLASSES, 0 to classes - 1, or -100: does not count. NULL for
 *                CLV_TRAIN_PAIRS, whose texts are as many as even.
 * @param rate    the learning rate of this step, >= 0.
 * @param result  out, may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (ids, labels, offsets, rate); CLV_E_SHAPE (a text that is too long,
 *         an odd number of texts); CLV_E_DEVICE_MEMORY; CLV_E_DEVICE: the weights are spoilt then
 *         (not by a text with more tokens than a device sees that ends long loops: it is refused
 *         before anything changes).
 *
 * On a device, what it brings back is read twice and compared, and the first step and every
 * `check_every`th one behind it are compared with plain C: loss, gradient (to 1e-3 of the largest value
 * nearby) and new weights. A step that differs is taken again, which the log tells; one that differs
 * again is CLV_E_DEVICE, and the weights are those before it. A check takes the time of some ten
 * steps and 16 bytes of the host's memory a parameter that learns; where there is no memory for it,
 * the log tells that there are no checks.
 *
 * The same calls give the same bits on one device, with and without checks. Threads: one call at a time.
 */
CLV_API clv_status clv_trainer_step(clv_trainer *trainer, const int32_t *ids, const size_t *offsets,
                                    size_t texts, const int32_t *labels, double rate,
                                    clv_train_result *result);

/** Loss and hits of a batch as in clv_trainer_step, but nothing is learnt. */
CLV_API clv_status clv_trainer_evaluate(clv_trainer *trainer, const int32_t *ids,
                                        const size_t *offsets, size_t texts, const int32_t *labels,
                                        clv_train_result *result);

CLV_API uint64_t clv_trainer_steps(const clv_trainer *trainer);     /**< taken so far */
CLV_API const char *clv_trainer_device(const clv_trainer *trainer); /**< its label, or "host" */

/** Steps that were compared with plain C so far; `repeated` (may be NULL): those of them that were taken
 *  again. 0 where the host computes. */
CLV_API uint64_t clv_trainer_checked(const clv_trainer *trainer, uint64_t *repeated);

/**
 * Writes all that the next step depends on: weights that learn, moments, number of steps. A
 * safetensors file, complete or absent; `metadata` as in clv_tensors_write, may be NULL ("cleave.*" is
 * taken).
 */
CLV_API clv_status clv_trainer_save(clv_trainer *trainer, const char *path,
                                    const char *const *metadata);
/** Goes on where clv_trainer_save was called: the next step gives the bits that it would have given.
 *  CLV_E_FORMAT: no such file, of another model (frozen weights are not in it, their digest is), or of
 *  other options; nothing has changed then. */
CLV_API clv_status clv_trainer_restore(clv_trainer *trainer, const char *path);

/** Writes the weights as clv_model_write does; those of the classes as "classifier.weight" [classes,
 *  D] and "classifier.bias" [classes]. A text's scores are weight times its pooled vector, which is not
 *  divided by its length, plus bias. transformers' BertForSequenceClassification takes the pooler's vector
 *  instead: it loads the file, and its scores are others. */
CLV_API clv_status clv_trainer_write(clv_trainer *trainer, const char *path,
                                     const char *const *metadata);

CLV_END_DECLS

#endif
