/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_apply on a device: writes one kernel per operation, types and number of axes, and launches it. Numbers are
 * arguments, so that a number which changes from call to call does not make another kernel. */
#include "host/array/apply.h"

#include "base/error.h"
#include "host/array/kernel_text.h"
#include "runtime/program/texts.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ARGUMENTS = 2 + CLV_ARRAY_RANK + APPLY_ARRAYS * (TEXT_ARRAY_ARGS + TEXT_NUMBER_ARGS) };

static bool needs_fp64(const clv_apply *a)
{
    bool needs = clv_dtype_needs_fp64(a->compute) || clv_dtype_needs_fp64(a->out->type);
    for (size_t i = 0; i < a->inputs; ++i)
        needs |= a->array[i] && clv_dtype_needs_fp64(a->array[i]->type);
    return needs;
}

/* ---- the text ---------------------------------------------------------------------------------- */

static void write_parameters(const clv_apply *a, clv_text *t)
{
    clv_text_add(t, "__kernel void clv_apply(uint n");
    for (size_t k = 1; k < a->layout.axes; ++k)
        clv_text_add(t, ", uint e%zu", k);
    for (size_t i = 0; i < a->inputs; ++i)
        if (a->array[i])
            clv_text_array(t, &a->layout, i, a->array[i]->type, false);
        else
            clv_text_number(t, i, a->compute);
    clv_text_array(t, &a->layout, CLV_OP_INPUTS, a->out->type, true);
    clv_text_add(t, ")\n");
}

/* Defines x, y or z, an operand in the type in which the operation computes. */
static void write_operand(const clv_apply *a, size_t i, clv_text *t)
{
    const char letter = (char)('x' + i);
    char name[24];
    if (!a->array[i]) {
        if (clv_dtype_is_complex(a->compute))
            clv_text_add(t, "    const CT %c = (CT)(v%zu, w%zu);\n", letter, i, i);
        else
            clv_text_add(t, "    const CT %c = (CT)v%zu;\n", letter, i);
        return;
    }
    clv_text_load(t, &a->layout, i, a->array[i]->type);
    snprintf(name, sizeof name, "l%zu", i);
    clv_text_add(t, "    const CT %c = ", letter);
    clv_text_convert(t, name, a->array[i]->type, a->compute);
    clv_text_add(t, ";\n");
}

static void write_kernel(const clv_apply *a, clv_text *t)
{
    clv_text_begin(t, needs_fp64(a));
    clv_text_functions(t, a->compute);
    clv_text_compute_in(t, a->compute);
    clv_text_add(t, "#define PLACE ((CT)at)\n\n");
    write_parameters(a, t);
    clv_text_places(t, &a->layout);
    for (size_t i = 0; i < a->inputs; ++i)
        write_operand(a, i, t);
    clv_text_add(t, "    const %s v = %s;\n", clv_text_variable(a->result),
                 clv_op_text(a->op, a->compute));
    clv_text_store(t, &a->layout, CLV_OP_INPUTS, a->out->type, "v", a->result);
    clv_text_add(t, "}\n");
}

/* ---- the launch --------------------------------------------------------------------------------- */

clv_status clv_apply_enqueue(const clv_apply *a, clv_engine *engine)
{
    clv_text text = { 0 };
    const clv_cl_source *source = NULL;
    write_kernel(a, &text);
    const clv_status status =
        text.failed
            ? clv_fail(CLV_E_MEMORY, "%s: not enough memory for a kernel", clv_op_name(a->op))
            : clv_texts_get(engine->context, "apply (generated)", clv_text_get(&text), text.length,
                            &source);
    clv_text_clear(&text);
    CLV_TRY(status);
    clv_arg args[MOST_ARGUMENTS];
    size_t used = 0;
    args[used++] = clv_arg_u32((uint32_t)a->out->elements);
    for (size_t k = 1; k < a->layout.axes; ++k)
        args[used++] = clv_arg_u32((uint32_t)a->layout.extent[k]);
    for (size_t i = 0; i < a->inputs; ++i)
        used += a->array[i] ? clv_text_array_args(&a->layout, i, a->array[i], args + used)
                            : clv_text_number_args(&a->operand[i], a->compute, args + used);
    used += clv_text_array_args(&a->layout, CLV_OP_INPUTS, a->out, args + used);
    return clv_text_launch(engine, source, a->out->elements, args, used);
}
