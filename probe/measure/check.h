/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a device computes correctly, for the runtime's qualification of devices and for `probe --check`. */
#ifndef CLEAVE_PROBE_CHECK_H
#define CLEAVE_PROBE_CHECK_H

#include <cleave/probe.h>

enum { CLV_CHECK_MESSAGE = 400 };

/* The findings of a check; `check.message` points into `message` or is NULL. */
typedef struct clv_check {
    clv_probe_check check;
    char message[CLV_CHECK_MESSAGE];
} clv_check;

/**
 * Builds and runs small kernels on a device with native ids and compares every result: ids, local
 * memory, barriers, events, fp64 and fp16 if the device claims them, a loop of 100,000 turns, a ragged GEMM.
 * A driver's failure is a finding (check.ok false and a message), not an error. A loop that ends
 * early is a finding too, but not a failure: check.loop_limit says at which turn.
 *
 * Blocking, 0.1 to 10 s (drivers compile). A driver may crash: run it in a helper when unsure.
 */
void clv_check_device(const clv_probe_device *device, clv_check *found);

#endif
