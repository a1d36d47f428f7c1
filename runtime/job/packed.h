/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the results of a chunk into bytes, for other processes and for files.
 *
 * A head of 16 bytes holds the number of results. Each result has a head of 16 bytes (its key, its length) and its
 * bytes, filled up to a multiple of 16. Numbers are in the machine's own representation. */
#ifndef CLEAVE_RUNTIME_JOB_PACKED_H
#define CLEAVE_RUNTIME_JOB_PACKED_H

#include "runtime/job/run.h"

typedef struct clv_packed {
    char *bytes;
    size_t length, capacity;
} clv_packed;

/* Packs the results of a slot whose chunk has ended. Replaces the contents of `packed` and reuses its memory. */
clv_status clv_pack(const clv_slot *slot, clv_packed *packed);
/* Turns `slot` (all zero) into a slot of the host that has the results in `bytes`. The results stay in `bytes`, which
 * must be aligned to 16 bytes and outlive the slot. Returns CLV_E_FORMAT if the bytes are not what clv_pack writes. */
clv_status clv_unpack(const void *bytes, size_t length, clv_slot *slot);

#endif
