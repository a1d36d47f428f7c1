/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables of spots with Cleave's own columns, napari's, TrackMate's, or a short table with x before y; as text,
 * JSON, NumPy records or TrackMate's XML. */
#include "host/cli/blobs/blobs.h"
#include "host/io/tables/any.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { FLUSH_BYTES = 1 << 20 };

static const char *const own_columns[] = { "frame", "y",          "x",   "sigma", "response",
                                           "mass",  "background", "snr", "flags" };
/* Columns of a table with errors of the fitted positions. */
static const char *const error_columns[] = { "frame",    "y",     "x",          "sigma",
                                             "response", "mass",  "background", "snr",
                                             "y_err",    "x_err", "flags" };
/* Columns for napari, whose reader takes the columns "axis-..." for positions and all other columns for properties. */
static const char *const napari_columns[] = {
    "index", "axis-0", "axis-1", "axis-2", "sigma", "response", "mass", "background", "snr", "flags"
};
static const char *const napari_error_columns[] = { "index", "axis-0",   "axis-1", "axis-2",
                                                    "sigma", "response", "mass",   "background",
                                                    "snr",   "y_err",    "x_err",  "flags" };
static const char *const xy_columns[] = { "frame", "x", "y", "intensity", "sigma", "snr", "id" };
static const char *const trackmate_columns[] = { "LABEL",      "ID",         "TRACK_ID",
                                                 "QUALITY",    "POSITION_X", "POSITION_Y",
                                                 "POSITION_Z", "POSITION_T", "FRAME",
                                                 "RADIUS",     "VISIBILITY" };

/* Writes TrackMate's header of four lines: key, name, short name, unit. */
void blobs_trackmate_begin(clv_csv *csv, clv_csv_kind kind, const blobs_units *units)
{
    char lines[320];
    const char *space = units->pixel_size > 0 ? units->space : "pixel";
    const char *time = units->interval > 0 ? units->time : "frame";
    clv_csv_begin_as(csv, kind, trackmate_columns, CLV_LEN(trackmate_columns));
    snprintf(lines, sizeof lines,
             "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,Radius,Visibility\n"
             "Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R,Visibility\n"
             ",,,(quality),(%s),(%s),(%s),(%s),,(%s),\n",
             space, space, space, time, space);
    for (char *c = lines; *c && kind == CLV_CSV_TABS; ++c)
        if (*c == ',') *c = '\t';
    clv_text_add(&csv->text, "%s", lines);
}

void blobs_trackmate_add(clv_csv *c, const blobs_units *units, const blobs_trackmate_row *row)
{
    char label[32];
    snprintf(label, sizeof label, "ID%zu", row->number);
    clv_csv_string(c, label);
    clv_csv_int(c, (int64_t)row->number);
    if (row->track >= 0)
        clv_csv_int(c, row->track);
    else
        clv_csv_string(c, "");
    clv_csv_float(c, row->quality);
    clv_csv_float(c, (float)row->x);
    clv_csv_float(c, (float)row->y);
    if (row->z != 0)
        clv_csv_float(c, (float)row->z);
    else
        clv_csv_int(c, 0);
    clv_csv_float(c, (float)(row->frame * (units->interval > 0 ? units->interval : 1)));
    clv_csv_int(c, row->frame);
    clv_csv_float(c, (float)row->radius);
    clv_csv_int(c, 1);
    clv_csv_end_row(c);
}

/* ---- NumPy records ------------------------------------------------------------------------------ */

/* Fields in the order of clv_spot, which is written as it lies in memory. */
static const char *const fields[] = { "frame",    "flags", "y",          "x",  "sigma",
                                      "response", "mass",  "background", "snr" };
static const char *const error_fields[] = { "frame", "flags",    "y",    "x",
                                            "sigma", "response", "mass", "background",
                                            "snr",   "y_err",    "x_err" };
_Static_assert(sizeof(clv_spot) == 9 * 4 && sizeof(blobs_spot) == 11 * 4, "there are no holes");

void blobs_npy_begin(clv_text *text, const char *const *names, size_t count, size_t whole,
                     const blobs_extra *extra, bool particle, size_t rows)
{
    const char *all[BLOBS_MOST_COLUMNS], *codes[BLOBS_MOST_COLUMNS];
    const size_t columns = blobs_record_columns(all, codes, names, count, whole, extra, particle);
    clv_npy_records_begin(text, all, codes, columns, rows);
}

size_t blobs_record_columns(const char **names, const char **codes, const char *const *own,
                            size_t count, size_t whole, const blobs_extra *extra, bool particle)
{
    const size_t columns = blobs_join_names(names, own, count, extra, particle);
    for (size_t i = 0; i < columns; ++i)
        codes[i] = i < whole ? "u4" : i < count ? "f4" : i < count + extra->count ? "f8" : "i8";
    return columns;
}

/* ---- Parquet ------------------------------------------------------------------------------------ */

enum { GROUP_ROWS = 65536 };

static void begin_parquet(blobs_writer *w)
{
    const size_t columns = blobs_record_columns(
        w->names, w->codes, w->errors ? error_fields : fields,
        w->errors ? CLV_LEN(error_fields) : CLV_LEN(fields), 2, &w->extra, w->tracks);
    clv_parquet_begin(&w->file_of_columns, w->names, w->codes, columns, &w->csv.text);
}

/* Writes the records collected in memory as one row group. */
static void end_group(blobs_writer *w)
{
    const size_t rows = (size_t)(w->row - w->file_of_columns.rows);
    w->csv.text.failed |= w->records.failed;
    if (!w->records.failed)
        clv_parquet_add(&w->file_of_columns, w->records.data, rows, &w->csv.text);
    clv_text_restart(&w->records);
}

clv_status blobs_parquet_write(const char *path, const char *const *names, const char *const *codes,
                               size_t columns, const void *records, size_t rows, size_t row_bytes)
{
    clv_parquet file;
    clv_text out = { 0 };
    clv_parquet_begin(&file, names, codes, columns, &out);
    for (size_t at = 0; at < rows; at += GROUP_ROWS)
        clv_parquet_add(&file, (const char *)records + at * row_bytes,
                        CLV_MIN(rows - at, (size_t)GROUP_ROWS), &out);
    clv_parquet_end(&file, &out);
    const clv_part part = { out.data, out.length };
    const clv_status status = out.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", path)
                                         : clv_parts_write(path, &part, 1);
    clv_text_clear(&out);
    return status;
}

size_t blobs_join_names(const char **names, const char *const *own, size_t count,
                        const blobs_extra *extra, bool particle)
{
    size_t used = count;
    memcpy(names, own, count * sizeof *names);
    for (size_t i = 0; i < extra->count; ++i)
        names[used++] = extra->name[i];
    if (particle) names[used++] = "particle";
    return used;
}

static void npy_header(const blobs_writer *w, clv_text *text)
{
    blobs_npy_begin(text, w->errors ? error_fields : fields,
                    w->errors ? CLV_LEN(error_fields) : CLV_LEN(fields), 2, &w->extra, w->tracks,
                    w->row);
}

/* Computes the position and the time of a spot in physical units. */
static void find_values(const blobs_writer *w, const clv_spot *s, double values[4])
{
    const double place[] = { (double)s->y, (double)s->x };
    blobs_extra_values(&w->extra, s->frame, place, values);
}

static void add_record(blobs_writer *w, const blobs_spot *spot, const int64_t *particle)
{
    const int64_t none = -1;
    double values[4];
    find_values(w, &spot->is, values);
    clv_text *text = w->parquet ? &w->records : &w->csv.text;
    clv_text_bytes(text, (const char *)spot, w->errors ? sizeof *spot : sizeof spot->is);
    clv_text_bytes(text, (const char *)values, w->extra.count * sizeof *values);
    if (w->tracks) clv_text_bytes(text, (const char *)(particle ? particle : &none), sizeof none);
}

/* ---- all formats ---------------------------------------------------------------------------------- */

clv_csv_kind blobs_kind_of(const char *path)
{
    const unsigned found = cli_formats_of(path);
    return found & CLI_JSON ? CLV_CSV_JSON : found & CLI_TSV ? CLV_CSV_TABS : CLV_CSV_COMMAS;
}

static void begin(blobs_writer *w)
{
    const clv_csv_kind kind = blobs_kind_of(w->path);
    if (w->npy)
        npy_header(w, &w->csv.text);
    else if (w->parquet)
        begin_parquet(w);
    else if (w->xml)
        return;
    else if (w->format == BLOBS_TRACKMATE)
        blobs_trackmate_begin(&w->csv, kind, &w->units);
    else if (w->format == BLOBS_XY)
        clv_csv_begin_as(&w->csv, kind, xy_columns, CLV_LEN(xy_columns));
    else if (w->format == BLOBS_NAPARI)
        clv_csv_begin_as(
            &w->csv, kind, w->names,
            blobs_join_names(w->names, w->errors ? napari_error_columns : napari_columns,
                             w->errors ? CLV_LEN(napari_error_columns) : CLV_LEN(napari_columns),
                             &w->extra, w->tracks));
    else
        clv_csv_begin_as(&w->csv, kind, w->names,
                         blobs_join_names(w->names, w->errors ? error_columns : own_columns,
                                          w->errors ? CLV_LEN(error_columns) : CLV_LEN(own_columns),
                                          &w->extra, w->tracks));
}

clv_status blobs_writer_open(blobs_writer *w, const char *path, const blobs_args *a,
                             const blobs_units *units, bool tracks)
{
    struct stat info;
    const bool own = a->format == BLOBS_CLEAVE || a->format == BLOBS_NAPARI;
    *w = (blobs_writer){ .path = path,
                         .format = a->format,
                         .tracks = tracks,
                         .errors = own && a->subpixel == CLV_BLOB_SUBPIXEL_FIT };
    if (units) w->units = *units;
    if (units && own) blobs_find_extra(units, false, &w->extra);
    w->npy = cli_formats_of(path) == CLI_NPY;
    w->xml = cli_formats_of(path) == CLI_XML;
    w->parquet = cli_formats_of(path) == CLI_PARQUET;
    begin(w);
    if (w->xml) return CLV_OK;
    /* anything but a regular file (standard output, a pipe, a link) is written in one go at the end */
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
    if (w->csv.text.failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", w->path);
    if (!w->file) return CLV_OK;
    const size_t length = w->csv.text.length;
    if (length && fwrite(w->csv.text.data, 1, length, w->file) != length)
        return clv_fail(CLV_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    w->csv.text.length = 0;
    return CLV_OK;
}

void blobs_csv_maybe(clv_csv *c, float value, bool napari)
{
    if (isfinite(value))
        clv_csv_float(c, value);
    else if (napari)
        clv_csv_raw(c, "nan");
    else
        clv_csv_missing(c);
}

static void add_own(blobs_writer *w, const blobs_spot *spot, const int64_t *particle)
{
    const clv_spot *s = &spot->is;
    clv_csv *c = &w->csv;
    const bool napari = w->format == BLOBS_NAPARI;
    if (napari) clv_csv_int(c, (int64_t)w->row);
    clv_csv_int(c, s->frame);
    clv_csv_float(c, s->y), clv_csv_float(c, s->x), clv_csv_float(c, s->sigma);
    clv_csv_float(c, s->response), clv_csv_float(c, s->mass);
    clv_csv_float(c, s->background), clv_csv_float(c, s->snr);
    if (w->errors)
        blobs_csv_maybe(c, spot->error.y, napari), blobs_csv_maybe(c, spot->error.x, napari);
    clv_csv_int(c, s->flags);
    double values[4];
    find_values(w, s, values);
    for (size_t i = 0; i < w->extra.count; ++i)
        clv_csv_number(c, values[i]);
    if (w->tracks) clv_csv_int(c, particle ? *particle : -1);
}

static blobs_trackmate_row trackmate_row(const blobs_writer *w, const clv_spot *s,
                                         const int64_t *particle)
{
    const double scale = w->units.pixel_size > 0 ? w->units.pixel_size : 1;
    const double down = w->units.row > 0 ? w->units.row : scale;
    return (blobs_trackmate_row){ .number = w->row,
                                  .track = particle ? *particle : -1,
                                  .frame = s->frame,
                                  .quality = s->response,
                                  .y = (double)s->y * down,
                                  .x = (double)s->x * scale,
                                  .radius = sqrt(2) * (double)s->sigma * scale };
}

static void add_xy(blobs_writer *w, const clv_spot *s, const int64_t *particle)
{
    clv_csv *c = &w->csv;
    clv_csv_int(c, s->frame);
    clv_csv_float(c, s->x), clv_csv_float(c, s->y);
    clv_csv_float(c, s->mass), clv_csv_float(c, s->sigma), clv_csv_float(c, s->snr);
    clv_csv_int(c, particle ? *particle : (int64_t)w->row);
}

clv_status blobs_writer_add(blobs_writer *w, const blobs_spot *spots, const int64_t *particle,
                            size_t count)
{
    for (size_t i = 0; i < count; ++i, ++w->row) {
        const int64_t *p = particle ? particle + i : NULL;
        if (w->xml) {
            if (!clv_reserve(&w->rows, &w->room, w->row + 1, sizeof *w->rows))
                return clv_fail(CLV_E_MEMORY, "%s: out of memory", w->path);
            w->rows[w->row] = trackmate_row(w, &spots[i].is, p);
            continue;
        }
        if (w->parquet && w->row - w->file_of_columns.rows == GROUP_ROWS) end_group(w);
        if (w->npy || w->parquet) {
            add_record(w, &spots[i], p);
        } else if (w->format == BLOBS_TRACKMATE) {
            const blobs_trackmate_row row = trackmate_row(w, &spots[i].is, p);
            blobs_trackmate_add(&w->csv, &w->units, &row);
        } else if (w->format == BLOBS_XY)
            add_xy(w, &spots[i].is, p);
        else
            add_own(w, &spots[i], p);
        if (!w->npy && !w->parquet && w->format != BLOBS_TRACKMATE) clv_csv_end_row(&w->csv);
        if (w->csv.text.length >= FLUSH_BYTES) CLV_TRY(flush(w));
    }
    return CLV_OK;
}

clv_status blobs_writer_finish(blobs_writer *w)
{
    if (w->xml) {
        const clv_status written = blobs_xml_write(w->path, &w->units, w->rows, w->row);
        blobs_writer_abandon(w);
        return written;
    }
    if (w->parquet)
        end_group(w), clv_parquet_end(&w->file_of_columns, &w->csv.text);
    else if (!w->npy)
        clv_csv_end(&w->csv);
    clv_status status = flush(w);
    if (!w->file) {
        if (!status) status = clv_csv_write(&w->csv, w->path);
        blobs_writer_abandon(w);
        return status;
    }
    if (!status && w->npy) {
        clv_text header = { 0 };
        npy_header(w, &header);
        if (header.failed)
            status = clv_fail(CLV_E_MEMORY, "%s: out of memory", w->path);
        else if (fseek(w->file, 0, SEEK_SET) ||
                 fwrite(header.data, 1, header.length, w->file) != header.length)
            status = clv_fail(CLV_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
        clv_text_clear(&header);
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
    clv_text_clear(&w->records), clv_parquet_clear(&w->file_of_columns);
    clv_free(w->rows);
    *w = (blobs_writer){ 0 };
}
