/* SPDX-License-Identifier: Apache-2.0 */
/* Turns raw facts into the finished report, in the same way for a live machine, a child and a file. */
#ifndef CLEAVE_PROBE_DECIDE_H
#define CLEAVE_PROBE_DECIDE_H

#include "probe/machine.h"

/* What the caller of the library or the environment ordered. */
typedef struct clv_orders {
    clv_mode mode;
    const char *mode_by, *devices, *devices_by;
} clv_orders;

/* Classifies, applies the quirk table, merges duplicates, decides the mode and adds warnings. May be called again after
 * facts have changed. CLV_E_NO_DEVICE, CLV_E_ARGUMENT, CLV_E_MEMORY. */
clv_status clv_decide(clv_machine *machine, const clv_orders *orders);

/* Fills the warnings of a decided report, and pci_gpus[].has_opencl. */
void clv_warn_all(clv_machine *machine);

#endif
