/* SPDX-License-Identifier: Apache-2.0 */
/* Copies arrays, and converts their elements to and from the caller's memory. */
#include "host/array/later.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array_typed.h>

static clv_status give(clv_status status, clv_array *made, clv_array **out)
{
    if (status)
        clv_array_free(made);
    else
        *out = made;
    return status;
}

/* Returns whether the array has no values, and no call will give it any. */
static bool is_blank(const clv_array *array)
{
    const clv_storage *storage = array->storage;
    return !storage->pending && !storage->failure && clv_storage_is_empty(storage) &&
           !storage->planned;
}

/* Copies the elements of `from` into the dense array `made`, converted to its type. */
static clv_status copy_into(clv_array *from, clv_array *made)
{
    const clv_operand operand = { .array = from };
    if (is_blank(from)) return CLV_OK;
    return clv_array_apply(from->context, CLV_OP_COPY, &operand, 1, made);
}

clv_status clv_array_cast(clv_array *array, clv_dtype type, clv_array **out)
{
    clv_array *made;
    if (out) *out = NULL;
    if (!array || !out) return clv_fail(CLV_E_ARGUMENT, "cast: array or result is NULL");
    CLV_TRY(clv_array_begin("cast", array->context, type, array->rank, array->shape, &made));
    return give(copy_into(array, made), made, out);
}

clv_status clv_array_copy(clv_array *array, size_t rank, const size_t *shape, clv_array **out)
{
    clv_array *made;
    if (out) *out = NULL;
    if (!array || !out) return clv_fail(CLV_E_ARGUMENT, "array copy: array or result is NULL");
    CLV_TRY(clv_array_begin("array copy", array->context, array->type, array->rank, array->shape,
                            &made));
    clv_status status = CLV_OK;
    if (clv_later_is_on(array->context) && !array->storage->wraps) {
        status = copy_into(array, made);
        if (!status && shape) status = clv_array_reshape(made, rank, shape);
        return give(status, made, out);
    }
    if (shape) status = clv_array_reshape(made, rank, shape);
    if (!status && clv_array_is_dense(array)) {
        const size_t offset = array->offset * clv_dtype_bytes(array->type);
        status = clv_storage_copy(array->storage, offset, made->storage);
    } else if (!status) {
        clv_array *dense;
        status = clv_array_cast(array, array->type, &dense);
        if (!status) status = clv_storage_copy(dense->storage, 0, made->storage);
        clv_array_free(dense);
    }
    return give(status, made, out);
}

/* ---- the caller's memory ------------------------------------------------------------------------- */

clv_status clv_array_copy_to(clv_array *array, void *host)
{
    if (!array || (!host && array->elements))
        return clv_fail(CLV_E_ARGUMENT, "array get: array or host memory is NULL");
    if (clv_array_is_dense(array))
        return clv_storage_read(array->storage, array->offset * clv_dtype_bytes(array->type), host,
                                clv_array_bytes(array));
    if (is_blank(array))
        return clv_fail(CLV_E_ARGUMENT, "array get: the array has no values yet; fill it first");
    clv_array *dense;
    CLV_TRY(clv_array_cast(array, array->type, &dense));
    const clv_status status = clv_storage_read(dense->storage, 0, host, clv_array_bytes(array));
    clv_array_free(dense);
    return status;
}

clv_status clv_array_get(clv_array *array, float *host)
{
    if (array && array->type != CLV_F32)
        return clv_fail(CLV_E_ARGUMENT,
                        "array get: the array is of %s, not float32; use clv_array_copy_to",
                        clv_dtype_name(array->type));
    return clv_array_copy_to(array, host);
}

/* Returns whether some device cannot compute with the array's type, so that its elements had better stay on the
 * host. */
static bool is_hosts(const clv_array *array)
{
    const bool doubles = array->type == CLV_F64 || array->type == CLV_C128;
    return doubles && clv_array_why_no_fp64(array->context);
}

clv_status clv_array_fill_from(clv_array *array, const void *host)
{
    if (!array || (!host && array->elements))
        return clv_fail(CLV_E_ARGUMENT, "array put: array or host memory is NULL");
    if (!array->elements) return CLV_OK;
    if (clv_array_is_whole(array)) return clv_storage_put(array->storage, host, is_hosts(array));
    clv_array *dense;
    CLV_TRY(clv_array_begin("array put", array->context, array->type, array->rank, array->shape,
                            &dense));
    clv_status status = clv_storage_put(dense->storage, host, !array->storage->on_device);
    const clv_operand operand = { .array = dense };
    if (!status) status = clv_array_apply(array->context, CLV_OP_COPY, &operand, 1, array);
    clv_array_free(dense);
    return status;
}

clv_status clv_array_put(clv_array *array, const float *host)
{
    if (array && array->type != CLV_F32)
        return clv_fail(CLV_E_ARGUMENT,
                        "array put: the array is of %s, not float32; use clv_array_fill_from",
                        clv_dtype_name(array->type));
    return clv_array_fill_from(array, host);
}

clv_status clv_array_make_from(clv_context *context, clv_dtype type, const void *host, size_t rank,
                               const size_t *shape, clv_array **out)
{
    clv_array *made;
    CLV_TRY(clv_array_begin("array", context, type, rank, shape, out ? &made : NULL));
    *out = NULL;
    return give(clv_array_fill_from(made, host), made, out);
}

clv_status clv_array_from(clv_context *context, const float *host, size_t rank, const size_t *shape,
                          clv_array **out)
{
    if (out) *out = NULL;
    if (!host)
        return clv_fail(CLV_E_ARGUMENT,
                        "array: host is NULL, but it must point to the memory to copy from");
    clv_array *made;
    CLV_TRY(clv_array_create(context, rank, shape, out ? &made : NULL));
    return give(clv_array_fill_from(made, host), made, out);
}
