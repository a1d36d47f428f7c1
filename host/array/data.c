/* SPDX-License-Identifier: Apache-2.0 */
/* Implements arrays, which are shapes and strides over a storage, and views of the same storage. */
#include "host/array/data.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/pending.h"

#include <string.h>

static const size_t most_elements = (size_t)1 << 31;

/* Reads a shape and gives the array the strides of a dense array of that shape. */
static clv_status read_shape(const char *what, size_t most_axes, size_t rank, const size_t *shape,
                             clv_array *array)
{
    if (rank > most_axes)
        return clv_fail(CLV_E_SHAPE, "%s: the array has %zu axes, but at most %zu are supported",
                        what, rank, most_axes);
    if (rank && !shape) return clv_fail(CLV_E_ARGUMENT, "%s: shape is NULL", what);
    size_t elements = 1, span = 1;
    for (size_t i = 0; i < rank; ++i) {
        /* the other extents must fit memory even if one extent is 0 */
        if (!clv_size_mul(span, shape[i] ? shape[i] : 1, &span) || span >= most_elements)
            return clv_fail(
                CLV_E_SHAPE,
                "%s: the array would have 2^31 elements or more, which is not supported", what);
        elements *= shape[i];
    }
    ptrdiff_t step = 1;
    for (size_t i = CLV_ARRAY_RANK; i-- > 0;) {
        array->shape[i] = i < rank ? shape[i] : 1;
        array->stride[i] = array->shape[i] > 1 ? step : 0;
        step *= (ptrdiff_t)array->shape[i];
    }
    array->rank = rank;
    array->elements = elements;
    return CLV_OK;
}

/* Makes an array with a new storage. */
static clv_status make(const char *what, clv_context *context, clv_dtype type, void *wrapped,
                       clv_array *with_shape, clv_array **out)
{
    clv_array *array = clv_alloc(1, sizeof *array);
    clv_storage *storage =
        array ? clv_storage_make(context, with_shape->elements * clv_dtype_bytes(type), wrapped)
              : NULL;
    if (!storage) {
        clv_free(array);
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
    }
    *array = *with_shape;
    array->context = context;
    array->storage = storage;
    array->type = type;
    array->host = wrapped;
    *out = array;
    return CLV_OK;
}

static clv_status check_new(const char *what, const clv_context *context, clv_dtype type,
                            clv_array **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "%s: the pointer for the new array is NULL", what);
    *out = NULL;
    if (!context) return clv_fail(CLV_E_ARGUMENT, "%s: context is NULL", what);
    if (!clv_dtype_bytes(type))
        return clv_fail(CLV_E_ARGUMENT, "%s: %d is not one of clv_dtype", what, (int)type);
    return CLV_OK;
}

clv_status clv_array_begin(const char *what, clv_context *context, clv_dtype type, size_t rank,
                           const size_t *shape, clv_array **out)
{
    clv_array made = { 0 };
    CLV_TRY(check_new(what, context, type, out));
    CLV_TRY(read_shape(what, CLV_ARRAY_RANK, rank, shape, &made));
    return make(what, context, type, NULL, &made, out);
}

clv_status clv_array_make(clv_context *context, clv_dtype type, size_t rank, const size_t *shape,
                          clv_array **out)
{
    return clv_array_begin("array", context, type, rank, shape, out);
}

static clv_status wrap(clv_context *context, clv_dtype type, void *host, size_t rank,
                       const size_t *shape, clv_array **out)
{
    clv_array made = { 0 };
    CLV_TRY(check_new("array", context, type, out));
    CLV_TRY(read_shape("array", CLV_ARRAY_RANK, rank, shape, &made));
    if (!host && made.elements)
        return clv_fail(CLV_E_ARGUMENT, "array: the memory to wrap is NULL");
    return make("array", context, type, made.elements ? host : NULL, &made, out);
}

clv_status clv_array_make_wrap(clv_context *context, clv_dtype type, void *host, size_t rank,
                               const size_t *shape, clv_array **out)
{
    if (out) *out = NULL;
    const size_t align = type == CLV_C64 ? 4 : type == CLV_C128 ? 8 : clv_dtype_bytes(type);
    if (align && (uintptr_t)host % align)
        return clv_fail(CLV_E_ARGUMENT, "array: memory at %p is not aligned to %s", host,
                        clv_dtype_name(type));
    return wrap(context, type, host, rank, shape, out);
}

/* Checks the shape of a float32 array for the older functions, which refuse extents of 0 and more than CLV_ARRAY_AXES
 * axes. */
static clv_status check_old(clv_context *context, size_t rank, const size_t *shape, clv_array **out)
{
    clv_array made;
    CLV_TRY(check_new("array", context, CLV_F32, out));
    for (size_t i = 0; i < rank && shape && rank <= CLV_ARRAY_AXES; ++i)
        if (!shape[i])
            return clv_fail(CLV_E_SHAPE, "array: axis %zu has extent 0, but it must be at least 1",
                            i);
    return read_shape("array", CLV_ARRAY_AXES, rank, shape, &made);
}

clv_status clv_array_create(clv_context *context, size_t rank, const size_t *shape, clv_array **out)
{
    CLV_TRY(check_old(context, rank, shape, out));
    return clv_array_make(context, CLV_F32, rank, shape, out);
}

clv_status clv_array_wrap(clv_context *context, float *host, size_t rank, const size_t *shape,
                          clv_array **out)
{
    if (out) *out = NULL;
    if (!host) return clv_fail(CLV_E_ARGUMENT, "array: the memory to wrap is NULL");
    CLV_TRY(check_old(context, rank, shape, out));
    return wrap(context, CLV_F32, host, rank, shape, out);
}

void clv_array_free(clv_array *array)
{
    if (!array) return;
    clv_storage_release(array->storage);
    clv_free(array);
}

/* ---- properties of an array ---------------------------------------------------------------------- */

size_t clv_array_rank(const clv_array *array)
{
    return array->rank;
}

const size_t *clv_array_shape(const clv_array *array)
{
    return array->shape;
}

size_t clv_array_elements(const clv_array *array)
{
    return array->elements;
}

clv_dtype clv_array_type(const clv_array *array)
{
    return array->type;
}

const ptrdiff_t *clv_array_strides(const clv_array *array)
{
    return array->stride;
}

size_t clv_array_offset(const clv_array *array)
{
    return array->offset;
}

size_t clv_array_bytes(const clv_array *array)
{
    return array->elements * clv_dtype_bytes(array->type);
}

bool clv_array_is_on_device(const clv_array *array)
{
    clv_pending_settle_array(array);
    return array->storage->on_device;
}

bool clv_array_is_dense(const clv_array *array)
{
    ptrdiff_t step = 1;
    for (size_t i = array->rank; i-- > 0 && array->elements;) {
        if (array->shape[i] > 1 && array->stride[i] != step) return false;
        step *= (ptrdiff_t)array->shape[i];
    }
    return true;
}

bool clv_array_is_whole(const clv_array *array)
{
    return clv_array_is_dense(array) && !array->offset &&
           clv_array_bytes(array) == array->storage->bytes;
}

clv_status clv_array_check_any(const char *what, const clv_context *context, const clv_array *array)
{
    if (!context || !array) return clv_fail(CLV_E_ARGUMENT, "%s: context or array is NULL", what);
    if (array->context != context)
        return clv_fail(CLV_E_ARGUMENT, "%s: the array belongs to another context", what);
    return CLV_OK;
}

clv_status clv_array_check(const char *what, const clv_context *context, const clv_array *array)
{
    CLV_TRY(clv_array_check_any(what, context, array));
    if (!array->elements) return clv_fail(CLV_E_SHAPE, "%s: the array has no elements", what);
    if (array->rank > CLV_ARRAY_AXES)
        return clv_fail(CLV_E_SHAPE, "%s: the array has %zu axes, but at most %d are supported",
                        what, array->rank, CLV_ARRAY_AXES);
    if (array->type != CLV_F32 || !clv_array_is_whole(array))
        return clv_fail(
            CLV_E_ARGUMENT,
            "%s: expected a whole array of float32, but got %s of %s; clv_array_cast makes one",
            what, clv_array_is_whole(array) ? "an array" : "a view", clv_dtype_name(array->type));
    return CLV_OK;
}

bool clv_array_overlap(const clv_array *a, const clv_array *b)
{
    return a != b && clv_storage_overlap(a->storage, b->storage);
}

clv_status clv_array_host(clv_array *array, void **host)
{
    void *first = NULL;
    if (!array || !host) return clv_fail(CLV_E_ARGUMENT, "array: the array or the pointer is NULL");
    *host = NULL;
    CLV_TRY(clv_storage_expose(array->storage, &first));
    *host = first ? (char *)first + array->offset * clv_dtype_bytes(array->type) : NULL;
    return CLV_OK;
}

/* ---- other shapes -------------------------------------------------------------------------------- */

clv_status clv_array_reshape(clv_array *array, size_t rank, const size_t *shape)
{
    clv_array other = { 0 };
    if (!array) return clv_fail(CLV_E_ARGUMENT, "reshape: array is NULL");
    CLV_TRY(read_shape("reshape", CLV_ARRAY_RANK, rank, shape, &other));
    if (other.elements != array->elements)
        return clv_fail(CLV_E_SHAPE,
                        "reshape: the new shape has %zu elements, but the array has %zu",
                        other.elements, array->elements);
    if (!clv_array_is_dense(array))
        return clv_fail(CLV_E_SHAPE,
                        "reshape: the array is a view that is not dense; copy it first");
    array->rank = other.rank;
    memcpy(array->shape, other.shape, sizeof array->shape);
    memcpy(array->stride, other.stride, sizeof array->stride);
    return CLV_OK;
}

/* Finds the least and the greatest offset of a view's elements, in elements relative to the first one. */
static bool find_range(size_t rank, const size_t *shape, const ptrdiff_t *stride, ptrdiff_t *least,
                       ptrdiff_t *most)
{
    *least = *most = 0;
    for (size_t i = 0; i < rank; ++i) {
        ptrdiff_t reach;
        if (shape[i] < 2) continue;
        if (__builtin_mul_overflow(stride[i], (ptrdiff_t)(shape[i] - 1), &reach) ||
            __builtin_add_overflow(reach < 0 ? *least : *most, reach, reach < 0 ? least : most))
            return false;
    }
    return true;
}

clv_status clv_array_view_as(clv_array *array, clv_dtype type, ptrdiff_t offset, size_t rank,
                             const size_t *shape, const ptrdiff_t *stride, clv_array **out)
{
    clv_array view = { 0 };
    ptrdiff_t least = 0, most = 0, first = 0;
    if (!out) return clv_fail(CLV_E_ARGUMENT, "view: the pointer for the new array is NULL");
    *out = NULL;
    if (!array || (rank && !stride))
        return clv_fail(CLV_E_ARGUMENT, "view: array or strides is NULL");
    const size_t size = clv_dtype_bytes(type);
    if (!size) return clv_fail(CLV_E_ARGUMENT, "view: %d is not one of clv_dtype", (int)type);
    const size_t start = array->offset * clv_dtype_bytes(array->type);
    CLV_TRY(read_shape("view", CLV_ARRAY_RANK, rank, shape, &view));
    if (view.elements && start % size)
        return clv_fail(CLV_E_SHAPE,
                        "view: the first element lies at byte %zu of its storage, which is no "
                        "multiple of the %zu bytes of %s; copy the array first",
                        start, size, clv_dtype_name(type));
    const size_t all = array->storage->bytes / size;
    if (view.elements &&
        (!find_range(rank, shape, stride, &least, &most) ||
         __builtin_add_overflow((ptrdiff_t)(start / size), offset, &first) || first < 0 ||
         first >= (ptrdiff_t)all || least < -first || most >= (ptrdiff_t)all - first))
        return clv_fail(CLV_E_SHAPE, "view: an element lies outside the storage of %zu elements",
                        all);
    clv_array *made = clv_alloc(1, sizeof *made);
    if (!made) return clv_fail(CLV_E_MEMORY, "view: out of memory");
    for (size_t i = 0; i < rank; ++i)
        view.stride[i] = shape[i] > 1 ? stride[i] : 0;
    view.context = array->context;
    view.storage = array->storage;
    view.type = type;
    view.offset = view.elements ? (size_t)first : 0;
    clv_storage_retain(view.storage);
    if (view.storage->wraps) view.host = (float *)((char *)view.storage->host + view.offset * size);
    *made = view;
    *out = made;
    return CLV_OK;
}

clv_status clv_array_view(clv_array *array, ptrdiff_t offset, size_t rank, const size_t *shape,
                          const ptrdiff_t *stride, clv_array **out)
{
    return clv_array_view_as(array, array ? array->type : CLV_F32, offset, rank, shape, stride,
                             out);
}
