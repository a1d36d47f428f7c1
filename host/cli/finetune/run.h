/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a training: epochs of shuffled batches, validation, and states from which the run can be resumed. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_RUN_H
#define CLEAVE_HOST_CLI_FINETUNE_RUN_H

#include "host/cli/finetune/data.h"
#include "host/cli/finetune/metrics.h"

#include <cleave/train.h>

typedef struct cli_train_plan {
    const cli_examples *examples, *validation; /* validation NULL: none */
    size_t classes;                            /* 0 for pairs */
    uint64_t seed, epochs, batch_size;
    uint64_t save_every; /* steps; 0: only at the end of epochs */
    double rate, warmup; /* warmup: share of all steps, in [0,1) */
    bool constant;       /* the rate stays constant; else it falls linearly to 0 */
    const char *state;   /* file in which the state is saved, and from which a run resumes */
    bool resume, quiet;
} cli_train_plan;

typedef struct cli_train_facts {
    uint64_t steps, resumed_at, texts, tokens;
    double seconds, first_loss, last_loss;
    cli_metrics validation; /* metrics of the validation after the last epoch */
} cli_train_facts;

/* Computes the metrics of `examples` with the current weights. CLV_E_CANCELLED after Ctrl-C. */
clv_status cli_train_test(const cli_train_plan *plan, const cli_examples *examples,
                          clv_trainer *trainer, cli_metrics *metrics);

uint64_t cli_train_steps(const cli_train_plan *plan);

/* Trains, and prints one line per step and per epoch on standard output. CLV_E_CANCELLED after Ctrl-C; the state has
 * then been saved. CLV_E_FORMAT: the state belongs to another run. */
clv_status cli_train_run(const cli_train_plan *plan, clv_trainer *trainer, cli_bar *bar,
                         cli_train_facts *facts);
/* Saves the training state in plan->state. */
clv_status cli_train_save(const cli_train_plan *plan, clv_trainer *trainer);

#endif
