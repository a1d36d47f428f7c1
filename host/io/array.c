/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, converts and frees arrays that are read from files or written to them. */
#include "host/io/array.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [CLV_U8] = { "uint8", 1 },    [CLV_I16] = { "int16", 2 },   [CLV_U16] = { "uint16", 2 },
    [CLV_I32] = { "int32", 4 },   [CLV_U32] = { "uint32", 4 },  [CLV_I64] = { "int64", 8 },
    [CLV_F32] = { "float32", 4 }, [CLV_F64] = { "float64", 8 },
};

size_t clv_type_size(clv_type type)
{
    return types[type].size;
}

const char *clv_type_name(clv_type type)
{
    return types[type].name;
}

size_t clv_file_array_count(const clv_file_array *array)
{
    size_t count = 1; /* cannot overflow: clv_file_array_create checked it */
    for (size_t i = 0; i < array->rank; ++i)
        count *= array->shape[i];
    return count;
}

size_t clv_file_array_bytes(const clv_file_array *array)
{
    return clv_file_array_count(array) * clv_type_size(array->type);
}

bool clv_shape_size(clv_type type, size_t rank, const size_t *shape, size_t *count, size_t *bytes)
{
    size_t elements = 1, all = 0;
    for (size_t i = 0; i < rank; ++i)
        if (!clv_size_mul(elements, shape[i], &elements)) return false;
    if (!clv_size_mul(elements, clv_type_size(type), &all)) return false;
    *count = elements;
    *bytes = all;
    return true;
}

clv_status clv_file_array_create(clv_file_array *array, const char *what, clv_type type,
                                 size_t rank, const size_t *shape)
{
    char text[CLV_SHAPE_TEXT], size[16];
    size_t count, bytes;
    *array = (clv_file_array){ 0 };
    if (rank > CLV_MAX_RANK)
        return clv_fail(CLV_E_SHAPE, "%s: the array has %zu axes, but at most %d are supported",
                        what, rank, CLV_MAX_RANK);
    if (!clv_shape_size(type, rank, shape, &count, &bytes))
        return clv_fail(CLV_E_SHAPE, "%s: %s %s needs more memory than can be addressed", what,
                        clv_shape_text(rank, shape, text), clv_type_name(type));

    void *data = clv_alloc_pages(bytes);
    if (!data)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %s %s (%s)", what,
                        clv_shape_text(rank, shape, text), clv_type_name(type),
                        clv_format_bytes(bytes, size));
    array->type = type;
    array->rank = rank;
    if (rank) memcpy(array->shape, shape, rank * sizeof *shape);
    array->data = data;
    return CLV_OK;
}

/* Defines a conversion loop from the type `from`: a cast, which rounds once. */
#define CONVERT_FROM(from)                           \
    for (size_t i = 0; i < count; ++i)               \
        out[i] = (to)((const from *)array->data)[i]; \
    break

static void convert_to_f32(const clv_file_array *array, size_t count, float *restrict out)
{
    typedef float to;
    switch (array->type) {
    case CLV_U8:
        CONVERT_FROM(uint8_t);
    case CLV_I16:
        CONVERT_FROM(int16_t);
    case CLV_U16:
        CONVERT_FROM(uint16_t);
    case CLV_I32:
        CONVERT_FROM(int32_t);
    case CLV_U32:
        CONVERT_FROM(uint32_t);
    case CLV_I64:
        CONVERT_FROM(int64_t);
    case CLV_F32:
        CONVERT_FROM(float);
    case CLV_F64:
        CONVERT_FROM(double);
    }
}

static void convert_to_f64(const clv_file_array *array, size_t count, double *restrict out)
{
    typedef double to;
    switch (array->type) {
    case CLV_U8:
        CONVERT_FROM(uint8_t);
    case CLV_I16:
        CONVERT_FROM(int16_t);
    case CLV_U16:
        CONVERT_FROM(uint16_t);
    case CLV_I32:
        CONVERT_FROM(int32_t);
    case CLV_U32:
        CONVERT_FROM(uint32_t);
    case CLV_I64:
        CONVERT_FROM(int64_t);
    case CLV_F32:
        CONVERT_FROM(float);
    case CLV_F64:
        CONVERT_FROM(double);
    }
}

clv_status clv_file_array_convert(clv_file_array *array, const char *what, clv_type type)
{
    if (array->type == type) return CLV_OK;
    if (type != CLV_F32 && type != CLV_F64)
        return clv_fail(CLV_E_ARGUMENT, "%s: arrays are converted to float32 or float64, not to %s",
                        what, clv_type_name(type));
    clv_file_array converted;
    CLV_TRY(clv_file_array_create(&converted, what, type, array->rank, array->shape));
    const size_t count = clv_file_array_count(array);
    if (type == CLV_F32)
        convert_to_f32(array, count, converted.data);
    else
        convert_to_f64(array, count, converted.data);
    clv_file_array_clear(array);
    *array = converted;
    return CLV_OK;
}

void clv_file_array_clear(clv_file_array *array)
{
    clv_free(array->data);
    *array = (clv_file_array){ 0 };
}

const char *clv_shape_text(size_t rank, const size_t *shape, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < rank && used < CLV_SHAPE_TEXT - 22; ++i)
        used +=
            (size_t)snprintf(out + used, CLV_SHAPE_TEXT - used, "%c%zu", i ? ',' : '[', shape[i]);
    snprintf(out + used, CLV_SHAPE_TEXT - used, rank ? "]" : "[]");
    return out;
}
