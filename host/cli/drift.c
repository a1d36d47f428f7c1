/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the drift of the stage from a table. */
#include "host/cli/drift.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/tables/any.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reads the columns of the table; `frame` and `value` are scratch memory for one column each. */
static clv_status take(const clv_csv_table *table, const char *unit, double *frame, double *value,
                       cli_drift *d)
{
    size_t column;
    CLV_TRY(clv_csv_find(table, "frame", &column));
    CLV_TRY(clv_csv_doubles(table, column, frame));
    for (size_t i = 0; i < d->count; ++i)
        if (frame[i] != floor(frame[i]) || fabs(frame[i]) > 1e15 ||
            frame[i] != frame[0] + (double)i)
            return clv_fail(CLV_E_FORMAT,
                            "%s: row %zu is for frame %g, but a table of drifts must have one row "
                            "for each frame, in order, as cleave blobs --stage-drift writes it",
                            d->path, i + 1, frame[i]);
    d->first = d->count ? (int64_t)frame[0] : 0;
    for (int axis = 0; axis < 2; ++axis) {
        char name[32];
        snprintf(name, sizeof name, "%c%s%s", "yx"[axis], unit ? "_" : "", unit ? unit : "");
        CLV_TRY(clv_csv_find(table, name, &column));
        CLV_TRY(clv_csv_doubles(table, column, value));
        for (size_t i = 0; i < d->count; ++i)
            d->at[i][axis] = value[i];
    }
    return CLV_OK;
}

clv_status cli_drift_read(const char *path, const char *unit, cli_drift *d)
{
    clv_csv_table *table;
    const char *kind;
    *d = (cli_drift){ .path = path };
    CLV_TRY(clv_table_read(path, '\0', &table, &kind));
    d->count = clv_csv_rows(table);
    const size_t room = CLV_MAX(d->count, (size_t)1);
    double *frame = clv_alloc(room, sizeof *frame), *value = clv_alloc(room, sizeof *value);
    d->at = clv_alloc(room, sizeof *d->at);
    const clv_status status = frame && value && d->at
                                  ? take(table, unit, frame, value, d)
                                  : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    clv_free(frame), clv_free(value);
    clv_csv_free(table);
    return status;
}

void cli_drift_clear(cli_drift *d)
{
    clv_free(d->at);
    *d = (cli_drift){ 0 };
}

clv_status cli_drift_of(const cli_drift *d, int64_t frame, double yx[2])
{
    if (!d->count || frame < d->first || frame - d->first >= (int64_t)d->count)
        return clv_fail(CLV_E_FORMAT,
                        "%s: there is no drift for frame %lld, in which the table of spots has a "
                        "spot (the drifts are for %zu frames from frame %lld on); both tables must "
                        "come from the same movie",
                        d->path, (long long)frame, d->count, (long long)d->first);
    memcpy(yx, d->at[frame - d->first], sizeof(double[2]));
    return CLV_OK;
}
