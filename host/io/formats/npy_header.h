/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the header of an .npy file. Private to the readers of such files and their tests. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_HEADER_H
#define CLEAVE_HOST_IO_FORMATS_NPY_HEADER_H

#include "host/io/array.h"
#include "host/io/stream.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { CLV_NPY_NATIVE = '<', CLV_NPY_FOREIGN = '>' };
#else
enum { CLV_NPY_NATIVE = '>', CLV_NPY_FOREIGN = '<' };
#endif

typedef struct clv_npy_dtype {
    const char *code; /* dtype without the byte order, such as "f4" */
    size_t size;      /* size of an element in the file */
    clv_type type;    /* type of an element in memory */
    enum { CLV_NPY_AS_IT_IS, CLV_NPY_FROM_INT8, CLV_NPY_FROM_HALF } widen;
} clv_npy_dtype;

typedef struct clv_npy_header {
    const clv_npy_dtype *dtype;
    bool swap, fortran;
    size_t rank, shape[CLV_MAX_RANK];
} clv_npy_header;

/* Parses `text`, the Python dict literal after the header's length field; `path` names the file in messages. */
clv_status clv_npy_header_parse(const char *path, const char *text, size_t length,
                                clv_npy_header *header);

/* Reads magic, version and header; leaves `input` at the first byte of data. */
clv_status clv_npy_header_read(clv_input *input, clv_npy_header *header);

/* Checks that the file holds exactly the data that the header promises, and sets *bytes to their length. `input` must
 * be at the first byte of data. Returns CLV_OK, CLV_E_FORMAT, or CLV_E_SHAPE (larger than any memory). */
clv_status clv_npy_check_length(const clv_input *input, const clv_npy_header *header,
                                size_t *bytes);

/* Reverses the bytes of each element in `data`, `bytes` long; `size`, the bytes per element, is 2, 4 or 8. */
void clv_npy_swap(void *data, size_t bytes, size_t size);

/* Returns the dtype of a clv_type, which a writer puts into the header. */
const char *clv_npy_code(clv_type type);

#endif
