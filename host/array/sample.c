/* SPDX-License-Identifier: Apache-2.0 */
/* Makes samples for timing operations on arrays: a sample is a copy of the operation's struct, with small arrays in
 * place of the caller's. */
#include "host/array/apply.h"
#include "host/array/call.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

clv_array_sample *clv_array_sample_begin(clv_context *context, const void *user, size_t bytes)
{
    clv_array_sample *s = clv_zalloc(1, sizeof *s + bytes);
    if (!s) return NULL;
    s->context = context;
    memcpy(s->user, user, bytes);
    return s;
}

clv_status clv_array_sample_add(clv_array_sample *s, size_t rank, const size_t *shape, float low,
                                float step, clv_array **out)
{
    size_t elements = 1;
    for (size_t i = 0; i < rank; ++i)
        elements *= shape[i];
    /* staggered, so that not all arrays begin at a page boundary */
    const size_t off = 16 * s->count;
    float *memory = clv_alloc_pages((elements + off) * sizeof *memory);
    if (!memory)
        return clv_fail(CLV_E_MEMORY, "not enough memory for a trial of %zu elements", elements);
    for (size_t i = 0; i < elements + off; ++i)
        memory[i] = low + (float)(i * 37 % 997) * step;
    s->memory[s->count] = memory;
    CLV_TRY(clv_array_wrap(s->context, memory + off, rank, shape, out));
    s->array[s->count++] = *out;
    return CLV_OK;
}

clv_status clv_array_sample_add_typed(clv_array_sample *s, clv_dtype type, size_t elements,
                                      clv_array **out)
{
    enum { SOME = 997 };
    /* staggered, as in clv_array_sample_add */
    const size_t bytes = clv_dtype_bytes(type), off = 16 * s->count;
    char *memory = clv_alloc_pages((elements + off) * bytes);
    float numbers[SOME];
    if (!memory)
        return clv_fail(CLV_E_MEMORY, "not enough memory for a trial of %zu elements", elements);
    s->memory[s->count] = memory;
    for (size_t i = 0; i < SOME; ++i) /* every type can hold these values */
        numbers[i] = (float)(1 + i * 37 % SOME % 7);
    for (size_t i = 0; i < elements + off; i += SOME)
        clv_apply_store(KIND_FLOAT, type, numbers, CLV_MIN(elements + off - i, (size_t)SOME),
                        memory + i * bytes, 1);
    CLV_TRY(clv_array_make_wrap(s->context, type, memory + off * bytes, 1, &elements, out));
    s->array[s->count++] = *out;
    return CLV_OK;
}

static void end(void *memory)
{
    clv_array_sample *s = memory;
    for (size_t i = 0; i < CALL_ARRAYS; ++i) {
        clv_array_free(s->array[i]);
        clv_free(s->memory[i]);
    }
    clv_free(s);
}

clv_status clv_array_sample_end(clv_array_sample *s, clv_status status, clv_sample *out)
{
    if (status) {
        end(s);
        return status;
    }
    clv_array_call_close(&s->call);
    out->call = &s->call.call;
    out->memory = s;
    out->end = end;
    return CLV_OK;
}
