/* SPDX-License-Identifier: Apache-2.0 */
/* Facts and wishes -> cpu, hybrid or gpu, and one sentence why. Pure. */
#ifndef CLEAVE_PROBE_MODE_H
#define CLEAVE_PROBE_MODE_H

#include "probe/machine.h"

/* Decimal on purpose: nominal 2 GB and 4 GB cards report a little less than 2 and 4 GiB. */
#define CLV_HYBRID_BYTES UINT64_C(2000000000)
#define CLV_GPU_BYTES UINT64_C(4000000000)

/* What the user ordered; all-zero is nothing. */
typedef struct clv_mode_order {
    clv_mode mode;       /* AUTO: no order */
    const char *mode_by; /* "--mode" */
    const bool *chosen;  /* [device_count]; NULL: no order */
    const char *devices; /* the selection as written */
    const char *devices_by;
} clv_mode_order;

/* Memory that a job may count on: all of it, or what is free when that is much less; half of the
 * host's available memory at most where the device has none of its own. */
uint64_t clv_room_bytes(const clv_probe_device *device, uint64_t host_available_bytes);

/* Decides report.mode of a machine whose devices are classified, merged and judged.
 * CLV_E_NO_DEVICE: the ordered mode needs a device that is not there (or not chosen). */
clv_status clv_decide_mode(clv_machine *machine, const clv_mode_order *order);

#endif
