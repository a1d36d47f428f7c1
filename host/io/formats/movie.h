/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a movie from a file, frame by frame: NPY, TIFF, PNG or OME-Zarr, recognised by content, or raw pixels. */
#ifndef CLEAVE_HOST_IO_FORMATS_MOVIE_H
#define CLEAVE_HOST_IO_FORMATS_MOVIE_H

#include "host/io/array.h"

/* Number types of files for which clv_type has no type: int8 becomes int16, float16 becomes float32. */
typedef enum clv_narrow { CLV_NARROW_NOT, CLV_NARROW_INT8, CLV_NARROW_HALF } clv_narrow;

/* The layout of a file of raw pixels, which has no header. */
typedef struct clv_raw_layout {
    bool given, big_endian;
    size_t frames, height, width; /* frames: 0 for as many as the file holds */
    clv_type type;
    uint64_t offset; /* offset of the first frame in the file, in bytes */
    /* the file's type if clv_type has none; `type` is then the type after conversion */
    clv_narrow narrow;
} clv_raw_layout;

/* Parses "T,H,W,TYPE[,OFFSET]". TYPE is i8 u8 u16 i16 u32 f16 f32 f64 or a name of NumPy's; a > before it means
 * big-endian. Returns false if `text` has another form. */
bool clv_raw_parse(const char *text, clv_raw_layout *layout);

/* How the planes of a file are to be interpreted. */
typedef enum clv_movie_axes {
    /* as the file says: stacks in depth if it clearly says so, else frames in time */
    CLV_MOVIE_AS_TOLD,
    CLV_MOVIE_TYX,  /* frames in time */
    CLV_MOVIE_ZYX,  /* one stack of planes in depth */
    CLV_MOVIE_TZYX, /* stacks in time; the file must state the planes per stack */
} clv_movie_axes;

/* Zero-initialise for the defaults. */
typedef struct clv_movie_options {
    bool channel_given, z_given;
    size_t channel, z; /* 0-based */
    bool partial;      /* reads the readable frames of a damaged file */
    clv_raw_layout raw;
    bool stacks; /* the caller accepts stacks of planes as well as frames in time */
    clv_movie_axes axes;
    /* set by the list reader: this file is listed in another, and may not itself be a list */
    bool listed;
} clv_movie_options;

typedef struct clv_movie_facts {
    clv_type type; /* type of the frames returned: CLV_U8, CLV_U16, CLV_I16 or CLV_F32 */
    size_t frames, height, width;
    char format[16];   /* "NPY", "TIFF", "ImageJ TIFF", "OME-Zarr", "PNG", "raw", "folder" ... */
    char stored[16];   /* type in the file: "uint16" */
    char notices[400]; /* lines for the user, each with LF at its end */
    double pixel_size, interval;        /* 0: unknown */
    char pixel_unit[16], time_unit[16]; /* "": unknown */
    size_t depth; /* planes per stack; frames are the planes, stack by stack; 1: no stacks */
    /* in pixel_unit; plane_spacing 0: unknown; row_spacing 0: equals pixel_size */
    double plane_spacing, row_spacing;
} clv_movie_facts;

typedef struct clv_movie clv_movie;

/* Opens a movie. Frames of 32-bit and 64-bit integers or of float64 become float32, and a notice says so. Returns
 * CLV_OK; CLV_E_IO; CLV_E_SHAPE; CLV_E_MEMORY; CLV_E_FORMAT for a type that cannot be a pixel, for colour, channels or
 * planes of which the options choose none, and for a damaged file unless `partial` is set, with a message that names
 * the last readable frame. */
clv_status clv_movie_open(const char *path, const clv_movie_options *options, clv_movie **movie);
/* Opens several files as one movie: the frames of the first file, then those of the second, and so on. If the first
 * file holds stacks (CLV_MOVIE_ZYX: one stack), all others must hold stacks of as many planes. clv_movie_open also
 * opens several files if no file is called `path` and `path` is a pattern such as "frames/t??.tif"; the files are then
 * in the order of the numbers in their names.
 *
 * clv_movie_open opens the files of a list, too: a text file whose name ends in .txt or .lst, or any file if `path` is
 * "@FILE". A list has one path per line, which is looked up first in the list's folder, then in the working folder.
 * Blank lines and lines that begin with # are skipped.
 *
 * Returns the statuses of clv_movie_open, and CLV_E_SHAPE for frames of different sizes or types. */
clv_status clv_movie_open_list(const char *const *paths, size_t count,
                               const clv_movie_options *options, clv_movie **movie);
const clv_movie_facts *clv_movie_look(const clv_movie *movie);
/* Returns the paths of the files of a movie that has several, and sets *count. The paths are valid until the movie is
 * closed. */
char *const *clv_movie_files(const clv_movie *movie, size_t *count);
/* Reads frames [first, first + count) to `pixels`, one after the other without gaps. Only one thread at a time may call
 * this function for a movie. */
clv_status clv_movie_read(clv_movie *movie, size_t first, size_t count, void *pixels);
void clv_movie_close(clv_movie *movie); /* accepts NULL */

#endif
