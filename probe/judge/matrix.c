/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from a device's extensions and sub-group sizes which matrix units kernels can use. */
#include "probe/judge/matrix.h"

#include <stdlib.h>

/* cl_intel_subgroup_matrix_multiply_accumulate has functions for sub-groups of 8 on devices whose smallest sub-groups
 * have 8 work-items (Arc A series), and for sub-groups of 16 where the smallest have 16 (Data Center GPU Max). */
unsigned clv_matrix_lanes(const clv_probe_device *device)
{
    const char *const extensions = device->extensions;
    unsigned long least = 0;
    if (!clv_probe_has_word(extensions, "cl_intel_subgroup_matrix_multiply_accumulate") ||
        !clv_probe_has_word(extensions, "cl_intel_required_subgroup_size") ||
        !device->subgroup_sizes)
        return 0;
    for (const char *at = device->subgroup_sizes; *at;) {
        char *end;
        const unsigned long size = strtoul(at, &end, 10);
        if (end == at) break;
        if (!least || size < least) least = size;
        at = end;
    }
    return least == 8 || least == 16 ? (unsigned)least : 0;
}
