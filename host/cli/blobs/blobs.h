/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `cleave blobs` share: options, the reader's thread, writers of spots. */
#ifndef CLEAVE_HOST_CLI_BLOBS_H
#define CLEAVE_HOST_CLI_BLOBS_H

#include "host/cli/endings.h"
#include "host/io/formats/movie.h"
#include "host/io/pictures/image.h"
#include "host/io/tables/csv.h"

#include <cleave/blob.h>
#include <cleave/track.h>
#include <cleave/volume.h>

typedef struct blobs_args {
    const char *movie, *output, *tracks, *overlay, *histogram, *frames, *pixel_size, *voxel_size,
        *raw;
    double min_sigma, max_sigma, sigma_ratio, threshold, threshold_rel, threshold_sigma, overlap;
    uint64_t num_sigma, exclude_border, channel, z, memory, min_length, preview;
    int hot_pixels, scope, taps, normalize, subpixel, prune, format, axes, predict;
    double link, interval;
    bool dog, log_scale, invert, partial, fill_gaps;
    bool threshold_given, threshold_rel_given, threshold_sigma_given;
    bool channel_given, z_given, link_given, preview_given, interval_given;
    FILE *news;         /* where the summary goes */
    size_t first, last; /* of --frames; last SIZE_MAX: to the end */
    cli_common common;
} blobs_args;

clv_blob_options blobs_options(const blobs_args *args);

/* ---- blobs/read.c: frames come from a thread of their own, a few blocks ahead ---------------- */

typedef struct blobs_reader blobs_reader;

/* Frames [first, last) in blocks of `block`. */
clv_status blobs_reader_start(clv_movie *movie, size_t first, size_t last, size_t block,
                              blobs_reader **reader);
/* The next block; *count 0 at the end. It stays until the next call. After an error *count frames
 * before it are whole (they are handed out first). */
clv_status blobs_reader_next(blobs_reader *reader, const void **pixels, size_t *count);
double blobs_reader_seconds(blobs_reader *reader); /* spent reading so far */
void blobs_reader_stop(blobs_reader *reader);      /* accepts NULL */
size_t blobs_block(const clv_movie_facts *facts);  /* frames of a block: bounded memory */
/* The user stopped after `done` of `total` frames or stacks: CLV_OK and *stopped where these are kept (--partial),
 * else CLV_E_CANCELLED. */
clv_status blobs_stop(const blobs_args *args, size_t done, size_t total, const char *what,
                      bool *stopped);

/* ---- blobs/write.c --------------------------------------------------------------------------- */

enum { BLOBS_CLEAVE, BLOBS_TRACKMATE, BLOBS_XY };

/* What tables of spots and tracks may be, by their endings. */
enum { BLOBS_TABLES = CLI_CSV | CLI_TSV | CLI_JSON | CLI_NPY | CLI_XML };

/* Scale of positions and times; zero: pixels and frames. And what the movie is, for files that say so. */
typedef struct blobs_units {
    double pixel_size, interval;
    char space[16], time[16];
    const char *movie; /* its path; NULL: not known, and zeros below */
    size_t width, height, depth, frames;
    double row, plane; /* distances of rows and planes, in `space`; 0: not known */
} blobs_units;

/* ---- blobs/units.c --------------------------------------------------------------------------- */

/* Columns in physical units: z (of stacks), y and x such as "y_um" where the size of a pixel and its unit are known,
 * and the time such as "t_s" where the interval is. */
typedef struct blobs_extra {
    char name[4][24];
    double scale[4];
    size_t count, places; /* all; those of positions, which come first */
} blobs_extra;

void blobs_find_extra(const blobs_units *units, bool volume, blobs_extra *extra);
/* `place`: in pixels, as many as there are places, in their order. `values` has extra->count. */
void blobs_extra_values(const blobs_extra *extra, uint32_t frame, const double *place,
                        double *values);
bool blobs_has_unit(const blobs_units *units); /* of lengths */
/* Scale for tables: options, else the file's. -1 to go on. */
int blobs_units_of(const blobs_args *args, const clv_movie_facts *facts, blobs_units *units);

/* ---- blobs/write.c, trackmate_xml.c ------------------------------------------------------------ */

struct blobs_trackmate_row;

/* A file of spots that grows: complete or absent, a bounded part in memory (all of it for TrackMate's XML). */
typedef struct blobs_writer {
    const char *path;
    char *temporary;
    FILE *file; /* NULL: all in memory until the end */
    clv_csv csv;
    int format;
    blobs_units units;
    bool tracks, npy, errors; /* npy: records in place of lines; errors: columns of them */
    blobs_extra extra;
    const char *names[16]; /* of all columns */
    size_t row;
    bool xml; /* the spots are kept until the end: */
    struct blobs_trackmate_row *rows;
    size_t room;
} blobs_writer;

/* TrackMate's columns and four header lines; then a row for each spot. */
typedef struct blobs_trackmate_row {
    size_t number;
    int64_t track;                  /* -1: none */
    int64_t segment;                /* of the track: one way without splits and merges */
    size_t split_from, merges_into; /* 1 + numbers of other segments' spots; 0: none */
    uint32_t frame;
    float quality;
    double z, y, x, radius; /* in units.space */
} blobs_trackmate_row;
void blobs_trackmate_begin(clv_csv *csv, clv_csv_kind kind, const blobs_units *units);
void blobs_trackmate_add(clv_csv *csv, const blobs_units *units, const blobs_trackmate_row *row);

/* The header of NumPy records: `whole` fields of uint32, then float32; float64 of `extra` and int64 "particle" behind
 * them. Its length does not depend on `rows`. */
void blobs_npy_begin(clv_text *text, const char *const *fields, size_t count, size_t whole,
                     const blobs_extra *extra, bool particle, size_t rows);

/* Names of all columns to `names`: of `own`, of `extra`, "particle" if there are tracks. How many. */
size_t blobs_join_names(const char **names, const char *const *own, size_t count,
                        const blobs_extra *extra, bool particle);

/* blobs/trackmate_xml.c: rows by frame, their numbers 0, 1, 2 ... */
clv_status blobs_xml_write(const char *path, const blobs_units *units,
                           const blobs_trackmate_row *rows, size_t count);

/* How the rows of a table with this ending are told apart. */
clv_csv_kind blobs_kind_of(const char *path);

/* Rows by frame. The path's ending is the format (CSV for other endings and "-"). */
clv_status blobs_writer_open(blobs_writer *writer, const char *path, const blobs_args *args,
                             const blobs_units *units, bool tracks);
/* A spot, and the error of its place (NaN: not fitted). */
typedef struct blobs_spot {
    clv_spot is;
    clv_spot_error error;
} blobs_spot;

/* `particle` (of each spot) may be NULL. */
clv_status blobs_writer_add(blobs_writer *writer, const blobs_spot *spots, const int64_t *particle,
                            size_t count);
clv_status blobs_writer_finish(blobs_writer *writer);
void blobs_writer_abandon(blobs_writer *writer); /* after finish nothing is left to abandon */

/* ---- blobs/tracks.c -------------------------------------------------------------------------- */

/* Links, drops short tracks, fills gaps: *spots and *particle (made; clv_free) are replaced by those
 * of the tracks, by frame, y, x. */
/* Whether `made` spots may be put between those that were seen: CLV_E_MEMORY for more than 1e8, or for more than
 * clv_io_room has place for. */
clv_status blobs_check_gaps(const char *path, double made, size_t bytes_each);
clv_status blobs_link(blobs_spot **spots, size_t *count, const blobs_args *args, int64_t **particle,
                      size_t *tracks);
/* Writes --tracks. */
clv_status blobs_write_tracks(const blobs_args *args, const blobs_units *units,
                              const blobs_spot *spots, const int64_t *particle, size_t count);

/* ---- blobs/overlay.c ------------------------------------------------------------------------- */

/* The brightest value of every pixel so far, or one frame. */
typedef struct blobs_projection {
    size_t height, width;
    float *values; /* NULL: nothing yet */
} blobs_projection;

bool blobs_project(blobs_projection *projection, const clv_movie_facts *facts, const void *pixels,
                   size_t count, bool invert);
void blobs_projection_clear(blobs_projection *projection);
/* Stretched projection, circles of radius sqrt(2) sigma, tracks (`particle` may be NULL) as lines in the colour of
 * the time, a scale bar if `units` (may be NULL) tell the size of a pixel. */
clv_status blobs_draw(const blobs_projection *projection, const blobs_units *units,
                      const clv_spot *spots, const int64_t *particle, size_t count,
                      const char *path);

/* ---- blobs/histogram.c ----------------------------------------------------------------------- */

enum { BLOBS_BINS = 40, BLOBS_FAINTEST = 3, BLOBS_BRIGHTEST = 100 };
double blobs_histogram_edge(size_t i); /* i <= BLOBS_BINS */
/* Bars of counts, which go from one edge to the next, and the threshold, as PNG. */
clv_status blobs_histogram_draw(const size_t *counts, double threshold, const char *title,
                                const char *path);

/* ---- blobs/volume.c, volume_views.c: stacks of planes ---------------------------------------------- */

/* The whole command for a file that holds stacks: its exit code. */
int blobs_volumes(const blobs_args *args, clv_movie *movie);

/* The brightest values along the three axes. */
typedef struct blobs_volume_views {
    size_t depth, height, width;
    /* [height][width], [height][depth], [depth][width]; NULL: nothing yet */
    float *along_z, *along_x, *along_y;
} blobs_volume_views;

clv_status blobs_volume_project(blobs_volume_views *views, const clv_movie_facts *facts,
                                const void *voxels, bool invert);
void blobs_volume_views_clear(blobs_volume_views *views);
/* `voxel`: its sides along z, y, x. */
clv_status blobs_volume_draw(const blobs_volume_views *views, const double voxel[3],
                             const blobs_units *units, const clv_volume_spot *spots,
                             const int64_t *particle, size_t count, const char *path);

/* A pixel of frames as they are handed out. */
static inline float blobs_value_at(const clv_movie_facts *f, const void *pixels, size_t at)
{
    switch (f->type) {
    case CLV_U8:
        return ((const uint8_t *)pixels)[at];
    case CLV_U16:
        return ((const uint16_t *)pixels)[at];
    case CLV_I16:
        return ((const int16_t *)pixels)[at];
    default:
        return ((const float *)pixels)[at];
    }
}

/* --preview: one frame, and how many spots several thresholds give. */
int blobs_preview(const blobs_args *args, clv_movie *movie, clv_context *context);

#endif
