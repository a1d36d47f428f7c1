/* SPDX-License-Identifier: Apache-2.0 */
/* Parses any text as a program of clv_fuse_parse. An accepted program runs in plain C, twice with the same bytes as
 * results; an error has a position in the text. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/array/fuse.h"

#include <cleave/cleave.h>

#include <stdlib.h>
#include <string.h>

enum { COUNT = 3, OUTPUTS = 2 };

static clv_context *context(void)
{
    static clv_context *kept;
    const clv_context_options options = { .size = sizeof options, .mode = CLV_MODE_REFERENCE };
    if (!kept)
        setenv("OCL_ICD_VENDORS", "/dev/null", 1); /* no driver: drivers leak, and none is needed */
    if (!kept && clv_context_create(&options, &kept)) FUZZ_CHECK(fuzz_poor);
    return kept;
}

/* Wraps three numbers; NULL if an allocation failed. */
static clv_array *wrap(clv_dtype type, void *numbers)
{
    clv_array *array = NULL;
    const size_t shape[] = { COUNT };
    if (clv_array_make_wrap(context(), type, numbers, 1, shape, &array)) FUZZ_CHECK(fuzz_poor);
    return array;
}

/* Runs the program and returns the bytes of both results in `out`. */
static bool run(const clv_fused *program, unsigned char out[OUTPUTS][COUNT * 8])
{
    static float x[COUNT] = { 1.5f, -2, 0 };
    static int32_t n[COUNT] = { 7, -1, INT32_MIN };
    static uint8_t m[1] = { 200 };
    static float z[2 * COUNT] = { 1, 2, 0, 0, -1, 1e30f };
    memset(out, 0, OUTPUTS * sizeof *out);
    clv_array *in[] = { wrap(CLV_F32, x), wrap(CLV_I32, n), wrap(CLV_C64, z) };
    clv_array *to[] = { wrap(CLV_F64, out[0]), wrap(CLV_I16, out[1]) };
    bool good = in[0] && in[1] && in[2] && to[0] && to[1];
    const clv_operand operands[] = { { .array = in[0] },
                                     { .array = in[1] },
                                     { .array = in[2] },
                                     { .type = CLV_U8, .whole = m[0] } };
    if (good) {
        const clv_status status =
            clv_fuse_run(context(), program, operands, CLV_LEN(operands), to, OUTPUTS);
        FUZZ_CHECK(!status || fuzz_poor);
        good = !status;
    }
    for (size_t i = 0; i < CLV_LEN(in); ++i)
        clv_array_free(in[i]);
    for (size_t i = 0; i < OUTPUTS; ++i)
        clv_array_free(to[i]);
    return good;
}

static void check(const clv_fused *p)
{
    FUZZ_CHECK(p->count && p->count <= FUSE_VALUES && p->inputs == 4 && p->outputs == OUTPUTS);
    for (size_t i = 0; i < p->outputs; ++i)
        FUZZ_CHECK(p->output[i] < p->count && p->value[p->output[i]].type == p->output_type[i]);
    for (size_t i = 0; i < p->count; ++i)
        for (size_t k = 0; p->value[i].kind == FUSE_STEP && k < clv_op_inputs(p->value[i].op); ++k)
            FUZZ_CHECK(p->value[i].argument[k] < i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const clv_fuse_name names[] = {
        { "x", CLV_FUSE_INPUT, CLV_F32 },  { "n", CLV_FUSE_INPUT, CLV_I32 },
        { "z", CLV_FUSE_INPUT, CLV_C64 },  { "m", CLV_FUSE_INPUT, CLV_U8 },
        { "y", CLV_FUSE_OUTPUT, CLV_F64 }, { "k", CLV_FUSE_OUTPUT, CLV_I16 },
        { "T", CLV_FUSE_TYPE, CLV_U16 },
    };
    unsigned char out[OUTPUTS][COUNT * 8], again[OUTPUTS][COUNT * 8];
    clv_fused *program = NULL;
    size_t position = 0;
    char *text = fuzz_alloc(size + 1, 1); /* the sanitizer guards the end of this memory */
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    const clv_status status = clv_fuse_parse(text, names, CLV_LEN(names), &program, &position);
    FUZZ_CHECK((status == CLV_OK) == (program != NULL) && position <= strlen(text));
    if (program) check(program);
    if (program && context() && run(program, out) && run(program, again))
        FUZZ_CHECK(memcmp(out, again, sizeof out) == 0);
    clv_fuse_free(program);
    clv_free(text);
    return 0;
}
