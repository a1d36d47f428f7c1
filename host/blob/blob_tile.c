/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/tile.cl, which computes tiles in local memory. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

enum { TX = 32, TY = 16 };

size_t clv_blob_tile_floats(const clv_blob_plan *plan)
{
    const size_t reach = plan->max_radius, rows = TY + 2 + 2 * reach, rim = (TX + 2) * (TY + 2);
    const size_t planes = plan->options.dog ? 1 : 2;
    return rows * (TX + 3 + 2 * reach) + planes * rows * (TX + 2) +
           (plan->options.dog ? 4 : 3) * rim;
}

clv_status clv_blob_look_tile(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_plan *plan = p->plan;
    const clv_blob_frames *s = &plan->shape;
    const clv_arg memory = clv_arg_local(clv_blob_tile_floats(plan) * sizeof(float));
    const size_t geometry[] = { plan->levels, plan->max_radius };
    const clv_launch l = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_tile,
        .kernel = "clv_blob_tile",
        .defines = { { "LANES", 1 },
                     { "PIXEL", (long)s->type },
                     { "DOG", plan->options.dog },
                     { "WG", (long)p->f->local },
                     { "TX", TX },
                     { "TY", TY } },
        .global = { (s->width + TX - 1) / TX * p->f->local, (s->height + TY - 1) / TY, frames },
        .local = { p->f->local, 1, 1 },
    };
    return clv_blob_launch(p, &l, at, &memory, geometry, CLV_LEN(geometry));
}
