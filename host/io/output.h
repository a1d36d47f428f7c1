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
    FILE *file;       /* where the bytes go at present */
    char *temporary;  /* beside the target; NULL: not a regular file */
    char *target;     /* the file's final name */
    bool spooled;     /* kept in an anonymous file until the end */
    bool shown;       /* on a terminal: control characters are written as text (base/visible.h) */
} clv_output;

/* Opens an output; `path` as in clv_parts_write. `rewind` must be true if the writer will replace the first bytes
 * (clv_output_patch); what goes to standard output or a pipe is then held in a temporary file. Returns CLV_OK, CLV_E_IO
 * or CLV_E_MEMORY. */
clv_status clv_output_open(clv_output *output, const char *path, bool rewind);
clv_status clv_output_write(clv_output *output, const void *data, size_t length);
/* Replaces the first bytes. */
clv_status clv_output_patch(clv_output *output, const void *data, size_t length);
/* Makes the complete file visible; leaves nothing behind after a failure. Zeroes *output. */
clv_status clv_output_finish(clv_output *output);
void clv_output_abandon(clv_output *output); /* removes everything; accepts a zeroed output */

#endif
