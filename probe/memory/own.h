/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the memory that this process holds on each device: every owner of such memory registers itself, and
 * the report reads the sum. */
#ifndef CLEAVE_PROBE_OWN_H
#define CLEAVE_PROBE_OWN_H

#include <stdatomic.h>
#include <stdint.h>

/* Embedded in its owner; zero-initialise. Must not move between join and leave. */
typedef struct clv_own {
    struct clv_own *next;
    const char *id; /* the device's id in reports; NULL: has not joined */
    _Atomic uint64_t bytes;
} clv_own;

void clv_own_join(clv_own *own, const char *id); /* `id` must live until clv_own_leave */
void clv_own_leave(clv_own *own);                /* does nothing if it has not joined */

/* Returns the sum over all owners that joined with this id. Threads: any. */
uint64_t clv_own_bytes(const char *id);

#endif
