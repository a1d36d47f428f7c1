/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables of spots in stacks of planes: Cleave's own columns, napari's or TrackMate's. */
#include "host/cli/blobs/volume.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <math.h>

static const char *const own_columns[] = { "frame",   "z",        "y",     "x",          "sigma",
                                           "sigma_z", "response", "mass",  "background", "snr",
                                           "z_err",   "y_err",    "x_err", "flags" };

/* Columns for napari: Cleave's own columns with napari's names of the axes. */
static const char *const napari_columns[] = { "index",  "axis-0",     "axis-1",  "axis-2",
                                              "axis-3", "sigma",      "sigma_z", "response",
                                              "mass",   "background", "snr",     "z_err",
                                              "y_err",  "x_err",      "flags" };

/* Computes the position and the time of a spot in physical units. */
static void find_values(const volume_table *t, const clv_volume_spot *s, double values[4])
{
    const double place[] = { (double)s->z, (double)s->y, (double)s->x };
    blobs_extra_values(t->extra, s->frame, place, values);
}

/* Returns the spot in the form that tables have: errors that are not known are NaN, as for spots in frames. */
static clv_volume_spot as_told(const clv_volume_spot *spot)
{
    clv_volume_spot s = *spot;
    float *const errors[] = { &s.z_err, &s.y_err, &s.x_err };
    for (size_t i = 0; i < CLV_LEN(errors); ++i)
        if (!(*errors[i] > 0)) *errors[i] = NAN;
    return s;
}

static clv_status write_csv(const volume_table *t, const char *path, bool tracks)
{
    clv_csv c = { .columns = 0 };
    const bool napari = t->format == BLOBS_NAPARI;
    const char *names[BLOBS_MOST_COLUMNS];
    double more[4];
    clv_csv_begin_as(&c, blobs_kind_of(path), names,
                     blobs_join_names(names, napari ? napari_columns : own_columns,
                                      napari ? CLV_LEN(napari_columns) : CLV_LEN(own_columns),
                                      t->extra, tracks));
    for (size_t i = 0; i < t->count; ++i) {
        const clv_volume_spot s = as_told(&t->members[i].spot);
        if (napari) clv_csv_int(&c, (int64_t)i);
        clv_csv_int(&c, s.frame);
        const float values[] = { s.z,    s.y,          s.x,   s.sigma, s.sigma_z, s.response,
                                 s.mass, s.background, s.snr, s.z_err, s.y_err,   s.x_err };
        for (size_t v = 0; v < CLV_LEN(values); ++v)
            blobs_csv_maybe(&c, values[v], napari);
        clv_csv_int(&c, s.flags);
        find_values(t, &s, more);
        for (size_t v = 0; v < t->extra->count; ++v)
            clv_csv_number(&c, more[v]);
        if (tracks) clv_csv_int(&c, t->members[i].particle);
        clv_csv_end_row(&c);
    }
    clv_csv_end(&c);
    const clv_status status = clv_csv_write(&c, path);
    clv_csv_clear(&c);
    return status;
}

static clv_status write_trackmate(const volume_table *t, const char *path)
{
    const double x = t->units->pixel_size > 0 ? t->units->pixel_size : 1,
                 y = x * t->voxel[1] / t->voxel[2], z = x * t->voxel[0] / t->voxel[2];
    blobs_trackmate_row *rows = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *rows);
    if (!rows) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t i = 0; i < t->count; ++i) {
        const clv_volume_spot *s = &t->members[i].spot;
        rows[i] = (blobs_trackmate_row){ .number = i,
                                         .track = t->members[i].particle,
                                         .frame = s->frame,
                                         .quality = s->response,
                                         .z = (double)s->z * z,
                                         .y = (double)s->y * y,
                                         .x = (double)s->x * x,
                                         .radius = sqrt(2) * (double)s->sigma * x };
    }
    clv_csv c = { .columns = 0 };
    clv_status status = CLV_OK;
    if (cli_formats_of(path) == CLI_XML) {
        status = blobs_xml_write(path, t->units, rows, t->count);
    } else {
        blobs_trackmate_begin(&c, blobs_kind_of(path), t->units);
        for (size_t i = 0; i < t->count; ++i)
            blobs_trackmate_add(&c, t->units, &rows[i]);
        status = clv_csv_write(&c, path);
    }
    clv_csv_clear(&c);
    clv_free(rows);
    return status;
}

/* Fields in the order of clv_volume_spot, which is written as it lies in memory. */
_Static_assert(sizeof(clv_volume_spot) == 14 * 4, "clv_volume_spot has no holes");

static clv_status write_records(const volume_table *t, const char *path, bool tracks)
{
    static const char *const fields[] = { "frame", "flags",   "z",        "y",    "x",
                                          "sigma", "sigma_z", "response", "mass", "background",
                                          "snr",   "z_err",   "y_err",    "x_err" };
    const char *names[BLOBS_MOST_COLUMNS], *codes[BLOBS_MOST_COLUMNS];
    const bool parquet = cli_formats_of(path) == CLI_PARQUET;
    const size_t row_bytes =
        sizeof(clv_volume_spot) + t->extra->count * sizeof(double) + (tracks ? sizeof(int64_t) : 0);
    clv_text text = { 0 };
    const size_t count =
        blobs_record_columns(names, codes, fields, CLV_LEN(fields), 2, t->extra, tracks);
    if (!parquet) blobs_npy_begin(&text, fields, CLV_LEN(fields), 2, t->extra, tracks, t->count);
    for (size_t i = 0; i < t->count; ++i) {
        double more[4];
        const clv_volume_spot s = as_told(&t->members[i].spot);
        find_values(t, &s, more);
        clv_text_bytes(&text, (const char *)&s, sizeof s);
        clv_text_bytes(&text, (const char *)more, t->extra->count * sizeof *more);
        if (tracks)
            clv_text_bytes(&text, (const char *)&t->members[i].particle,
                           sizeof t->members[i].particle);
    }
    const clv_status status =
        text.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", path)
        : parquet   ? blobs_parquet_write(path, names, codes, count, text.data, t->count, row_bytes)
                    : clv_file_write(path, text.data, text.length);
    clv_text_clear(&text);
    return status;
}

clv_status volume_write(const volume_table *t, const char *path, bool tracks)
{
    if (cli_formats_of(path) & (CLI_NPY | CLI_PARQUET)) return write_records(t, path, tracks);
    return t->format == BLOBS_TRACKMATE || cli_formats_of(path) == CLI_XML
               ? write_trackmate(t, path)
               : write_csv(t, path, tracks);
}
