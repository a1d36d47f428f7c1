/* SPDX-License-Identifier: Apache-2.0 */
/* Finds hardware that several drivers offer, so that it counts only once; decides from the classified devices alone. */
#ifndef CLEAVE_PROBE_DUPLICATES_H
#define CLEAVE_PROBE_DUPLICATES_H

#include "probe/machine.h"

/* Sorts platforms and devices into a stable order that does not depend on the loader's order: platforms by name;
 * devices by class (discrete GPU, integrated GPU, CPU, accelerator, software), then by id. Among entries of the same
 * hardware, the primary one comes first. Fills in duplicate_of, primary and id.
 *
 * Two entries of different platforms are the same hardware if they have the same driver library and the same number in
 * it; otherwise if they have the same PCI address, the same UUID from the same driver, or the same clean name equally
 * often on both platforms. All CPU devices and software renderers share the machine's cores: one of them is primary. */
void clv_merge_duplicates(clv_machine *machine);

#endif
