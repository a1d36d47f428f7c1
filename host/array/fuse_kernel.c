/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of clv_fuse_parse on a device: one kernel loads an element of every input, computes all values, and
 * stores the outputs. */
#include "host/array/fuse.h"

#include "base/error.h"
#include "host/array/kernel_text.h"
#include "runtime/program/texts.h"

#include <stdio.h>

enum { MOST_ARGUMENTS = 2 + CLV_ARRAY_RANK + FUSE_ARRAYS * (TEXT_ARRAY_ARGS + TEXT_NUMBER_ARGS) };

/* ---- the text ---------------------------------------------------------------------------------- */

static void write_parameters(const clv_fusion *f, clv_text *t)
{
    const clv_fused *p = f->program;
    clv_text_add(t, "__kernel void clv_apply(uint n");
    for (size_t k = 1; k < f->layout.axes; ++k)
        clv_text_add(t, ", uint e%zu", k);
    for (size_t i = 0; i < p->inputs; ++i)
        if (f->array[i])
            clv_text_array(t, &f->layout, i, p->input_type[i], false);
        else
            clv_text_number(t, i, p->input_type[i]);
    for (size_t i = 0; i < p->outputs; ++i)
        clv_text_array(t, &f->layout, p->inputs + i, p->output_type[i], true);
    clv_text_add(t, ")\n");
}

/* Writes the functions for every type in which a step computes. */
static void write_functions(const clv_fused *p, clv_text *t)
{
    bool seen[CLV_DTYPES] = { false };
    for (size_t i = 0; i < p->count; ++i) {
        clv_dtype type = p->value[i].compute;
        if (type == CLV_F16) type = CLV_F32; /* float16 and float32 share a type of variable */
        if (type == CLV_BOOL) type = CLV_U8; /* bool and uint8 share one set of functions */
        if (p->value[i].kind != FUSE_STEP || seen[type]) continue;
        clv_text_functions(t, type);
        seen[type] = true;
    }
}

static void write_real(clv_text *t, clv_dtype type, double x)
{
    const bool wide = clv_dtype_needs_fp64(type);
    if (!wide) x = (double)(float)x; /* may become infinite */
    if (x != x)
        clv_text_add(t, "NAN");
    else if (x - x != 0)
        clv_text_add(t, x < 0 ? "-INFINITY" : "INFINITY");
    else
        clv_text_add(t, wide ? "%a" : "%af", x);
}

static void write_number(clv_text *t, const clv_fuse_value *v, size_t i)
{
    const char *const as = clv_text_variable(v->type);
    clv_text_add(t, "    const %s t%zu = ", as, i);
    switch (clv_kind_of(v->type)) {
    case KIND_INT: /* C has no literal for the least int64 */
        clv_text_add(t, "(%s)(long)0x%llxUL", as, (unsigned long long)v->number.whole);
        break;
    case KIND_UINT:
        clv_text_add(t, "(%s)0x%llxUL", as, (unsigned long long)v->number.whole);
        break;
    case KIND_COMPLEX:
        clv_text_add(t, "(%s)(", as);
        write_real(t, v->type, v->number.real);
        clv_text_add(t, ", 0)");
        break;
    default:
        write_real(t, v->type, v->number.real);
    }
    clv_text_add(t, ";\n");
}

static void write_input(const clv_fusion *f, const clv_fuse_value *v, size_t i, clv_text *t)
{
    const size_t which = v->which;
    if (f->array[which]) clv_text_load(t, &f->layout, which, v->type);
    clv_text_add(t, "    const %s t%zu = ", clv_text_variable(v->type), i);
    if (f->array[which])
        clv_text_add(t, "l%zu;\n", which);
    else if (clv_dtype_is_complex(v->type))
        clv_text_add(t, "(%s)(v%zu, w%zu);\n", clv_text_variable(v->type), which, which);
    else
        clv_text_add(t, "(%s)v%zu;\n", clv_text_variable(v->type), which);
}

static void write_step(const clv_fused *p, const clv_fuse_value *v, size_t i, clv_text *t)
{
    char name[24];
    clv_text_compute_in(t, v->compute == CLV_BOOL ? CLV_U8 : v->compute);
    clv_text_add(t, "    %s t%zu;\n    {\n", clv_text_variable(v->type), i);
    for (size_t k = 0; k < clv_op_inputs(v->op); ++k) {
        snprintf(name, sizeof name, "t%u", v->argument[k]);
        clv_text_add(t, "        const CT %c = ", (char)('x' + k));
        clv_text_convert(t, name, p->value[v->argument[k]].type, v->compute);
        clv_text_add(t, ";\n");
    }
    clv_text_add(t, "        const %s r = %s;\n        t%zu = ", clv_text_variable(v->result),
                 clv_op_text(v->op, v->compute), i);
    clv_text_convert(t, "r", v->result, v->type);
    clv_text_add(t, ";\n    }\n");
}

static void write_kernel(const clv_fusion *f, clv_text *t)
{
    const clv_fused *p = f->program;
    char name[24];
    clv_text_begin(t, p->fp64);
    write_functions(p, t);
    write_parameters(f, t);
    clv_text_places(t, &f->layout);
    for (size_t i = 0; i < p->count; ++i) {
        const clv_fuse_value *v = &p->value[i];
        if (v->kind == FUSE_INPUT)
            write_input(f, v, i, t);
        else if (v->kind == FUSE_NUMBER)
            write_number(t, v, i);
        else
            write_step(p, v, i, t);
    }
    for (size_t i = 0; i < p->outputs; ++i) {
        snprintf(name, sizeof name, "t%u", p->output[i]);
        clv_text_store(t, &f->layout, p->inputs + i, p->output_type[i], name, p->output_type[i]);
    }
    clv_text_add(t, "}\n");
}

/* ---- the launch --------------------------------------------------------------------------------- */

clv_status clv_fusion_enqueue(const clv_fusion *f, clv_engine *engine)
{
    const clv_fused *p = f->program;
    clv_text text = { 0 };
    const clv_cl_source *source = NULL;
    write_kernel(f, &text);
    const clv_status status = text.failed
                                  ? clv_fail(CLV_E_MEMORY, "fuse: not enough memory for a kernel")
                                  : clv_texts_get(engine->context, "fuse (generated)",
                                                  clv_text_get(&text), text.length, &source);
    clv_text_clear(&text);
    CLV_TRY(status);
    clv_arg args[MOST_ARGUMENTS];
    const size_t elements = f->array[p->inputs]->elements;
    size_t used = 0;
    args[used++] = clv_arg_u32((uint32_t)elements);
    for (size_t k = 1; k < f->layout.axes; ++k)
        args[used++] = clv_arg_u32((uint32_t)f->layout.extent[k]);
    for (size_t i = 0; i < p->inputs + p->outputs; ++i)
        used += f->array[i] ? clv_text_array_args(&f->layout, i, f->array[i], args + used)
                            : clv_text_number_args(&f->operand[i], p->input_type[i], args + used);
    return clv_text_launch(engine, source, elements, args, used);
}
