/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the drift of the stage, as `cleave blobs --stage-drift` writes it, for commands that read tables of spots. */
#ifndef CLEAVE_HOST_CLI_DRIFT_H
#define CLEAVE_HOST_CLI_DRIFT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cli_drift {
    const char *path;
    int64_t first;   /* frame of the first row */
    size_t count;    /* frames */
    double (*at)[2]; /* [count]: how far the picture is shifted along y and x */
} cli_drift;

/* Reads a table of the drift, which has the columns frame, y and x and one row per frame. `unit` chooses the columns
 * to read (y_um and x_um for "um"); NULL: y and x, in pixels. The caller clears `drift`, also after a failure. */
clv_status cli_drift_read(const char *path, const char *unit, cli_drift *drift);
void cli_drift_clear(cli_drift *drift);

/* Finds the drift in a frame; CLV_E_FORMAT if the table has no row for that frame. */
clv_status cli_drift_of(const cli_drift *drift, int64_t frame, double yx[2]);

#endif
