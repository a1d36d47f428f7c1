/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the memory that this process holds on each device: every owner of device memory registers itself, and the
 * report adds up the owners' amounts. */
#ifndef CLEAVE_PROBE_OWN_H
#define CLEAVE_PROBE_OWN_H

#include <stdatomic.h>
#include <stdint.h>

/* One owner's amount. Embed it in the owner and zero-initialise it; it must not move between join and leave. */
typedef struct clv_own {
    struct clv_own *next;
    const char *id; /* the device's id in reports; NULL: not joined */
    _Atomic uint64_t bytes;
} clv_own;

void clv_own_join(clv_own *own, const char *id); /* `id` must exist until clv_own_leave */
void clv_own_leave(clv_own *own);                /* does nothing if `own` has not joined */

/* Returns the sum over all owners that joined with this id. May be called from any thread. */
uint64_t clv_own_bytes(const char *id);

#endif
