/* SPDX-License-Identifier: Apache-2.0 */
/* Reads exactly as many bytes as requested from a regular file. */
#ifndef CLEAVE_HOST_IO_STREAM_H
#define CLEAVE_HOST_IO_STREAM_H

#include <cleave/status.h>

#include <stddef.h>
#include <stdint.h>

/* An open regular file. Its length is known, so that callers can check sizes before they allocate memory. */
typedef struct clv_input {
    const char *path; /* borrowed, for messages */
    int descriptor;
    uint64_t length, position;
} clv_input;

/* Opens a file. Returns CLV_E_IO if it cannot be opened, or is a directory, pipe or device. */
clv_status clv_input_open(clv_input *input, const char *path);
/* Reads the next `length` bytes. Returns CLV_OK, CLV_E_IO, or CLV_E_FORMAT if the file has fewer bytes left. */
clv_status clv_input_read(clv_input *input, void *out, size_t length);
/* Reads `length` bytes at `offset` and leaves `position` unchanged. Returns CLV_OK, CLV_E_IO, or CLV_E_FORMAT if the
 * file ends before. */
clv_status clv_input_read_at(const clv_input *input, uint64_t offset, void *out, size_t length);
/* Sets the position of the next read. Returns CLV_E_IO if `position` is beyond the file's end. */
clv_status clv_input_seek(clv_input *input, uint64_t position);
void clv_input_close(clv_input *input);

/* Copies bytes of a file to `out` for a message: bytes outside ASCII become \xNN, and a text longer than `capacity` is
 * cut. Returns `out`. */
const char *clv_printable(const void *bytes, size_t length, char *out, size_t capacity);

#endif
