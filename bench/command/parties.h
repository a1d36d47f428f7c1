/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the parties of a bench: devices, modes, the reference. */
#ifndef CLEAVE_BENCH_COMMAND_PARTIES_H
#define CLEAVE_BENCH_COMMAND_PARTIES_H

#include "bench/command/bench.h"

/* Probes, measures devices whose rates are not on record, and fills b->probe and b->parties.
 * `modes` and `selection` are the user's words or NULL. $CLEAVE_DEVICE replaces a missing selection.
 * It is removed from the environment together with $CLEAVE_MODE, so that the parties' processes only
 * see their own settings. Returns CLI_OK, or an exit code after printing the message. */
int bench_choose_parties(bench *b, const char *modes, const char *selection, bool tell);

#endif
