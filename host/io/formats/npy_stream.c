/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a matrix as an .npy file row by row, or a movie frame by frame. */
#include "host/io/formats/npy_stream.h"

#include "base/alloc.h"
#include "host/io/formats/npy_header.h"

#include <string.h>

enum { HEAD = 128 }; /* bytes of the header: a multiple of 64, with room for every number of rows */

static void make_head(const clv_npy_stream *s, char head[HEAD + 1])
{
    int length = snprintf(head, HEAD,
                          "\x93NUMPY\x01%cHH{'descr': '%cf4', 'fortran_order': False, "
                          "'shape': (%llu, ",
                          0, CLV_NPY_NATIVE, (unsigned long long)s->rows);
    if (s->height) length += snprintf(head + length, (size_t)(HEAD - length), "%zu, ", s->height);
    length += snprintf(head + length, (size_t)(HEAD - length), "%zu), }", s->width);
    while (length < HEAD - 1)
        head[length++] = ' ';
    head[length] = '\n';
    head[8] = HEAD - 10;
    head[9] = 0;
}

clv_status clv_npy_stream_open(clv_npy_stream *s, const char *path, size_t width)
{
    return clv_npy_stream_open_movie(s, path, 0, width);
}

clv_status clv_npy_stream_open_movie(clv_npy_stream *s, const char *path, size_t height,
                                     size_t width)
{
    char head[HEAD + 1];
    s->height = height, s->width = width;
    s->rows = 0;
    make_head(s, head);
    clv_status status = clv_output_open(&s->output, path, true);
    if (!status) status = clv_output_write(&s->output, head, HEAD);
    if (status) clv_npy_stream_abandon(s);
    return status;
}

clv_status clv_npy_stream_add(clv_npy_stream *s, const float *values, size_t rows)
{
    s->rows += rows;
    return clv_output_write(&s->output, values,
                            rows * CLV_MAX(s->height, (size_t)1) * s->width * sizeof *values);
}

clv_status clv_npy_stream_finish(clv_npy_stream *s)
{
    char head[HEAD + 1];
    make_head(s, head);
    clv_status status = clv_output_patch(&s->output, head, HEAD);
    if (!status) status = clv_output_finish(&s->output);
    clv_npy_stream_abandon(s);
    return status;
}

void clv_npy_stream_abandon(clv_npy_stream *s)
{
    clv_output_abandon(&s->output);
    *s = (clv_npy_stream){ 0 };
}
