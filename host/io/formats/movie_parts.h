/* SPDX-License-Identifier: Apache-2.0 */
/* What the movie formats share: the open movie, its notices, its pixel types. */
#ifndef CLEAVE_HOST_IO_FORMATS_MOVIE_PARTS_H
#define CLEAVE_HOST_IO_FORMATS_MOVIE_PARTS_H

#include "host/io/formats/movie.h"

struct clv_movie {
    clv_movie_facts facts;
    char *path;
    size_t frame_bytes;
    void *state;
    clv_status (*read)(clv_movie *movie, size_t frame, void *pixels); /* one frame */
    void (*close)(void *state);
    bool stacked;       /* each file holds whole stacks, of facts.depth planes */
    char *const *files; /* if the movie is in several files: their paths, owned by `state` */
    size_t file_count;
};

void clv_movie_notice(clv_movie *movie, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Size in bytes, and name, of a number as it is stored in the file. */
size_t clv_movie_stored_size(clv_type stored, clv_narrow narrow);
const char *clv_movie_stored_name(clv_type stored, clv_narrow narrow);
/* Returns the type in which frames of this stored type are returned. */
clv_type clv_movie_type(clv_type stored);
/* Converts `count` numbers from the file to clv_movie_type(stored). */
void clv_movie_convert(clv_type stored, clv_narrow narrow, const void *in, size_t count, void *out);
/* Returns CLV_E_FORMAT, with the format's name and a workaround, if a file begins like a known format that is not read;
 * else CLV_OK. */
clv_status clv_movie_foreign(const char *path, const unsigned char *start, size_t length);
/* For a file that has neither channels nor planes in depth: refuses any choice but number 0. */
clv_status clv_movie_only_one(const char *path, const clv_movie_options *options);
/* Returns the error for a file whose frames end early. */
clv_status clv_movie_short(const char *path, const char *what, size_t whole_frames);

/* How to open and close the files of a folder: clv_movie_open and clv_movie_close. */
typedef struct clv_movie_opener {
    clv_status (*open)(const char *path, const clv_movie_options *options, clv_movie **movie);
    void (*close)(clv_movie *movie);
} clv_movie_opener;

clv_status clv_movie_open_files(clv_movie *movie, const char *const *paths, size_t count,
                                const clv_movie_options *options, clv_movie_opener opener);
/* The files that the movie's path fits as a pattern; CLV_E_FORMAT if there are none. */
clv_status clv_movie_open_pattern(clv_movie *movie, const clv_movie_options *options,
                                  clv_movie_opener opener);
clv_status clv_movie_open_folder(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener);
/* The files that a text file lists, one path per line. */
clv_status clv_movie_open_listed(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener);
clv_status clv_movie_open_npy(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_png(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_raw(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_zarr(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_tiff(clv_movie *movie, const clv_movie_options *options);

#endif
