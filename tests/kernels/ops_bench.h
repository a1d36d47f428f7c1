/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that training is made of, under test: memory with goldens in it, results against them. */
#ifndef CLEAVE_TESTS_KERNELS_OPS_BENCH_H
#define CLEAVE_TESTS_KERNELS_OPS_BENCH_H

#include "device.h"

#include "host/transformer/train/ops.h"

typedef struct ops_bench {
    test_device *device; /* NULL, as the queue: plain C */
    clv_queue *queue;
    clv_train_ops *ops;
    void *held[64]; /* until bench_drop_all */
    size_t held_count;
} ops_bench;

/* `claim` on every device, in the form of products that its compiler takes. */
void bench_each_device(void (*claim)(ops_bench *b));
/* The same in the forms of cards: see test_each_device_as. */
void bench_each_card(void (*claim)(ops_bench *b));
/* Tells whether a claim about a whole block is left out: an interpreter takes long for it in the forms of cards, and a
 * block has no kernels of its own. */
bool bench_leaves_out_block(const ops_bench *b);
/* Does the same as bench_each_device, but measures plain C first. */
void bench_each_side(void (*claim)(ops_bench *b));

clv_mem bench_room(ops_bench *b, size_t count);
clv_mem bench_bring(ops_bench *b, const void *data, size_t count);
clv_mem bench_golden(ops_bench *b, const char *name, const char *role);
void bench_drop_all(ops_bench *b);

/* What lies at `got` is what the golden says, within its tolerance. */
void bench_expect(ops_bench *b, const char *name, const char *role, clv_mem got);

#endif
