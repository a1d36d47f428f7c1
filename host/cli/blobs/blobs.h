/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the files of `cleave blobs` share: options, the reading thread, writers of spots. */
#ifndef CLEAVE_HOST_CLI_BLOBS_H
#define CLEAVE_HOST_CLI_BLOBS_H

#include "host/cli/endings.h"
#include "host/io/formats/movie.h"
#include "host/io/formats/npy_stream.h"
#include "host/io/pictures/image.h"
#include "host/io/tables/csv.h"
#include "host/io/tables/parquet.h"

#include <cleave/blob.h>
#include <cleave/stage.h>
#include <cleave/track.h>
#include <cleave/volume.h>

typedef struct blobs_args {
    const char *movie, *output, *tracks, *overlay, *histogram, *frames, *pixel_size, *voxel_size,
        *raw, *stage_drift, *registered;
    double min_sigma, max_sigma, sigma_ratio, threshold, threshold_rel, threshold_sigma, overlap;
    uint64_t num_sigma, exclude_border, channel, z, memory, min_length, preview;
    int hot_pixels, scope, taps, normalize, subpixel, prune, format, axes, predict;
    double link, interval;
    bool dog, log_scale, invert, partial, fill_gaps, subtract_drift;
    bool threshold_given, threshold_rel_given, threshold_sigma_given;
    bool channel_given, z_given, link_given, preview_given, interval_given;
    FILE *news;         /* stream of the summary */
    size_t first, last; /* frames from --frames; last SIZE_MAX: to the end */
    cli_common common;
} blobs_args;

/* ---- blobs/options.c --------------------------------------------------------------------------- */

enum { BLOBS_OPTIONS = 45 };
void blobs_table(blobs_args *args, cli_option *table); /* BLOBS_OPTIONS + 1 rows */
int blobs_check(blobs_args *args);                     /* -1: go on, else the exit code */
clv_blob_options blobs_options(const blobs_args *args);

/* ---- blobs/read.c: frames come from a thread of their own, a few blocks ahead ---------------- */

typedef struct blobs_reader blobs_reader;

/* Starts a thread that reads the frames [first, last) in blocks of `block`. */
clv_status blobs_reader_start(clv_movie *movie, size_t first, size_t last, size_t block,
                              blobs_reader **reader);
/* Returns the next block; *count is 0 at the end. The block stays valid until the next call. Complete frames before an
 * unreadable one are returned first, then the error. */
clv_status blobs_reader_next(blobs_reader *reader, const void **pixels, size_t *count);
double blobs_reader_seconds(blobs_reader *reader); /* spent reading so far */
void blobs_reader_stop(blobs_reader *reader);      /* accepts NULL */
size_t blobs_block(const clv_movie_facts *facts);  /* frames per block, so that memory is bounded */
/* Reports that the user stopped after `done` of `total` frames or stacks. Returns CLV_OK and sets *stopped if the
 * results so far are kept (--partial), else returns CLV_E_CANCELLED. */
clv_status blobs_stop(const blobs_args *args, size_t done, size_t total, const char *what,
                      bool *stopped);

/* ---- blobs/write.c --------------------------------------------------------------------------- */

enum { BLOBS_CLEAVE, BLOBS_TRACKMATE, BLOBS_XY, BLOBS_NAPARI };

/* Formats that tables of spots and tracks may have, by their endings. */
enum { BLOBS_TABLES = CLI_CSV | CLI_TSV | CLI_JSON | CLI_NPY | CLI_XML | CLI_PARQUET };

/* Scales of positions and times; zero: pixels and frames. Also the facts about the movie that some file formats
 * contain. */
typedef struct blobs_units {
    double pixel_size, interval;
    char space[16], time[16];
    const char *movie; /* its path; NULL: unknown, and the members below are 0 */
    size_t width, height, depth, frames;
    double row, plane; /* distances between rows and planes, in `space`; 0: unknown */
} blobs_units;

/* ---- blobs/units.c --------------------------------------------------------------------------- */

/* Columns in physical units: z (for stacks), y and x such as "y_um" if the pixel size and its unit are known, and the
 * time such as "t_s" if the interval is. */
typedef struct blobs_extra {
    char name[4][24];
    double scale[4];
    size_t count, places; /* of all columns; of position columns, which come first */
} blobs_extra;

void blobs_find_extra(const blobs_units *units, bool volume, blobs_extra *extra);
/* Computes the values of the columns in physical units. `place` is in pixels, one number per position column, in the
 * same order; `values` has extra->count elements. */
void blobs_extra_values(const blobs_extra *extra, uint32_t frame, const double *place,
                        double *values);
bool blobs_has_unit(const blobs_units *units); /* whether lengths have a physical unit */
/* Finds the scale for tables: from the options, else from the file. Returns -1 to continue. */
int blobs_units_of(const blobs_args *args, const clv_movie_facts *facts, blobs_units *units);

/* ---- blobs/write.c, trackmate_xml.c ------------------------------------------------------------ */

struct blobs_trackmate_row;

/* Writes a file of spots piece by piece; the file is complete or absent. Only a bounded part is in memory (all of it
 * for TrackMate's XML). */
typedef struct blobs_writer {
    const char *path;
    char *temporary;
    FILE *file; /* NULL: all is in memory until the end */
    clv_csv csv;
    int format;
    blobs_units units;
    bool tracks, npy, errors; /* npy: records instead of lines; errors: with error columns */
    bool parquet;             /* records as well, kept in `records` until they form a row group */
    clv_parquet file_of_columns;
    clv_text records;
    const char *codes[16];
    blobs_extra extra;
    const char *names[20]; /* of all columns */
    size_t row;
    bool xml; /* the members below hold the spots until the end: */
    struct blobs_trackmate_row *rows;
    size_t room;
} blobs_writer;

/* TrackMate's columns and four header lines, then one row per spot. */
typedef struct blobs_trackmate_row {
    size_t number;
    int64_t track;                  /* -1: none */
    int64_t segment;                /* number of a path in the track, without splits or merges */
    size_t split_from, merges_into; /* 1 + numbers of other segments' spots; 0: none */
    uint32_t frame;
    float quality;
    double z, y, x, radius; /* in units.space */
} blobs_trackmate_row;
void blobs_trackmate_begin(clv_csv *csv, clv_csv_kind kind, const blobs_units *units);
void blobs_trackmate_add(clv_csv *csv, const blobs_units *units, const blobs_trackmate_row *row);

/* Writes the header of NumPy records: `whole` fields of uint32, then float32, followed by float64 for `extra` and int64
 * "particle". Its length does not depend on `rows`. */
void blobs_npy_begin(clv_text *text, const char *const *fields, size_t count, size_t whole,
                     const blobs_extra *extra, bool particle, size_t rows);

enum { BLOBS_MOST_COLUMNS = 32 };

/* Fills `names` and `codes` with the names and NumPy's type codes of the columns that blobs_npy_begin writes;
 * returns their number. */
size_t blobs_record_columns(const char **names, const char **codes, const char *const *own,
                            size_t count, size_t whole, const blobs_extra *extra, bool particle);
/* Writes records as a Parquet file, complete or absent. */
clv_status blobs_parquet_write(const char *path, const char *const *names, const char *const *codes,
                               size_t columns, const void *records, size_t rows, size_t row_bytes);

/* Fills `names` with all column names: those of `own`, those of `extra`, and "particle" if there are tracks. Returns
 * their number. */
size_t blobs_join_names(const char **names, const char *const *own, size_t count,
                        const blobs_extra *extra, bool particle);

/* Adds a number that may be missing. For napari a missing number is "nan", because napari's reader takes a column
 * with an empty field for text. */
void blobs_csv_maybe(clv_csv *csv, float value, bool napari);

/* Defined in blobs/trackmate_xml.c. Rows are sorted by frame and numbered 0, 1, 2 ... */
clv_status blobs_xml_write(const char *path, const blobs_units *units,
                           const blobs_trackmate_row *rows, size_t count);

/* Returns the separator style of a table with this ending. */
clv_csv_kind blobs_kind_of(const char *path);

/* Opens the table; rows are added by frame. The path's ending gives the format (CSV for other endings and "-"). */
clv_status blobs_writer_open(blobs_writer *writer, const char *path, const blobs_args *args,
                             const blobs_units *units, bool tracks);
/* A spot, and the error of its position (NaN: not fitted). */
typedef struct blobs_spot {
    clv_spot is;
    clv_spot_error error;
} blobs_spot;

/* Adds spots to the table. `particle` holds the track number of each spot, or is NULL. */
clv_status blobs_writer_add(blobs_writer *writer, const blobs_spot *spots, const int64_t *particle,
                            size_t count);
clv_status blobs_writer_finish(blobs_writer *writer);
void blobs_writer_abandon(blobs_writer *writer); /* has no effect after finish */

/* ---- blobs/tracks.c -------------------------------------------------------------------------- */

/* Checks that gaps in tracks are not filled with too many spots: CLV_E_MEMORY if `made` is above 1e8, or above what
 * clv_io_room allows. */
clv_status blobs_check_gaps(const char *path, double made, size_t bytes_each);
/* Links spots, drops short tracks and fills gaps. Replaces *spots by the spots of the tracks, sorted by frame, y, x,
 * and allocates *particle with their track numbers (free with clv_free). */
clv_status blobs_link(blobs_spot **spots, size_t *count, const blobs_args *args, int64_t **particle,
                      size_t *tracks);
/* Writes the table that --tracks names. */
clv_status blobs_write_tracks(const blobs_args *args, const blobs_units *units,
                              const blobs_spot *spots, const int64_t *particle, size_t count);

/* ---- blobs/stage.c --------------------------------------------------------------------------- */

/* Measures the drift of the stage, and writes the movie without it. */
typedef struct blobs_stage {
    const blobs_args *args;
    const clv_movie_facts *facts;
    clv_stage *stage;
    clv_stage_shift *shifts; /* one per frame measured so far */
    size_t count, room, lost;
    double seconds;
    clv_npy_stream registered;
    float *frame, *restored; /* one frame each: as read, and shifted back; for --registered */
} blobs_stage;

static inline bool blobs_wants_stage(const blobs_args *a)
{
    return a->stage_drift || a->subtract_drift || a->registered;
}
/* Begins to measure the drift of the stage. Zero-initialise `stage` before. */
clv_status blobs_stage_open(blobs_stage *stage, const blobs_args *args, const clv_movie_facts *f);
/* Measures the drift in the next frames. */
clv_status blobs_stage_take(blobs_stage *stage, const void *pixels, size_t count);
/* Subtracts the drift from a spot; its frame counts from the first frame taken. */
void blobs_stage_move(const blobs_stage *stage, clv_spot *spot);
/* Writes the files of --stage-drift and --registered; `first` is the number of the first frame. */
clv_status blobs_stage_finish(blobs_stage *stage, size_t first, const blobs_units *units);
void blobs_stage_tell(const blobs_stage *stage, FILE *news);
void blobs_stage_note(const blobs_stage *stage, clv_report *report);
void blobs_stage_close(blobs_stage *stage);

/* ---- blobs/overlay.c ------------------------------------------------------------------------- */

/* A projection of a movie: the maximum of every pixel over the frames so far, or one frame. */
typedef struct blobs_projection {
    size_t height, width;
    float *values; /* NULL: nothing yet */
} blobs_projection;

/* Adds frames to the projection. `moved` holds one shift per frame, by which the frame is shifted back in whole
 * pixels; NULL: frames stay as they are. */
bool blobs_project(blobs_projection *projection, const clv_movie_facts *facts, const void *pixels,
                   size_t count, const clv_stage_shift *moved, bool invert);
void blobs_projection_clear(blobs_projection *projection);
/* Draws the stretched projection, circles of radius sqrt(2) sigma, the tracks (`particle` may be NULL) as lines
 * coloured by time, and a scale bar if `units` (may be NULL) give the size of a pixel. */
clv_status blobs_draw(const blobs_projection *projection, const blobs_units *units,
                      const clv_spot *spots, const int64_t *particle, size_t count,
                      const char *path);

/* ---- blobs/histogram.c ----------------------------------------------------------------------- */

enum { BLOBS_BINS = 40, BLOBS_FAINTEST = 3, BLOBS_BRIGHTEST = 100 };
double blobs_histogram_edge(size_t i); /* i <= BLOBS_BINS */
/* Draws the counts as bars from one edge to the next, and the threshold, as PNG. */
clv_status blobs_histogram_draw(const size_t *counts, double threshold, const char *title,
                                const char *path);

/* ---- blobs/volume.c, volume_views.c: stacks of planes ---------------------------------------------- */

/* Runs the whole command for a file that holds stacks; returns its exit code. */
int blobs_volumes(const blobs_args *args, clv_movie *movie);

/* The maxima of a stack along its three axes. */
typedef struct blobs_volume_views {
    size_t depth, height, width;
    /* [height][width], [height][depth], [depth][width]; NULL: nothing yet */
    float *along_z, *along_x, *along_y;
} blobs_volume_views;

clv_status blobs_volume_project(blobs_volume_views *views, const clv_movie_facts *facts,
                                const void *voxels, bool invert);
void blobs_volume_views_clear(blobs_volume_views *views);
/* Draws the three views of a stack. `voxel` holds the voxel's sides along z, y, x. */
clv_status blobs_volume_draw(const blobs_volume_views *views, const double voxel[3],
                             const blobs_units *units, const clv_volume_spot *spots,
                             const int64_t *particle, size_t count, const char *path);

/* Returns the value of one pixel of a block that the reader returned. */
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

/* Handles --preview: shows one frame, and how many spots several thresholds give. */
int blobs_preview(const blobs_args *args, clv_movie *movie, clv_context *context);

#endif
