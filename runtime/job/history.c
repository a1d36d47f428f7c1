/* SPDX-License-Identifier: Apache-2.0 */
/* Records how fast earlier jobs ran: one line per job, signature and device. */
#include "runtime/job/history.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void make_key(const clv_job *job, const char *device_key, char *out, size_t capacity)
{
    snprintf(out, capacity, "%s %s on %s", job->name, job->signature ? job->signature : "",
             device_key);
    for (char *c = out; *c; ++c)
        if (*c == '=' || *c == '\n') *c = ':';
}

/* Reads a note such as "units_per_s 123.4 chunk_s 0.001 setup_s 0.25". */
static bool read_speed(const char *text, clv_job_speed *speed)
{
    char rate[40], chunk[40], setup[40];
    clv_job_speed s;
    if (sscanf(text, "units_per_s %39s chunk_s %39s setup_s %39s", rate, chunk, setup) != 3 ||
        !clv_parse_double(rate, &s.units_per_s) || !clv_parse_double(chunk, &s.chunk_s) ||
        !clv_parse_double(setup, &s.setup_s) || !(s.units_per_s > 0))
        return false;
    *speed = s;
    return true;
}

bool clv_history_get(clv_notes *notes, const clv_job *job, const char *device_key,
                     clv_job_speed *speed)
{
    char key[400], value[160];
    *speed = (clv_job_speed){ 0 };
    make_key(job, device_key, key, sizeof key);
    return clv_notes_get(notes, key, value, sizeof value) && read_speed(value, speed);
}

void clv_history_put(clv_notes *notes, const clv_job *job, const char *device_key,
                     const clv_job_speed *speed)
{
    char key[400], value[160];
    clv_job_speed old, next = *speed;
    if (!(speed->units_per_s > 0)) return;
    make_key(job, device_key, key, sizeof key);
    if (clv_notes_get(notes, key, value, sizeof value) && read_speed(value, &old)) {
        const double change = next.units_per_s / old.units_per_s;
        if (change < 0.5) {
            next.units_per_s = 0.5 * old.units_per_s;
        } else if (change < 1.5) {
            next.units_per_s = 0.5 * (old.units_per_s + next.units_per_s);
            if (old.chunk_s > 0 && next.chunk_s > 0)
                next.chunk_s = 0.5 * (old.chunk_s + next.chunk_s);
        }
        /* a later job in the same process needs almost no set-up, but the next process will */
        if (next.setup_s < 0.5 * old.setup_s) next.setup_s = 0.5 * (old.setup_s + next.setup_s);
    }
    clv_format(value, sizeof value, "units_per_s %.6g chunk_s %.3g setup_s %.3g", next.units_per_s,
               fmax(next.chunk_s, 0), fmax(next.setup_s, 0));
    clv_notes_set(notes, key, value);
}
