/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the pieces of kernels that compute element by element.
 *
 * Launch: one work-item per element of the result, in its row-major order, so that neighbours read neighbours wherever
 * the strides allow it. Nothing is shared; the kernels are bound by memory. */
#include "host/array/kernel_text.h"

#include "base/alloc.h"
#include "host/array/group.h"

static const char *const names[CLV_DTYPES] = {
    [CLV_F32] = "float",  [CLV_BOOL] = "uchar",   [CLV_I8] = "char",  [CLV_I16] = "short",
    [CLV_I32] = "int",    [CLV_I64] = "long",     [CLV_U8] = "uchar", [CLV_U16] = "ushort",
    [CLV_U32] = "uint",   [CLV_U64] = "ulong",    [CLV_F16] = "half", [CLV_F64] = "double",
    [CLV_C64] = "float2", [CLV_C128] = "double2",
};

const char *clv_text_variable(clv_dtype type)
{
    return type == CLV_F16 ? "float" : names[type];
}

/* ---- types -------------------------------------------------------------------------------------- */

void clv_text_begin(clv_text *t, bool fp64)
{
    clv_text_add(t, "#define FP64 %d\n#include \"array/apply.clh\"\n\n", fp64);
}

void clv_text_functions(clv_text *t, clv_dtype compute)
{
    static const char *const kinds[] = { "SIGNED", "UNSIGNED", "REAL", "REAL", "COMPLEX" };
    const clv_number_kind kind = clv_kind_of(compute);
    clv_text_add(t, "APPLY_%s(%s%s)\n", kinds[kind], clv_text_variable(compute),
                 kind != KIND_COMPLEX ? ""
                 : compute == CLV_C64 ? ", float"
                                      : ", double");
}

void clv_text_compute_in(clv_text *t, clv_dtype compute)
{
    clv_text_add(t, "#undef CT\n#define CT %s\n", clv_text_variable(compute));
}

void clv_text_convert(clv_text *t, const char *name, clv_dtype from, clv_dtype to)
{
    const bool parts = clv_dtype_is_complex(from);
    const char *const as = clv_text_variable(to), *const real = parts ? ".x" : "";
    if (clv_dtype_is_complex(to) && parts)
        clv_text_add(t, "(%s)(%s.x, %s.y)", as, name, name);
    else if (clv_dtype_is_complex(to))
        clv_text_add(t, "(%s)(%s, 0)", as, name);
    else if (to == CLV_BOOL && parts)
        clv_text_add(t, "%s.x != 0 || %s.y != 0", name, name);
    else if (to == CLV_BOOL)
        clv_text_add(t, "%s != 0", name);
    else
        clv_text_add(t, "(%s)%s%s", as, name, real);
}

/* ---- parameters ---------------------------------------------------------------------------------- */

void clv_text_array(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, bool written)
{
    clv_text_add(t, ", __global %s%s *p%zu, ulong o%zu", written ? "" : "const ", names[type], i,
                 i);
    for (size_t k = 0; k < l->axes && !clv_layout_is_flat(l, i); ++k)
        clv_text_add(t, ", long s%zu%zu", i, k);
}

void clv_text_number(clv_text *t, size_t i, clv_dtype compute)
{
    static const char *const wide[] = { "long", "ulong", "float", "double" };
    const clv_number_kind kind = clv_kind_of(compute);
    const char *const part = compute == CLV_C64 ? "float" : "double";
    if (kind == KIND_COMPLEX)
        clv_text_add(t, ", %s v%zu, %s w%zu", part, i, part, i);
    else
        clv_text_add(t, ", %s v%zu", wide[kind], i);
}

size_t clv_text_array_args(const clv_layout *l, size_t i, const clv_array *array, clv_arg *args)
{
    size_t used = 0;
    args[used++] = clv_arg_buffer(array->at);
    args[used++] = clv_arg_u64(array->offset);
    for (size_t k = 0; k < l->axes && !clv_layout_is_flat(l, i); ++k)
        args[used++] = clv_arg_i64(l->stride[i][k]);
    return used;
}

size_t clv_text_number_args(const clv_operand *o, clv_dtype compute, clv_arg *args)
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
    default: {
        const bool natural = clv_kind_of(compute) == KIND_UINT;
        const int64_t cut = natural ? (int64_t)clv_to_uint(real) : clv_to_int(real);
        args[0] = clv_arg_i64(whole ? bits : cut);
        return 1;
    }
    }
}

/* ---- elements ------------------------------------------------------------------------------------ */

void clv_text_places(clv_text *t, const clv_layout *l)
{
    clv_text_add(t, "{\n    const size_t at = get_global_id(0);\n    if (at >= n) return;\n");
    if (l->axes > 1) clv_text_add(t, "    uint rest = (uint)at;\n");
    for (size_t k = l->axes; k-- > 1;)
        clv_text_add(t, "    const uint c%zu = rest %% e%zu;\n    rest /= e%zu;\n", k, k, k);
    clv_text_add(t, "    const uint c0 = %s;\n    (void)c0;\n", l->axes > 1 ? "rest" : "(uint)at");
}

static void write_place(clv_text *t, const clv_layout *l, size_t i)
{
    clv_text_add(t, "    const size_t i%zu = o%zu", i, i);
    if (clv_layout_is_flat(l, i) && l->stride[i][0]) clv_text_add(t, " + at");
    for (size_t k = 0; k < l->axes && !clv_layout_is_flat(l, i); ++k)
        clv_text_add(t, " + (long)c%zu * s%zu%zu", k, i, k);
    clv_text_add(t, ";\n");
}

void clv_text_load(clv_text *t, const clv_layout *l, size_t i, clv_dtype type)
{
    write_place(t, l, i);
    if (type == CLV_F16)
        clv_text_add(t, "    const float l%zu = vload_half(i%zu, p%zu);\n", i, i, i);
    else
        clv_text_add(t, "    const %s l%zu = p%zu[i%zu];\n", names[type], i, i, i);
}

void clv_text_store(clv_text *t, const clv_layout *l, size_t i, clv_dtype type, const char *name,
                    clv_dtype from)
{
    write_place(t, l, i);
    clv_text_add(t, type == CLV_F16 ? "    vstore_half_rte(" : "    p%zu[i%zu] = ", i, i);
    clv_text_convert(t, name, from, type);
    if (type == CLV_F16) clv_text_add(t, ", i%zu, p%zu)", i, i);
    clv_text_add(t, ";\n");
}

clv_status clv_text_launch(clv_engine *engine, const clv_cl_source *source, size_t elements,
                           const clv_arg *args, size_t count)
{
    const size_t group =
        clv_array_group(clv_device_facts(clv_queue_device(engine->queue)), elements);
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = source,
                                .kernel = "clv_apply",
                                .global = { clv_round_up(elements, group) },
                                .local = { group } };
    return clv_launch_enqueue(engine->queue, &launch, args, count, NULL);
}
