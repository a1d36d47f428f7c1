/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what all movie formats share: the open movie, its notices, its pixel types. */
#ifndef CLEAVE_HOST_IO_FORMATS_MOVIE_PARTS_H
#define CLEAVE_HOST_IO_FORMATS_MOVIE_PARTS_H

#include "host/io/formats/movie.h"

struct clv_movie {
    clv_movie_facts facts;
    char *path;
    size_t frame_bytes;
    void *state;
    clv_status (*read)(clv_movie *movie, size_t frame, void *pixels); /* reads one frame */
    void (*close)(void *state);
    bool stacked;       /* each file holds whole stacks of facts.depth planes */
    char *const *files; /* paths if the movie is in several files, owned by `state`; else NULL */
    size_t file_count;
};

void clv_movie_notice(clv_movie *movie, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Return the size in bytes and the name of a number as the file stores it. */
size_t clv_movie_stored_size(clv_type stored, clv_narrow narrow);
const char *clv_movie_stored_name(clv_type stored, clv_narrow narrow);
/* Returns the type that frames get whose numbers are of type `stored` in the file. */
clv_type clv_movie_type(clv_type stored);
/* Converts `count` numbers at `in`, as the file stores them, to clv_movie_type(stored). */
void clv_movie_convert(clv_type stored, clv_narrow narrow, const void *in, size_t count, void *out);
/* If a file begins like a known format that Cleave does not read, returns CLV_E_FORMAT with the format's name and a
 * workaround; else CLV_OK. */
clv_status clv_movie_foreign(const char *path, const unsigned char *start, size_t length);
/* Checks the options for a file without channels and without planes in depth: any choice other than number 0 fails. */
clv_status clv_movie_only_one(const char *path, const clv_movie_options *options);
/* Fails with the message for a file whose frames end early; it names `what` happened and the last readable frame. */
clv_status clv_movie_short(const char *path, const char *what, size_t whole_frames);

/* The functions that open and close the files of a folder: clv_movie_open and clv_movie_close. */
typedef struct clv_movie_opener {
    clv_status (*open)(const char *path, const clv_movie_options *options, clv_movie **movie);
    void (*close)(clv_movie *movie);
} clv_movie_opener;

clv_status clv_movie_open_files(clv_movie *movie, const char *const *paths, size_t count,
                                const clv_movie_options *options, clv_movie_opener opener);
/* Opens the files whose names match movie->path, a pattern, as one movie. Returns CLV_E_FORMAT if no file does. */
clv_status clv_movie_open_pattern(clv_movie *movie, const clv_movie_options *options,
                                  clv_movie_opener opener);
clv_status clv_movie_open_folder(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener);
/* Opens the files that the text file at movie->path lists, one path per line, as one movie. */
clv_status clv_movie_open_listed(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener);
clv_status clv_movie_open_npy(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_png(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_raw(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_zarr(clv_movie *movie, const clv_movie_options *options);
clv_status clv_movie_open_tiff(clv_movie *movie, const clv_movie_options *options);

#endif
