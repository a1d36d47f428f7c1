/* SPDX-License-Identifier: Apache-2.0 */
/* From raw facts to the finished report; the same for a live machine, a child's, a file's. */
#ifndef CLEAVE_PROBE_DECIDE_H
#define CLEAVE_PROBE_DECIDE_H

#include "probe/machine.h"

/* Orders, as the user of the library or the environment gave them. */
typedef struct clv_orders {
    clv_mode mode;
    const char *mode_by, *devices, *devices_by;
} clv_orders;

/* Classifies, applies the quirk table, merges duplicates, decides the mode, warns. May be called
 * again after the facts changed. CLV_E_NO_DEVICE, CLV_E_ARGUMENT, CLV_E_MEMORY. */
clv_status clv_decide(clv_machine *machine, const clv_orders *orders);

/* Fills the warnings of a decided report, and pci_gpus[].has_opencl. */
void clv_warn_all(clv_machine *machine);

#endif
