/* SPDX-License-Identifier: Apache-2.0 */
/* Decides between the modes cpu, hybrid and gpu from the facts and the user's wishes alone, and states the reason in
 * one sentence. */
#ifndef CLEAVE_PROBE_MODE_H
#define CLEAVE_PROBE_MODE_H

#include "probe/machine.h"

/* Decimal units on purpose: cards sold as 2 GB and 4 GB report a little less than 2 and 4 GiB. */
#define CLV_HYBRID_BYTES UINT64_C(2000000000)
#define CLV_GPU_BYTES UINT64_C(4000000000)

/* The user's orders; all zero: no orders. */
typedef struct clv_mode_order {
    clv_mode mode;       /* AUTO: no mode was ordered */
    const char *mode_by; /* the source of the order, such as "--mode" */
    const bool *chosen;  /* [device_count]; NULL: no devices were ordered */
    const char *devices; /* the selection as the user wrote it */
    const char *devices_by;
} clv_mode_order;

/* Returns the memory that a job may count on: all of the device's memory, or the free part if that is much less. For a
 * device without its own memory, the limit is half of the host's available memory. */
uint64_t clv_room_bytes(const clv_probe_device *device, uint64_t host_available_bytes);

/* Decides report.mode of a machine whose devices are classified, merged and judged. CLV_E_NO_DEVICE: the ordered mode
 * requires a device that does not exist or was not chosen. */
clv_status clv_decide_mode(clv_machine *machine, const clv_mode_order *order);

#endif
