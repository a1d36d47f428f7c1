/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes matrices of bytes in .npy files, some rows at a time. */
#include "host/io/formats/npy_codes.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>

static clv_status check(const clv_input *input, const clv_npy_header *h)
{
    char shape[CLV_SHAPE_TEXT];
    clv_shape_text(h->rank, h->shape, shape);
    if (h->rank != 2 || !h->shape[1])
        return clv_fail(CLV_E_SHAPE, "%s: the array is %s; expected [rows, bytes]", input->path,
                        shape);
    if (h->dtype->size != 1)
        return clv_fail(CLV_E_FORMAT, "%s: the array is of %s; expected codes in int8 or uint8",
                        input->path, h->dtype->code);
    if (h->fortran && h->shape[0] > 1 && h->shape[1] > 1)
        return clv_fail(CLV_E_FORMAT, "%s: the array is in Fortran order; expected C order",
                        input->path);
    size_t bytes;
    return clv_npy_check_length(input, h, &bytes);
}

clv_status clv_npy_codes_open(clv_npy_codes *f, const char *path)
{
    clv_npy_header header;
    CLV_TRY(clv_input_open(&f->input, path));
    clv_status status = clv_npy_header_read(&f->input, &header);
    f->data = f->input.position;
    if (!status) status = check(&f->input, &header);
    if (status) {
        clv_input_close(&f->input);
        *f = (clv_npy_codes){ 0 };
        return status;
    }
    f->rows = header.shape[0], f->bytes = header.shape[1];
    f->is_signed = header.dtype->widen == CLV_NPY_FROM_INT8;
    return CLV_OK;
}

clv_status clv_npy_codes_read(const clv_npy_codes *f, size_t first, size_t count, void *out)
{
    return clv_input_read_at(&f->input, f->data + (uint64_t)first * f->bytes, out,
                             count * f->bytes);
}

void clv_npy_codes_close(clv_npy_codes *f)
{
    if (f->bytes) clv_input_close(&f->input);
    *f = (clv_npy_codes){ 0 };
}

clv_status clv_npy_codes_create(clv_output *output, const char *path, size_t rows, size_t bytes,
                                bool is_signed)
{
    enum { HEAD = 128 }; /* bytes of the header: a multiple of 64, with room for every shape */
    char head[HEAD + 1];
    int length = snprintf(head, HEAD,
                          "\x93NUMPY\x01%cHH{'descr': '|%s', 'fortran_order': False, "
                          "'shape': (%zu, %zu), }",
                          0, is_signed ? "i1" : "u1", rows, bytes);
    while (length < HEAD - 1)
        head[length++] = ' ';
    head[length] = '\n';
    head[8] = HEAD - 10;
    head[9] = 0;
    clv_status status = clv_output_open(output, path, false);
    if (!status) status = clv_output_write(output, head, HEAD);
    if (status) clv_output_abandon(output);
    return status;
}
