/* SPDX-License-Identifier: Apache-2.0 */
/* A job of many chunks on the first device, whose kernel reads little of much input; its trace.
 *
 * usage: card_overlap TRACE.json */
#include "base/alloc.h"

#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 48, FLOATS = 1 << 19 }; /* items of 2 MiB, each of which is a chunk */

static const char text[] = "__kernel void first_of(__global const float *in, __global float *out)\n"
                           "{\n"
                           "    out[get_global_id(0)] = in[get_global_id(0) * FLOATS] + 1.0f;\n"
                           "}\n";
static const clv_cl_source source = { "overlap.cl", text, sizeof text - 1 };

static void require(clv_status status)
{
    if (!status) return;
    fprintf(stderr, "card_overlap: %s\n", clv_error_message());
    exit(1);
}

int main(int argc, char **argv)
{
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_GPU,
                                          .batch = 1,
                                          .no_qualification = true,
                                          .trace = true };
    float *in = clv_alloc((size_t)ITEMS * FLOATS, sizeof *in), out[ITEMS];
    clv_context *context;
    if (argc != 2 || !in) return 2;
    for (size_t i = 0; i < (size_t)ITEMS * FLOATS; ++i)
        in[i] = (float)(i / FLOATS);
    const clv_item_arg args[] = {
        { CLV_ITEM_INPUT, .bytes = FLOATS * sizeof *in, .data = in },
        { CLV_ITEM_OUTPUT, .bytes = sizeof *out, .result = out },
    };
    const clv_items what = { .size = sizeof what,
                             .source = &source,
                             .kernel = "first_of",
                             .defines = { { "FLOATS", FLOATS } },
                             .items = ITEMS,
                             .local = { 1 } };
    require(clv_context_create(&options, &context));
    require(clv_items_run(context, &what, args, CLV_LEN(args), NULL, NULL));
    for (size_t i = 0; i < ITEMS; ++i)
        if (out[i] != (float)i + 1) {
            fprintf(stderr, "card_overlap: item %zu is %g\n", i, (double)out[i]);
            return 1;
        }
    require(clv_context_write_trace(context, argv[1]));
    clv_context_free(context);
    clv_free(in);
    return 0;
}
