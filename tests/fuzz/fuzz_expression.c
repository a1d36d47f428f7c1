/* SPDX-License-Identifier: Apache-2.0 */
/* Parses any text as an expression. An accepted expression, which has a bounded count of numbers, is written as
 * OpenCL C and computed. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/array/expression.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a", "b_1" };
    static const float a[COUNT] = { 1, -2, 0 }, b[1] = { 3 };
    static const float *const inputs[] = { a, b };
    static const size_t stride[] = { 1, 0 };
    clv_expression e;
    size_t position = 0;
    char *text = fuzz_alloc(size + 1, 1); /* the sanitizer guards the end of this memory */
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (clv_expression_parse(text, names, CLV_LEN(names), &e, &position)) {
        FUZZ_CHECK(position <= strlen(text));
    } else {
        float out[COUNT], *room = fuzz_alloc(clv_expression_room(&e), sizeof *room);
        const clv_numbers numbers = clv_expression_numbers(&e);
        clv_text cl = { 0 };
        FUZZ_CHECK(e.count && e.count <= EXPRESSION_STEPS && e.result < e.count);
        FUZZ_CHECK(numbers.count <= EXPRESSION_NUMBERS);
        for (unsigned i = 0; i < e.count; ++i)
            for (int k = 0; k < 3; ++k)
                FUZZ_CHECK(!e.step[i].argument[k] || e.step[i].argument[k] < i);
        clv_expression_write(&e, &numbers, &cl);
        (void)clv_expression_hash(&e, &numbers);
        if (!room) abort();
        clv_expression_compute(&e, inputs, stride, COUNT, out, room);
        fuzz_touch(out, sizeof out);
        clv_free(room);
        clv_text_clear(&cl);
    }
    clv_free(text);
    return 0;
}
