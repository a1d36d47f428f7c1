/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes part in a bench: devices, modes, the reference. */
#ifndef CLEAVE_BENCH_COMMAND_PARTIES_H
#define CLEAVE_BENCH_COMMAND_PARTIES_H

#include "bench/command/bench.h"

/* Probes, measures devices whose rates are not on record, and fills b->probe and b->parties.
 * `modes` and `selection` are the user's words or NULL. $CLEAVE_DEVICE stands in for a missing
 * selection and is taken out of the environment with $CLEAVE_MODE, so that the parties' own
 * processes see no other orders than theirs. CLI_OK or an exit code, after the message. */
int bench_choose_parties(bench *b, const char *modes, const char *selection, bool tell);

#endif
