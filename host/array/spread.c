/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting: computes every input's strides over the result's axes and merges axes where possible. */
#include "host/array/map.h"

#include "base/error.h"
#include "runtime/device/device.h"

#include <string.h>

size_t clv_array_lanes(const clv_device *device)
{
    const clv_probe_device *facts = clv_device_facts(device);
    /* software rasterisers, which limit loops, take minutes to compile wide vectors */
    return facts->device_class == CLV_CLASS_CPU && facts->flags.loop_limit == 0 ? 16 : 1;
}

/* Computes an input's strides along the result's four axes. The last axes of both are matched with each other. */
static clv_status strides_of(const char *what, const clv_array *out, const clv_array *in,
                             const char *name, size_t stride[CLV_ARRAY_AXES])
{
    memset(stride, 0, CLV_ARRAY_AXES * sizeof *stride);
    if (!in) return CLV_OK;
    size_t step = 1;
    for (size_t i = 0; i < in->rank; ++i) {
        const size_t extent = in->shape[in->rank - 1 - i];
        const size_t wanted = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
        if (extent != 1 && extent != wanted)
            return clv_fail(
                CLV_E_SHAPE,
                "%s: \"%s\" has %zu elements along its axis %zu, but the result needs 1 or %zu",
                what, name, extent, in->rank - 1 - i, wanted);
        if (extent > 1) stride[CLV_ARRAY_AXES - 1 - i] = step;
        step *= extent;
    }
    return CLV_OK;
}

/* Returns whether axis `a` can be merged with the next one. */
static bool can_join(const clv_spread *s, size_t count, size_t a)
{
    for (size_t i = 0; i < count; ++i)
        if (s->stride[i][a] != s->stride[i][a + 1] * s->extent[a + 1]) return false;
    return true;
}

/* Removes axis `a`; the axes before it move one place towards the end. */
static void drop(clv_spread *s, size_t count, size_t a)
{
    for (size_t k = a; k > 0; --k) {
        s->extent[k] = s->extent[k - 1];
        for (size_t i = 0; i < count; ++i)
            s->stride[i][k] = s->stride[i][k - 1];
    }
    s->extent[0] = 1;
    for (size_t i = 0; i < count; ++i)
        s->stride[i][0] = 0;
    --s->axes;
}

clv_status clv_spread_make(const char *what, const clv_array *out, const clv_array *const *arrays,
                           const char *const *names, size_t count, clv_spread *s)
{
    *s = (clv_spread){ .axes = CLV_ARRAY_AXES };
    for (size_t i = 0; i < CLV_ARRAY_AXES; ++i)
        s->extent[CLV_ARRAY_AXES - 1 - i] = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
    for (size_t i = 0; i < count; ++i)
        CLV_TRY(strides_of(what, out, arrays[i], names[i], s->stride[i]));
    size_t least = 0; /* axes before this index have been removed */
    for (size_t a = CLV_ARRAY_AXES; a-- > least;)
        if (s->extent[a] == 1 && s->axes > 1) {
            drop(s, count, a);
            ++least, ++a;
        }
    for (size_t a = CLV_ARRAY_AXES - 1; a-- > least;)
        if (can_join(s, count, a)) {
            s->extent[a + 1] *= s->extent[a];
            /* the merged axis keeps the strides of the inner axis */
            drop(s, count, a);
            ++least, ++a;
        }
    return CLV_OK;
}
