/* SPDX-License-Identifier: Apache-2.0 */
/* Launches cl/blob/rows.cl, which computes bands of rows with explicit vectors. */
#include "host/blob/blob_family.h"

#include "base/alloc.h"
#include "cl_embedded.h"

clv_status clv_blob_look_rows(const clv_blob_pass *p, size_t at, size_t frames)
{
    const clv_blob_family *f = p->f;
    const clv_arg memory = clv_arg_buffer(p->scratch);
    const size_t geometry[] = { f->tile, f->band, p->plan->levels, f->pad, f->ring };
    const clv_launch launch = {
        .size = sizeof(clv_launch),
        .source = &clv_cl_blob_rows,
        .kernel = "clv_blob_rows",
        .defines = { { "LANES", (long)f->lanes },
                     { "PIXEL", (long)p->plan->shape.type },
                     { "DOG", p->plan->options.dog },
                     { "GROUP", (long)f->level_group } },
        .global = { f->tiles, f->bands, frames },
        .local = { 1, 1, 1 },
    };
    return clv_blob_launch(p, &launch, at, &memory, geometry, CLV_LEN(geometry));
}
