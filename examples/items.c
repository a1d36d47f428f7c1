/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the lengths of a million vectors by a kernel that runs over the items of an array on every device of this
 * machine. */
#include <cleave/cleave.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1000000 };

static const char text[] = "__kernel void lengths(__global const float *in, float scale, __global "
                           "float *out, uint count)\n"
                           "{\n"
                           "    const size_t i = get_global_id(0);\n"
                           "    if (i < count) out[i] = scale * length(vload3(i, in));\n"
                           "}\n";
static const clv_cl_source source = { "lengths.cl", text, sizeof text - 1 };

/* Computes a chunk of items if no device works. `args` are the arguments that the kernel would get for this chunk. */
static clv_status plain(void *const *args, size_t first, size_t count, void *user)
{
    const float *in = args[0], scale = *(const float *)args[1];
    float *out = args[2];
    (void)first, (void)user;
    for (size_t i = 0; i < count; ++i)
        out[i] = scale * hypotf(hypotf(in[3 * i], in[3 * i + 1]), in[3 * i + 2]);
    return CLV_OK;
}

int main(void)
{
    const float scale = 2;
    float *in = malloc(3 * ITEMS * sizeof *in), *out = malloc(ITEMS * sizeof *out);
    if (!in || !out) return 1;
    for (size_t i = 0; i < 3 * ITEMS; ++i)
        in[i] = (float)(i % 3 + i % 7);

    const clv_item_arg args[] = {
        { CLV_ITEM_INPUT, .bytes = 3 * sizeof *in, .data = in },
        { CLV_ITEM_VALUE, .bytes = sizeof scale, .data = &scale },
        { CLV_ITEM_OUTPUT, .bytes = sizeof *out, .result = out },
        { CLV_ITEM_COUNT },
    };
    const clv_items lengths = { .size = sizeof(clv_items),
                                .source = &source,
                                .kernel = "lengths",
                                .items = ITEMS,
                                .reference = plain };
    clv_context *context = NULL;
    clv_status status = clv_context_create(NULL, &context);
    if (!status) status = clv_items_run(context, &lengths, args, 4, NULL, NULL);
    if (status) fprintf(stderr, "%s\n%s\n", clv_error_message(), clv_error_detail());
    for (size_t i = 0; !status && i < ITEMS; ++i) {
        const float want = 2 * hypotf(hypotf(in[3 * i], in[3 * i + 1]), in[3 * i + 2]);
        if (!(fabsf(out[i] - want) <= 1e-5f * want)) status = CLV_E_WRONG_RESULT;
    }
    if (!status) printf("a million lengths; the last is %.3f\n", out[ITEMS - 1]);
    clv_context_free(context);
    free(in), free(out);
    return status != CLV_OK;
}
