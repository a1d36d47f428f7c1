/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself holds on each device: whoever keeps memory there joins, the report asks. */
#ifndef CLEAVE_PROBE_OWN_H
#define CLEAVE_PROBE_OWN_H

#include <stdatomic.h>
#include <stdint.h>

/* Part of its owner; zero-initialise. Must not move between join and leave. */
typedef struct clv_own {
    struct clv_own *next;
    const char *id; /* of the device, as reports call it; NULL: has not joined */
    _Atomic uint64_t bytes;
} clv_own;

void clv_own_join(clv_own *own, const char *id); /* `id` must live until clv_own_leave */
void clv_own_leave(clv_own *own);                /* does nothing when it has not joined */

/* The sum over all that joined with this id. Threads: any. */
uint64_t clv_own_bytes(const char *id);

#endif
