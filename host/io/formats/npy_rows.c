/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of a matrix in an .npy file as float32, some at a time. */
#include "host/io/formats/npy_rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"

#include <string.h>

static clv_status check(const clv_npy_rows *f)
{
    const clv_npy_header *h = &f->header;
    const char *path = f->input.path;
    char shape[CLV_SHAPE_TEXT];
    clv_shape_text(h->rank, h->shape, shape);
    if (h->rank != 2 || !h->shape[1])
        return clv_fail(CLV_E_SHAPE, "%s: the array is %s; expected [rows, width]", path, shape);
    const bool halves = h->dtype->widen == CLV_NPY_FROM_HALF;
    if (!halves && h->dtype->type != CLV_F32 && h->dtype->type != CLV_F64)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the array is of %s; expected float32, float16 or float64", path,
                        h->dtype->code);
    if (h->fortran && h->shape[0] > 1 && h->shape[1] > 1)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the array is in Fortran order; expected C order (save "
                        "numpy.ascontiguousarray of the array)",
                        path);
    size_t bytes;
    return clv_npy_check_length(&f->input, h, &bytes);
}

clv_status clv_npy_rows_open(clv_npy_rows *f, const char *path)
{
    CLV_TRY(clv_input_open(&f->input, path));
    clv_status status = clv_npy_header_read(&f->input, &f->header);
    f->data = f->input.position;
    if (!status) status = check(f);
    if (status) {
        clv_input_close(&f->input);
        *f = (clv_npy_rows){ 0 };
        return status;
    }
    f->rows = f->header.shape[0], f->width = f->header.shape[1];
    return CLV_OK;
}

clv_status clv_npy_rows_read(clv_npy_rows *f, size_t first, size_t count, float *out)
{
    const size_t size = f->header.dtype->size, numbers = count * f->width, bytes = numbers * size;
    const bool direct = size == sizeof(float);
    if (!direct && !clv_reserve(&f->raw, &f->raw_room, bytes, 1))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu rows", f->input.path, count);
    void *raw = direct ? (void *)out : f->raw;
    CLV_TRY(clv_input_read_at(&f->input, f->data + (uint64_t)first * f->width * size, raw, bytes));
    if (f->header.swap) clv_npy_swap(raw, bytes, size);
    if (size == sizeof(double))
        for (size_t i = 0; i < numbers; ++i)
            out[i] = (float)((const double *)raw)[i];
    else if (!direct)
        for (size_t i = 0; i < numbers; ++i)
            out[i] = clv_half_to_float(((const uint16_t *)raw)[i]);
    return CLV_OK;
}

void clv_npy_rows_close(clv_npy_rows *f)
{
    if (f->width) clv_input_close(&f->input);
    clv_free(f->raw);
    *f = (clv_npy_rows){ 0 };
}
