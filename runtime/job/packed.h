/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a chunk as bytes, for other processes and for files.
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

/* Packs the results of a slot whose chunk has ended. It replaces what `packed` held, and reuses its memory. */
clv_status clv_pack(const clv_slot *slot, clv_packed *packed);
/* Makes `slot` (all zero) a slot of the host that has these results. They stay in `bytes`, which is aligned to 16 bytes
 * and must outlive the slot. Returns CLV_E_FORMAT if the bytes are not what clv_pack writes. */
clv_status clv_unpack(const void *bytes, size_t length, clv_slot *slot);

#endif
