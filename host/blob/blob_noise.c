/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of cl/blob/noise.cl: the noise of each scale, as the median of its bins. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

clv_status clv_blob_noise_medians(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const size_t rows = (plan->shape.height + plan->noise_step - 1) / plan->noise_step;
    const clv_arg args[] = {
        clv_arg_buffer(p->bins),
        clv_arg_buffer(p->inverse),
        clv_arg_u32((uint32_t)(rows * plan->shape.width)),
        clv_arg_u32((uint32_t)(at * plan->scales)),
        clv_arg_u32((uint32_t)(frames * plan->scales)),
    };
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &clv_cl_blob_noise,
                                .kernel = "clv_blob_noise_median",
                                .global = { frames * plan->scales },
                                .local = { 1 } };
    return clv_launch_enqueue(p->queue, &launch, args, CLV_LEN(args), NULL);
}
