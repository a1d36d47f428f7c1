/* SPDX-License-Identifier: Apache-2.0 */
/* A job of many chunks on the first device, whose kernel reads little of much input; its trace. With a second argument,
 * a job by the static schedule, or a large product that is enqueued only.
 *
 * usage: card_overlap TRACE.json [static|product] */
#include "base/alloc.h"
#include "runtime/blas/gemm.h"

#include <cleave/cleave.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void enqueue_product(clv_context *context)
{
    enum { SIDE = 4096 };
    clv_device *device = clv_context_device(context, 0);
    clv_queue *queue;
    clv_buffer *buffers[3], *scratch;
    require(clv_queue_create(device, &queue));
    for (size_t i = 0; i < CLV_LEN(buffers); ++i)
        require(clv_buffer_create(device, (size_t)SIDE * SIDE * sizeof(float), CLV_BUFFER_DEVICE,
                                  &buffers[i]));
    const clv_gemm_form form = clv_gemm_form_of(device, 0);
    const clv_gemm gemm = { .m = SIDE,
                            .n = SIDE,
                            .k = SIDE,
                            .a = { buffers[0], 0, SIDE, 1, 0 },
                            .b = { buffers[1], 0, SIDE, 1, 0 },
                            .c = { buffers[2], 0, SIDE, 1, 0 },
                            .alpha = 1 };
    require(clv_buffer_create(device, clv_gemm_scratch(&form, &gemm) * sizeof(float),
                              CLV_BUFFER_DEVICE, &scratch));
    require(clv_gemm_enqueue(queue, &form, &gemm, scratch, NULL));
    require(clv_queue_wait(queue));
    for (size_t i = 0; i < CLV_LEN(buffers); ++i)
        clv_buffer_free(buffers[i]);
    clv_buffer_free(scratch);
    clv_queue_free(queue);
}

int main(int argc, char **argv)
{
    const char *which = argc > 2 ? argv[2] : "";
    const bool whole = strcmp(which, "static") == 0;
    const clv_context_options options = { .size = sizeof options,
                                          .mode = CLV_MODE_GPU,
                                          .batch = whole ? 0 : 1,
                                          .schedule =
                                              whole ? CLV_SCHEDULE_STATIC : CLV_SCHEDULE_ADAPTIVE,
                                          .no_qualification = true,
                                          .trace = true };
    float *in = clv_alloc((size_t)ITEMS * FLOATS, sizeof *in), out[ITEMS];
    clv_context *context;
    if (argc < 2 || !in) return 2;
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
    if (strcmp(which, "product") == 0) {
        enqueue_product(context);
        clv_context_free(context);
        return 0;
    }
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
