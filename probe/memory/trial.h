/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a card's memory to find out how much of it is free. */
#ifndef CLEAVE_PROBE_TRIAL_H
#define CLEAVE_PROBE_TRIAL_H

#include <cleave/probe.h>

typedef struct clv_trial {
    uint64_t free_bytes; /* CLV_UNKNOWN: no result; `message` states the reason */
    char message[200];
} clv_trial;

/* Returns whether the device has its own memory. On other devices, a trial would fill the host's memory. */
bool clv_trial_makes_sense(const clv_probe_device *device);

/**
 * Allocates buffers, large ones first, until the device refuses or all its memory is taken, and then releases them.
 * Writes every byte of each buffer, because drivers allocate lazily and an unwritten buffer proves nothing. Exact to
 * 16 MiB. Meanwhile, other users of the card get no memory.
 */
void clv_trial_device(const clv_probe_device *device, clv_trial *trial);

#endif
