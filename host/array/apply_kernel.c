/* SPDX-License-Identifier: Apache-2.0 */
/* clv_array_apply on a device: writes one kernel per operation, types and number of axes, and launches it.
 *
 * Launch: one work-item per element of the result, in its row-major order, so that neighbours read neighbours wherever
 * the strides allow it. Nothing is shared; the kernel is bound by memory. Numbers are arguments, so that a number which
 * changes from call to call does not make another kernel. */
#include "host/array/apply.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/device.h"
#include "runtime/program/texts.h"

#include <string.h>

enum { GROUP = 32, MOST_ARGUMENTS = 2 + CLV_ARRAY_RANK + APPLY_ARRAYS * (2 + CLV_ARRAY_RANK) };

static const char *const names[CLV_DTYPES] = {
    [CLV_F32] = "float",  [CLV_BOOL] = "uchar",   [CLV_I8] = "char",  [CLV_I16] = "short",
    [CLV_I32] = "int",    [CLV_I64] = "long",     [CLV_U8] = "uchar", [CLV_U16] = "ushort",
    [CLV_U32] = "uint",   [CLV_U64] = "ulong",    [CLV_F16] = "half", [CLV_F64] = "double",
    [CLV_C64] = "float2", [CLV_C128] = "double2",
};

/* The type of variables: float16 is computed as float32. */
static const char *variable(clv_dtype type)
{
    return type == CLV_F16 ? "float" : names[type];
}

static bool is_flat(const clv_apply *a, size_t i)
{
    const ptrdiff_t step = a->layout.stride[i][0];
    return a->layout.axes == 1 && (step == 0 || step == 1);
}

bool clv_apply_has_kernel(const clv_apply *a)
{
    const char *text = clv_op_text(a->op, a->compute);
    return text && strncmp(text, "HOST_", 5) != 0;
}

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
    const size_t axes = a->layout.axes;
    clv_text_add(t, "__kernel void clv_apply(uint n");
    for (size_t k = 1; k < axes; ++k)
        clv_text_add(t, ", uint e%zu", k);
    for (size_t i = 0; i < APPLY_ARRAYS; ++i) {
        const bool out = i == CLV_OP_INPUTS;
        if (i >= a->inputs && !out) continue;
        if (!out && !a->array[i]) {
            const clv_number_kind kind = clv_kind_of(a->compute);
            if (kind == KIND_COMPLEX)
                clv_text_add(t, ", PART v%zu, PART w%zu", i, i);
            else
                clv_text_add(t, ", %s v%zu",
                             kind == KIND_INT     ? "long"
                             : kind == KIND_UINT  ? "ulong"
                             : kind == KIND_FLOAT ? "float"
                                                  : "double",
                             i);
            continue;
        }
        clv_text_add(t, ", __global %s%s *p%zu, ulong o%zu", out ? "" : "const ",
                     names[a->array[i]->type], i, i);
        for (size_t k = 0; k < axes && !is_flat(a, i); ++k)
            clv_text_add(t, ", long s%zu%zu", i, k);
    }
    clv_text_add(t, ")\n");
}

static void write_place(const clv_apply *a, size_t i, clv_text *t)
{
    const size_t axes = a->layout.axes;
    clv_text_add(t, "    const size_t i%zu = o%zu", i, i);
    if (is_flat(a, i) && a->layout.stride[i][0]) clv_text_add(t, " + at");
    for (size_t k = 0; k < axes && !is_flat(a, i); ++k)
        clv_text_add(t, " + (long)c%zu * s%zu%zu", k, i, k);
    clv_text_add(t, ";\n");
}

static void write_load(const clv_apply *a, size_t i, clv_text *t)
{
    const char letter = (char)('x' + i);
    const bool complex = clv_dtype_is_complex(a->compute);
    if (!a->array[i]) {
        if (complex)
            clv_text_add(t, "    const CT %c = (CT)(v%zu, w%zu);\n", letter, i, i);
        else
            clv_text_add(t, "    const CT %c = (CT)v%zu;\n", letter, i);
        return;
    }
    const clv_dtype type = a->array[i]->type;
    write_place(a, i, t);
    if (type == CLV_F16)
        clv_text_add(t, "    const float l%zu = vload_half(i%zu, p%zu);\n", i, i, i);
    else
        clv_text_add(t, "    const %s l%zu = p%zu[i%zu];\n", names[type], i, i, i);
    const bool parts = clv_dtype_is_complex(type);
    if (complex && parts)
        clv_text_add(t, "    const CT %c = (CT)(l%zu.x, l%zu.y);\n", letter, i, i);
    else if (complex)
        clv_text_add(t, "    const CT %c = (CT)((PART)l%zu, 0);\n", letter, i);
    else
        clv_text_add(t, "    const CT %c = (CT)l%zu%s;\n", letter, i, parts ? ".x" : "");
}

static void write_store(const clv_apply *a, clv_text *t)
{
    const clv_dtype to = a->out->type;
    const bool complex = clv_dtype_is_complex(a->result);
    const char *part = complex ? ".x" : "";
    write_place(a, CLV_OP_INPUTS, t);
    clv_text_add(t, "    ");
    if (to == CLV_F16)
        clv_text_add(t, "vstore_half_rte((float)v%s, i3, p3);\n", part);
    else if (to == CLV_BOOL && complex)
        clv_text_add(t, "p3[i3] = v.x != 0 || v.y != 0;\n");
    else if (to == CLV_BOOL)
        clv_text_add(t, "p3[i3] = v != 0;\n");
    else if (clv_dtype_is_complex(to) && complex)
        clv_text_add(t, "p3[i3] = (%s)(v.x, v.y);\n", names[to]);
    else if (clv_dtype_is_complex(to))
        clv_text_add(t, "p3[i3] = (%s)(v, 0);\n", names[to]);
    else
        clv_text_add(t, "p3[i3] = (%s)v%s;\n", names[to], part);
}

void clv_apply_write(const clv_apply *a, clv_text *t)
{
    const clv_number_kind kind = clv_kind_of(a->compute);
    clv_text_add(t, "#define CT %s\n#define CT_KIND %d\n#define CT_SIGNED %d\n#define FP64 %d\n",
                 variable(a->compute),
                 kind <= KIND_UINT      ? 0
                 : kind == KIND_COMPLEX ? 2
                                        : 1,
                 kind == KIND_INT, needs_fp64(a));
    if (kind == KIND_COMPLEX)
        clv_text_add(t, "#define PART %s\n", a->compute == CLV_C64 ? "float" : "double");
    clv_text_add(t, "#define PLACE ((CT)at)\n#include \"array/apply.clh\"\n\n");
    write_parameters(a, t);
    clv_text_add(t, "{\n    const size_t at = get_global_id(0);\n    if (at >= n) return;\n");
    const size_t axes = a->layout.axes;
    if (axes > 1) clv_text_add(t, "    uint rest = (uint)at;\n");
    for (size_t k = axes; k-- > 1;)
        clv_text_add(t, "    const uint c%zu = rest %% e%zu;\n    rest /= e%zu;\n", k, k, k);
    clv_text_add(t, "    const uint c0 = %s;\n    (void)c0;\n", axes > 1 ? "rest" : "(uint)at");
    for (size_t i = 0; i < a->inputs; ++i)
        write_load(a, i, t);
    clv_text_add(t, "    const %s v = %s;\n", variable(a->result), clv_op_text(a->op, a->compute));
    write_store(a, t);
    clv_text_add(t, "}\n");
}

/* ---- the launch --------------------------------------------------------------------------------- */

static size_t add_number(const clv_operand *o, clv_dtype compute, clv_arg *args)
{
    const bool whole = clv_kind_of(o->type) <= KIND_UINT;
    const int64_t bits = o->type == CLV_BOOL ? o->whole != 0 : o->whole;
    const double real = !whole                              ? o->real
                        : clv_kind_of(o->type) == KIND_UINT ? (double)(uint64_t)bits
                                                            : (double)bits;
    const double imaginary = whole ? 0 : o->imaginary;
    switch (compute) {
    case CLV_C64:
        args[0] = clv_arg_f32((float)real), args[1] = clv_arg_f32((float)imaginary);
        return 2;
    case CLV_C128:
        args[0] = clv_arg_f64(real), args[1] = clv_arg_f64(imaginary);
        return 2;
    case CLV_F16:
    case CLV_F32:
        args[0] = clv_arg_f32((float)real);
        return 1;
    case CLV_F64:
        args[0] = clv_arg_f64(real);
        return 1;
    default:
        args[0] = clv_arg_i64(whole ? bits : (int64_t)real);
        return 1;
    }
}

clv_status clv_apply_enqueue(const clv_apply *a, clv_engine *engine)
{
    clv_text text = { 0 };
    clv_launch launch = { .size = sizeof(clv_launch), .kernel = "clv_apply" };
    clv_apply_write(a, &text);
    const clv_status status =
        text.failed ? clv_fail(CLV_E_MEMORY, "%s: no memory for a kernel", clv_op_name(a->op))
                    : clv_texts_get(engine->context, "apply (generated)", clv_text_get(&text),
                                    text.length, &launch.source);
    clv_text_clear(&text);
    CLV_TRY(status);
    const clv_apply_layout *l = &a->layout;
    clv_arg args[MOST_ARGUMENTS];
    size_t used = 0;
    args[used++] = clv_arg_u32((uint32_t)a->out->elements);
    for (size_t k = 1; k < l->axes; ++k)
        args[used++] = clv_arg_u32((uint32_t)l->extent[k]);
    for (size_t i = 0; i < APPLY_ARRAYS; ++i) {
        if (i >= a->inputs && i != CLV_OP_INPUTS) continue;
        if (!a->array[i]) {
            used += add_number(&a->operand[i], a->compute, args + used);
            continue;
        }
        args[used++] = clv_arg_buffer(a->array[i]->at);
        args[used++] = clv_arg_u64(a->array[i]->offset);
        for (size_t k = 0; k < l->axes && !is_flat(a, i); ++k)
            args[used++] = clv_arg_i64(l->stride[i][k]);
    }
    launch.global[0] = clv_round_up(a->out->elements, GROUP);
    launch.local[0] = GROUP;
    return clv_launch_enqueue(engine->queue, &launch, args, used, NULL);
}
