/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether elements of one result share memory, and whether a result shares memory with an operand. */
#include "host/array/layout.h"

#include <stdlib.h>
#include <string.h>

/* No two elements share memory if, with the axes sorted by stride, each stride exceeds the reach of all smaller
 * axes. */
bool clv_array_repeats(const clv_array *out)
{
    size_t order[CLV_ARRAY_RANK], count = 0;
    for (size_t k = 0; k < out->rank; ++k)
        if (out->shape[k] > 1) {
            size_t at = count++;
            for (; at && llabs(out->stride[order[at - 1]]) > llabs(out->stride[k]); --at)
                order[at] = order[at - 1];
            order[at] = k;
        }
    size_t reach = 0; /* distance between the outermost elements of the axes so far */
    for (size_t i = 0; i < count; ++i) {
        const size_t step = (size_t)llabs(out->stride[order[i]]);
        if (step <= reach) return true;
        reach += step * (out->shape[order[i]] - 1);
    }
    return false;
}

static bool same_view(const clv_array *a, const clv_array *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->type == b->type &&
           a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof a->shape) &&
           !memcmp(a->stride, b->stride, sizeof a->stride);
}

/* Finds the range of bytes in the storage that holds all elements of the array. */
static void find_bytes(const clv_array *a, size_t *first, size_t *end)
{
    const size_t size = clv_dtype_bytes(a->type);
    ptrdiff_t least = 0, most = 0;
    for (size_t k = 0; k < a->rank; ++k) {
        const ptrdiff_t reach = a->stride[k] * ((ptrdiff_t)a->shape[k] - 1);
        *(reach < 0 ? &least : &most) += reach;
    }
    *first = (a->offset - (size_t)-least) * size;
    *end = (a->offset + (size_t)most + 1) * size;
}

bool clv_array_meets(const clv_array *a, const clv_array *b)
{
    size_t first, end, other, other_end;
    if (a == b) return true;
    if (!clv_array_overlap(a, b)) return false;
    if (a->storage != b->storage) return true;
    find_bytes(a, &first, &end);
    find_bytes(b, &other, &other_end);
    return first < other_end && other < end;
}

bool clv_array_interferes(const clv_array *out, const clv_array *in)
{
    return !same_view(out, in) && clv_array_meets(out, in);
}
