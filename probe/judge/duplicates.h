/* SPDX-License-Identifier: Apache-2.0 */
/* Finds hardware that several drivers show, so that it counts only once: a pure judgement of classified devices. */
#ifndef CLEAVE_PROBE_DUPLICATES_H
#define CLEAVE_PROBE_DUPLICATES_H

#include "probe/machine.h"

/* Puts platforms and devices into a stable order that does not depend on the loader's: platforms by name; devices by
 * class (discrete GPU, integrated GPU, CPU, accelerator, software), then by id, and the primary entry first among those
 * of the same hardware. Fills duplicate_of, primary and id.
 *
 * Two entries of different platforms show the same hardware if they have the same driver library and number there, else
 * the same PCI address, else the same UUID from the same driver, else the same clean name, as often on both platforms.
 * All CPU devices and software renderers share the machine's cores: one of them is primary. */
void clv_merge_duplicates(clv_machine *machine);

#endif
