/* SPDX-License-Identifier: Apache-2.0 */
/* The same hardware through several drivers counts once: pure judgement of classified devices. */
#ifndef CLEAVE_PROBE_DUPLICATES_H
#define CLEAVE_PROBE_DUPLICATES_H

#include "probe/machine.h"

/* Puts platforms and devices into their stable order, whatever order the loader has: platforms by
 * name; devices by class (discrete GPU, integrated GPU, CPU, accelerator, software), then by id,
 * of equal hardware the primary entry first. Fills duplicate_of, primary and id.
 *
 * Equal means, across platforms only: the same driver library and number there, else the same PCI
 * address, else the same UUID by the same driver, else the same clean name and as many of them.
 * All CPU devices and software renderers share the machine's cores: one of them is primary. */
void clv_merge_duplicates(clv_machine *machine);

#endif
