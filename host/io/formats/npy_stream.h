/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a matrix as an .npy file row by row, or a movie frame by frame. The number of rows or frames is written into
 * the header at the end. */
#ifndef CLEAVE_HOST_IO_FORMATS_NPY_STREAM_H
#define CLEAVE_HOST_IO_FORMATS_NPY_STREAM_H

#include "host/io/output.h"

#include <stdint.h>

typedef struct clv_npy_stream {
    clv_output output;
    size_t height, width; /* height 0: a matrix, whose rows have `width` numbers */
    uint64_t rows;        /* rows or frames written so far; a frame has height * width numbers */
} clv_npy_stream;

/* Opens a file for a float32 matrix [rows, width]; clv_output_open describes `path`. Zero-initialise the stream first.
 * Returns CLV_OK, CLV_E_IO or CLV_E_MEMORY. */
clv_status clv_npy_stream_open(clv_npy_stream *stream, const char *path, size_t width);
/* Opens a file for a float32 movie [frames, height, width], whose frames clv_npy_stream_add then writes. */
clv_status clv_npy_stream_open_movie(clv_npy_stream *stream, const char *path, size_t height,
                                     size_t width);
clv_status clv_npy_stream_add(clv_npy_stream *stream, const float *values, size_t rows);
/* Completes the file; leaves no file after a failure. Zeroes *stream. */
clv_status clv_npy_stream_finish(clv_npy_stream *stream);
void clv_npy_stream_abandon(clv_npy_stream *stream);

#endif
