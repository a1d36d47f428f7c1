/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in and out: a regular file read exactly, and parts written as one complete file. */
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
void clv_input_close(clv_input *input);

typedef struct clv_part {
    const void *data;
    size_t length;
} clv_part;

/* The parts one after the other, as a file that is complete or absent. `path` "-" is standard
 * output; a device or pipe (/dev/full, /dev/stdout) is written to, not replaced; through a link
 * the file behind it is replaced. CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_parts_write(const char *path, const clv_part *parts, size_t count);

/* What was found in a file, fit for a message: bytes outside ASCII as \xNN, long text cut.
 * `out` is returned. */
const char *clv_printable(const void *bytes, size_t length, char *out, size_t capacity);

#endif
