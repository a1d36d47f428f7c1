/* SPDX-License-Identifier: Apache-2.0 */
/* Packs results of slots into bytes and unpacks them. */
#include "runtime/job/packed.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

enum { STEP = 16 };

typedef struct head {
    uint32_t key, unused;
    uint64_t bytes;
} head;
_Static_assert(sizeof(head) == STEP, "heads keep results aligned");

/* Returns whether `k` is a result of the slot's chunk: an output, or host memory without a device buffer, in which
 * `enqueue` left data for the commit. */
static bool is_result(const clv_keyed *k)
{
    return k->host && k->asked && (k->output || (!k->buffer && !k->staging));
}

static bool append(clv_packed *p, const void *data, size_t length)
{
    size_t end;
    const size_t padding = (STEP - length % STEP) % STEP;
    if (!clv_size_add(p->length, length, &end) || !clv_size_add(end, padding, &end) ||
        !clv_reserve(&p->bytes, &p->capacity, end, 1))
        return false;
    if (length) memcpy(p->bytes + p->length, data, length);
    memset(p->bytes + p->length + length, 0, padding);
    p->length = end;
    return true;
}

clv_status clv_pack(const clv_slot *slot, clv_packed *packed)
{
    head first = { 0 };
    packed->length = 0;
    for (size_t i = 0; i < slot->keyed_count; ++i)
        first.key += is_result(&slot->keyed[i]);
    bool good = append(packed, &first, sizeof first);
    for (size_t i = 0; i < slot->keyed_count && good; ++i) {
        const clv_keyed *k = &slot->keyed[i];
        const head one = { .key = k->key, .bytes = k->asked };
        if (is_result(k))
            good = append(packed, &one, sizeof one) && append(packed, k->host, k->asked);
    }
    return good ? CLV_OK
                : clv_fail(CLV_E_MEMORY, "job: not enough memory to pack the results of a chunk");
}

clv_status clv_unpack(const void *bytes, size_t length, clv_slot *slot)
{
    const char *at = bytes;
    head first, one;
    bool good = length >= STEP;
    if (good) memcpy(&first, at, sizeof first), at += STEP, length -= STEP;
    good = good && first.key <= CLV_MAX_KEYS;
    for (uint32_t i = 0; good && i < first.key; ++i) {
        good = length >= STEP;
        if (good) memcpy(&one, at, sizeof one), at += STEP, length -= STEP;
        good = good && one.bytes <= length;
        if (!good) break;
        slot->keyed[slot->keyed_count++] = (clv_keyed){ .key = one.key,
                                                        .host = (void *)(uintptr_t)at,
                                                        .bytes = (size_t)one.bytes,
                                                        .asked = (size_t)one.bytes };
        const size_t step = CLV_MIN(length, clv_round_up((size_t)one.bytes, STEP));
        at += step, length -= step;
    }
    return good ? CLV_OK
                : clv_fail(CLV_E_FORMAT, "job: the results of a chunk are damaged: their sizes do "
                                         "not add up");
}
