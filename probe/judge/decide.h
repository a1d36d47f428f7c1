/* SPDX-License-Identifier: Apache-2.0 */
/* Turns raw facts into the finished report, by the same rules for a live machine, a helper's answer and a file. */
#ifndef CLEAVE_PROBE_DECIDE_H
#define CLEAVE_PROBE_DECIDE_H

#include "probe/machine.h"

/* The orders of the user, from the library's caller or from the environment. */
typedef struct clv_orders {
    clv_mode mode;
    const char *mode_by, *devices, *devices_by;
} clv_orders;

/* Classifies devices, applies the quirk table, merges duplicates, decides the mode and adds warnings. It may be called
 * again after facts have changed. CLV_E_NO_DEVICE, CLV_E_ARGUMENT, CLV_E_MEMORY. */
clv_status clv_decide(clv_machine *machine, const clv_orders *orders);

/* Fills in the warnings of a decided report, and pci_gpus[].has_opencl. */
void clv_warn_all(clv_machine *machine);

#endif
