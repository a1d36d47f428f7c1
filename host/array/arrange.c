/* SPDX-License-Identifier: Apache-2.0 */
/* Makes dense copies of arrays, in the order of axes and the type that an operation requires. */
#include "host/array/fold.h"

#include "base/error.h"

clv_status clv_array_arrange(clv_array *in, clv_dtype type, const size_t *order, clv_array **dense)
{
    size_t shape[CLV_ARRAY_RANK];
    ptrdiff_t stride[CLV_ARRAY_RANK];
    clv_array *view;
    for (size_t i = 0; i < in->rank; ++i) {
        shape[i] = in->shape[order[i]];
        stride[i] = in->stride[order[i]];
    }
    CLV_TRY(clv_array_view(in, 0, in->rank, shape, stride, &view));
    if (in->type == type && clv_array_is_dense(view)) {
        *dense = view;
        return CLV_OK;
    }
    const clv_status status = clv_array_cast(view, type, dense);
    clv_array_free(view);
    return status;
}

clv_status clv_array_dense(clv_array *in, clv_dtype type, clv_array **dense)
{
    static const size_t same[CLV_ARRAY_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return clv_array_arrange(in, type, same, dense);
}

clv_status clv_array_pour(clv_array *from, clv_array *out)
{
    CLV_TRY(clv_array_reshape(from, out->rank, out->shape));
    const clv_operand operand = { .array = from };
    return clv_array_apply(out->context, CLV_OP_COPY, &operand, 1, out);
}
