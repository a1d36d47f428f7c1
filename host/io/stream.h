/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in: a regular file read exactly. */
#ifndef CLEAVE_HOST_IO_STREAM_H
#define CLEAVE_HOST_IO_STREAM_H

#include <cleave/status.h>

#include <stddef.h>
#include <stdint.h>

/* A regular file, so that its length is known before anything is allocated for it. */
typedef struct clv_input {
    const char *path; /* borrowed, for messages */
    int descriptor;
    uint64_t length, position;
} clv_input;

/* CLV_E_IO: cannot be opened, or is a directory, pipe or device. */
clv_status clv_input_open(clv_input *input, const char *path);
/* The next `length` bytes. CLV_E_IO; CLV_E_FORMAT: the file ends before. */
clv_status clv_input_read(clv_input *input, void *out, size_t length);
/* Bytes from anywhere, `position` stays. CLV_E_IO; CLV_E_FORMAT: the file ends before. */
clv_status clv_input_read_at(const clv_input *input, uint64_t offset, void *out, size_t length);
/* The next byte to be read. CLV_E_IO: beyond the end. */
clv_status clv_input_seek(clv_input *input, uint64_t position);
void clv_input_close(clv_input *input);

/* What was found in a file, fit for a message: bytes outside ASCII as \xNN, long text cut.
 * `out` is returned. */
const char *clv_printable(const void *bytes, size_t length, char *out, size_t capacity);

#endif
