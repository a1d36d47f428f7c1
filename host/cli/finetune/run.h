/* SPDX-License-Identifier: Apache-2.0 */
/* A training run: epochs of shuffled batches, validation, states to go on from. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_RUN_H
#define CLEAVE_HOST_CLI_FINETUNE_RUN_H

#include "host/cli/finetune/data.h"

#include <cleave/train.h>

typedef struct cli_train_plan {
    const cli_examples *examples, *validation; /* validation NULL: none */
    uint64_t seed, epochs, batch_size;
    uint64_t save_every; /* steps; 0: at the end of epochs only */
    double rate, warmup; /* warmup: part of all steps, in [0,1) */
    bool constant;       /* else the rate falls to 0 along a line */
    const char *state;   /* file to go on from */
    bool resume, quiet;
} cli_train_plan;

typedef struct cli_train_facts {
    uint64_t steps, resumed_at, texts, tokens;
    double seconds, first_loss, last_loss;
    clv_train_result validation; /* behind the last epoch */
} cli_train_facts;

uint64_t cli_train_steps(const cli_train_plan *plan);

/* One line a step and one an epoch on standard output. CLV_E_CANCELLED after Ctrl-C, with a state
 * written. CLV_E_FORMAT: the state belongs to another run. */
clv_status cli_train_run(const cli_train_plan *plan, clv_trainer *trainer, cli_bar *bar,
                         cli_train_facts *facts);
/* Writes plan->state. */
clv_status cli_train_save(const cli_train_plan *plan, clv_trainer *trainer);

#endif
