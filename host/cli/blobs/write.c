/* SPDX-License-Identifier: Apache-2.0 */
/* Spots as CSV: Cleave's own columns, TrackMate's, or few with x before y; or as NumPy records. */
#include "host/cli/blobs/blobs.h"
#include "host/cli/endings.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { FLUSH_BYTES = 1 << 20 };

static const char *const own_columns[] = { "frame", "y",          "x",   "sigma", "response",
                                           "mass",  "background", "snr", "flags", "particle" };
static const char *const xy_columns[] = { "frame", "x", "y", "intensity", "sigma", "snr", "id" };
static const char *const trackmate_columns[] = { "LABEL",      "ID",         "TRACK_ID",
                                                 "QUALITY",    "POSITION_X", "POSITION_Y",
                                                 "POSITION_Z", "POSITION_T", "FRAME",
                                                 "RADIUS",     "VISIBILITY" };

/* TrackMate's header has four lines: key, name, short name, unit. */
static void trackmate_header(blobs_writer *w)
{
    const char *space = w->units.pixel_size > 0 ? w->units.space : "pixel";
    const char *time = w->units.interval > 0 ? w->units.time : "frame";
    clv_text_add(&w->csv.text,
                 "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,Radius,Visibility\n"
                 "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R,Visibility\n"
                 ",,,(quality),(%s),(%s),(%s),(%s),,(%s),\n",
                 space, space, space, time, space);
}

/* ---- NumPy records ------------------------------------------------------------------------------ */

enum { NPY_HEADER = 320 }; /* a multiple of 64; the number of rows is put in at the end */

/* In the order of clv_spot, which is written as it lies in memory. */
static const char record[] = "('frame', '%cu4'), ('flags', '%cu4'), ('y', '%cf4'), ('x', '%cf4'), "
                             "('sigma', '%cf4'), ('response', '%cf4'), ('mass', '%cf4'), "
                             "('background', '%cf4'), ('snr', '%cf4')";
_Static_assert(sizeof(clv_spot) == 9 * 4, "clv_spot has no holes");

static void npy_header(const blobs_writer *w, char *header)
{
    const union {
        uint16_t value;
        char bytes[2];
    } one = { .value = 1 };
    const char c = one.bytes[0] ? '<' : '>';
    char fields[210], text[NPY_HEADER];
    char particle[32] = "";
    snprintf(fields, sizeof fields, record, c, c, c, c, c, c, c, c, c);
    if (w->tracks) snprintf(particle, sizeof particle, ", ('particle', '%ci8')", c);
    snprintf(text, sizeof text, "{'descr': [%s%s], 'fortran_order': False, 'shape': (%zu,), }",
             fields, particle, w->row);
    memset(header, ' ', NPY_HEADER);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((NPY_HEADER - 10) & 255), header[9] = (char)((NPY_HEADER - 10) >> 8);
    memcpy(header + 10, text, strlen(text));
    header[NPY_HEADER - 1] = '\n';
}

static void add_record(blobs_writer *w, const clv_spot *s, const int64_t *particle)
{
    const int64_t none = -1;
    clv_text_bytes(&w->csv.text, (const char *)s, sizeof *s);
    if (w->tracks)
        clv_text_bytes(&w->csv.text, (const char *)(particle ? particle : &none), sizeof none);
}

/* ---- all formats ---------------------------------------------------------------------------------- */

static void begin(blobs_writer *w)
{
    if (w->npy) {
        char header[NPY_HEADER];
        npy_header(w, header);
        clv_text_bytes(&w->csv.text, header, sizeof header);
        return;
    }
    switch (w->format) {
    case BLOBS_TRACKMATE:
        clv_csv_begin(&w->csv, trackmate_columns, CLV_LEN(trackmate_columns));
        trackmate_header(w);
        break;
    case BLOBS_XY:
        clv_csv_begin(&w->csv, xy_columns, CLV_LEN(xy_columns));
        break;
    default:
        clv_csv_begin(&w->csv, own_columns, CLV_LEN(own_columns) - (w->tracks ? 0 : 1));
        break;
    }
}

clv_status blobs_writer_open(blobs_writer *w, const char *path, int format,
                             const blobs_units *units, bool tracks)
{
    struct stat info;
    *w = (blobs_writer){ .path = path, .format = format, .tracks = tracks };
    if (units) w->units = *units;
    w->npy = cli_formats_of(path) == CLI_NPY;
    begin(w);
    /* what is no plain file (standard output, a pipe, a link) is written at once at the end */
    if (!w->npy && (strcmp(path, "-") == 0 || (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))))
        return CLV_OK;
    CLV_TRY(clv_file_begin(path, &w->temporary));
    w->file = fopen(w->temporary, "wb");
    if (w->file) return CLV_OK;
    const clv_status status =
        clv_fail(CLV_E_IO, "%s: cannot write: %s", w->temporary, strerror(errno));
    blobs_writer_abandon(w);
    return status;
}

static clv_status flush(blobs_writer *w)
{
    if (w->csv.text.failed) return clv_fail(CLV_E_MEMORY, "%s: no memory", w->path);
    if (!w->file) return CLV_OK;
    const size_t length = w->csv.text.length;
    if (length && fwrite(w->csv.text.data, 1, length, w->file) != length)
        return clv_fail(CLV_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    w->csv.text.length = 0;
    return CLV_OK;
}

static void add_own(blobs_writer *w, const clv_spot *s, const int64_t *particle)
{
    clv_csv *c = &w->csv;
    clv_csv_int(c, s->frame);
    clv_csv_float(c, s->y), clv_csv_float(c, s->x), clv_csv_float(c, s->sigma);
    clv_csv_float(c, s->response), clv_csv_float(c, s->mass);
    clv_csv_float(c, s->background), clv_csv_float(c, s->snr);
    clv_csv_int(c, s->flags);
    if (w->tracks) clv_csv_int(c, particle ? *particle : -1);
}

static void add_trackmate(blobs_writer *w, const clv_spot *s, const int64_t *particle)
{
    clv_csv *c = &w->csv;
    char label[32];
    const double scale = w->units.pixel_size > 0 ? w->units.pixel_size : 1;
    const double time = w->units.interval > 0 ? w->units.interval : 1;
    snprintf(label, sizeof label, "ID%zu", w->row);
    clv_csv_string(c, label);
    clv_csv_int(c, (int64_t)w->row);
    if (particle && *particle >= 0)
        clv_csv_int(c, *particle);
    else
        clv_csv_string(c, "");
    clv_csv_float(c, s->response);
    clv_csv_float(c, (float)((double)s->x * scale));
    clv_csv_float(c, (float)((double)s->y * scale));
    clv_csv_int(c, 0);
    clv_csv_float(c, (float)(s->frame * time));
    clv_csv_int(c, s->frame);
    clv_csv_float(c, (float)(sqrt(2) * (double)s->sigma * scale));
    clv_csv_int(c, 1);
}

static void add_xy(blobs_writer *w, const clv_spot *s, const int64_t *particle)
{
    clv_csv *c = &w->csv;
    clv_csv_int(c, s->frame);
    clv_csv_float(c, s->x), clv_csv_float(c, s->y);
    clv_csv_float(c, s->mass), clv_csv_float(c, s->sigma), clv_csv_float(c, s->snr);
    clv_csv_int(c, particle ? *particle : (int64_t)w->row);
}

clv_status blobs_writer_add(blobs_writer *w, const clv_spot *spots, const int64_t *particle,
                            size_t count)
{
    for (size_t i = 0; i < count; ++i, ++w->row) {
        const int64_t *p = particle ? particle + i : NULL;
        if (w->npy)
            add_record(w, &spots[i], p);
        else if (w->format == BLOBS_TRACKMATE)
            add_trackmate(w, &spots[i], p);
        else if (w->format == BLOBS_XY)
            add_xy(w, &spots[i], p);
        else
            add_own(w, &spots[i], p);
        if (!w->npy) clv_csv_end_row(&w->csv);
        if (w->csv.text.length >= FLUSH_BYTES) CLV_TRY(flush(w));
    }
    return CLV_OK;
}

clv_status blobs_writer_finish(blobs_writer *w)
{
    clv_status status = flush(w);
    if (!w->file) {
        if (!status) status = clv_csv_write(&w->csv, w->path);
        clv_csv_clear(&w->csv);
        return status;
    }
    if (!status && w->npy) {
        char header[NPY_HEADER];
        npy_header(w, header);
        if (fseek(w->file, 0, SEEK_SET) ||
            fwrite(header, 1, sizeof header, w->file) != sizeof header)
            status = clv_fail(CLV_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    }
    const bool closed = fclose(w->file) == 0;
    w->file = NULL;
    if (!status && !closed)
        status = clv_fail(CLV_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    if (!status) {
        status = clv_file_publish(w->temporary, w->path);
        w->temporary = NULL;
    }
    blobs_writer_abandon(w);
    return status;
}

void blobs_writer_abandon(blobs_writer *w)
{
    if (w->file) fclose(w->file);
    clv_file_abandon(w->temporary);
    clv_csv_clear(&w->csv);
    *w = (blobs_writer){ 0 };
}
