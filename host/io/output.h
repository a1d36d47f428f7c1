/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes piece by piece: to a file that ends up complete or absent, to standard output, or to a device. */
#ifndef CLEAVE_HOST_IO_OUTPUT_H
#define CLEAVE_HOST_IO_OUTPUT_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct clv_output {
    const char *path; /* borrowed, for messages */
    FILE *file;       /* receives the bytes until clv_output_finish */
    char *temporary;  /* path of a temporary file beside the target; NULL: not a regular file */
    char *target;     /* the file's final name */
    bool spooled;     /* the bytes stay in an anonymous file until clv_output_finish */
    /* the output is a terminal: control characters are written as text (base/visible.h) */
    bool shown;
} clv_output;

/* Opens an output; clv_parts_write describes `path`. `rewind` must be true if the writer will call clv_output_patch;
 * the bytes for standard output or a pipe are then held in a temporary file until the end. Returns CLV_OK, CLV_E_IO or
 * CLV_E_MEMORY. */
clv_status clv_output_open(clv_output *output, const char *path, bool rewind);
clv_status clv_output_write(clv_output *output, const void *data, size_t length);
/* Replaces the first `length` bytes of the output. */
clv_status clv_output_patch(clv_output *output, const void *data, size_t length);
/* Gives the complete file its final name; leaves no file after a failure. Zeroes *output. */
clv_status clv_output_finish(clv_output *output);
/* removes the unfinished file; accepts a zeroed output */
void clv_output_abandon(clv_output *output);

#endif
