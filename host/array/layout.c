/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out broadcast arrays over as few axes as their strides allow. */
#include "host/array/layout.h"

#include "base/error.h"

#include <string.h>

/* Computes an operand's strides over the result's axes. The last axes of both are matched with each other. */
static clv_status spread(const char *what, size_t which, const clv_array *in, const clv_array *out,
                         ptrdiff_t *stride)
{
    for (size_t i = 0; i < in->rank; ++i) {
        const size_t extent = in->shape[in->rank - 1 - i];
        const size_t wanted = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
        if (extent != 1 && extent != wanted)
            return clv_fail(CLV_E_SHAPE,
                            "%s: operand %zu has %zu elements along its axis %zu, but the result "
                            "needs 1 or %zu",
                            what, which, extent, in->rank - 1 - i, wanted);
        if (i < out->rank) stride[out->rank - 1 - i] = in->stride[in->rank - 1 - i];
    }
    return CLV_OK;
}

/* Returns whether axis `k` continues the axis before it without a gap in every array. */
static bool can_join(const clv_layout *l, size_t before, size_t k)
{
    for (size_t i = 0; i < l->arrays; ++i)
        if (l->stride[i][before] != l->stride[i][k] * (ptrdiff_t)l->extent[k]) return false;
    return true;
}

static void move_axis(clv_layout *l, size_t to, size_t from)
{
    for (size_t i = 0; i < l->arrays && to != from; ++i)
        l->stride[i][to] = l->stride[i][from];
}

clv_status clv_layout_make(const char *what, const clv_array *out, clv_array *const *arrays,
                           size_t count, clv_layout *l)
{
    l->axes = 0;
    l->arrays = count;
    memset(l->stride, 0, count * sizeof *l->stride);
    for (size_t i = 0; i < count; ++i)
        if (arrays[i]) CLV_TRY(spread(what, i, arrays[i], out, l->stride[i]));
    for (size_t k = 0; k < out->rank; ++k) {
        if (out->shape[k] == 1) continue;
        const size_t to = l->axes;
        l->extent[to] = out->shape[k];
        move_axis(l, to, k);
        if (to && can_join(l, to - 1, to)) {
            l->extent[to - 1] *= l->extent[to];
            move_axis(l, to - 1, to);
        } else {
            ++l->axes;
        }
    }
    if (!l->axes) { /* a single element */
        l->axes = 1;
        l->extent[0] = 1;
        for (size_t i = 0; i < count; ++i)
            l->stride[i][0] = 0;
    }
    return CLV_OK;
}
