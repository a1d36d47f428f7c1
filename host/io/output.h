/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes out, bit by bit: a file that is complete or absent, standard output, or a device. */
#ifndef CLEAVE_HOST_IO_OUTPUT_H
#define CLEAVE_HOST_IO_OUTPUT_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct clv_output {
    const char *path; /* borrowed, for messages */
    FILE *file;       /* where the bytes go now */
    char *temporary;  /* beside the target; NULL: no regular file */
    char *target;     /* what it will be called */
    bool spooled;     /* kept in an anonymous file until the end */
    bool shown;       /* on a terminal: what it would obey is written as text (base/visible.h) */
} clv_output;

/* `path` as in clv_parts_write. `rewind`: the writer comes back to the beginning (clv_output_patch);
 * what goes to standard output or a pipe then waits in a temporary file. CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_output_open(clv_output *output, const char *path, bool rewind);
clv_status clv_output_write(clv_output *output, const void *data, size_t length);
/* Replaces the first bytes. */
clv_status clv_output_patch(clv_output *output, const void *data, size_t length);
/* Makes the file visible, complete; nothing stays after a failure. Zeroes *output. */
clv_status clv_output_finish(clv_output *output);
void clv_output_abandon(clv_output *output); /* leaves nothing; accepts a zeroed one */

#endif
