/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a movie: recognises the format of its file or folder, and reads its frames. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/zarr.h"
#include "host/io/room.h"
#include "host/io/stream.h"

#include <string.h>
#include <sys/stat.h>

static clv_status open_any(clv_movie *movie, const clv_movie_options *options)
{
    unsigned char start[16] = { 0 };
    char found[40];
    clv_input input;
    struct stat info;
    const clv_movie_opener opener = { clv_movie_open, clv_movie_close };
    const bool there = lstat(movie->path, &info) == 0;
    if (!there && *movie->path == '@') return clv_movie_open_listed(movie, options, opener);
    if (!there && strpbrk(movie->path, "*?["))
        return clv_movie_open_pattern(movie, options, opener);
    const bool folder = stat(movie->path, &info) == 0 && S_ISDIR(info.st_mode);
    if (folder && !options->raw.given && clv_zarr_is(movie->path))
        return clv_movie_open_zarr(movie, options);
    if (folder) return clv_movie_open_folder(movie, options, opener);
    if (options->raw.given) {
        CLV_TRY(clv_movie_only_one(movie->path, options));
        return clv_movie_open_raw(movie, options);
    }
    CLV_TRY(clv_input_open(&input, movie->path));
    const size_t bytes = input.length < sizeof start ? (size_t)input.length : sizeof start;
    const clv_status status = clv_input_read(&input, start, bytes);
    clv_input_close(&input);
    CLV_TRY(status);
    if (memcmp(start, "\x93NUMPY", 6) == 0) return clv_movie_open_npy(movie, options);
    if (memcmp(start, "II*\0", 4) == 0 || memcmp(start, "MM\0*", 4) == 0 ||
        memcmp(start, "II+\0", 4) == 0 || memcmp(start, "MM\0+", 4) == 0)
        return clv_movie_open_tiff(movie, options);
    if (memcmp(start, "\x89PNG", 4) == 0) return clv_movie_open_png(movie, options);
    if (!bytes)
        return clv_fail(CLV_E_FORMAT, "%s is empty; expected a TIFF, NPY or PNG movie",
                        movie->path);
    CLV_TRY(clv_movie_foreign(movie->path, start, bytes));
    if (clv_ends_with(movie->path, ".txt") || clv_ends_with(movie->path, ".lst"))
        return clv_movie_open_listed(movie, options, opener);
    return clv_fail(CLV_E_FORMAT,
                    "%s begins with \"%s\", expected a TIFF, NPY or PNG movie, or a list of files "
                    "that ends in "
                    ".txt or .lst (raw pixels need --raw)",
                    movie->path,
                    clv_printable(start, CLV_MIN(bytes, (size_t)6), found, sizeof found));
}

/* Sets the number of planes per stack if the format's reader has not done so. */
static clv_status make_stacks(clv_movie *movie, const clv_movie_options *options)
{
    clv_movie_facts *f = &movie->facts;
    if (!f->depth) f->depth = 1;
    if (!options->stacks || movie->stacked) return CLV_OK;
    if (options->axes == CLV_MOVIE_ZYX) f->depth = CLV_MAX(f->frames, (size_t)1);
    if (options->axes == CLV_MOVIE_TZYX && f->depth == 1)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s does not say how many planes a stack has; its %zu planes can be read "
                        "as one stack (--axes ZYX) or as frames in time (--axes TYX)",
                        movie->path, f->frames);
    const size_t stacks = f->frames / f->depth;
    if (stacks * f->depth == f->frames) return CLV_OK;
    if (!stacks)
        return clv_fail(CLV_E_FORMAT, "%s has %zu planes, fewer than a stack of %zu", movie->path,
                        f->frames, f->depth);
    clv_movie_notice(movie,
                     "%zu planes are %zu stacks of %zu and a part of one, which is left out\n",
                     f->frames, stacks, f->depth);
    f->frames = stacks * f->depth;
    return CLV_OK;
}

static clv_status open_movie(const char *path, const char *const *paths, size_t count,
                             const clv_movie_options *options, clv_movie **out)
{
    const clv_movie_options none = { 0 };
    *out = NULL;
    clv_movie *movie = clv_zalloc(1, sizeof *movie);
    if (movie) movie->path = clv_strdup(path);
    clv_status status = CLV_OK;
    if (!movie || !movie->path)
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    else if (paths)
        status = clv_movie_open_files(movie, paths, count, options ? options : &none,
                                      (clv_movie_opener){ clv_movie_open, clv_movie_close });
    else
        status = open_any(movie, options ? options : &none);
    if (!status) status = make_stacks(movie, options ? options : &none);
    size_t plane = 0;
    if (!status && (!clv_size_mul(movie->facts.height, movie->facts.width, &plane) ||
                    !clv_size_mul(plane, clv_type_size(movie->facts.type), &movie->frame_bytes)))
        status =
            clv_fail(CLV_E_SHAPE, "%s: its frames need more memory than can be addressed", path);
    if (!status && (!plane || !movie->facts.frames))
        status = clv_fail(CLV_E_SHAPE, "%s: a movie of [%zu,%zu,%zu] has no pixels", path,
                          movie->facts.frames, movie->facts.height, movie->facts.width);
    size_t unit = 0; /* bytes of a frame or of a stack, whichever callers hold as a whole */
    if (!status && !clv_size_mul(movie->frame_bytes, movie->facts.depth, &unit))
        status =
            clv_fail(CLV_E_SHAPE, "%s: its stacks need more memory than can be addressed", path);
    if (!status)
        status =
            clv_io_need(path, movie->facts.depth > 1 ? "for one stack" : "for one frame", unit);
    if (status) {
        clv_movie_close(movie);
        return status;
    }
    *out = movie;
    return CLV_OK;
}

clv_status clv_movie_open(const char *path, const clv_movie_options *options, clv_movie **movie)
{
    return open_movie(path, NULL, 0, options, movie);
}

clv_status clv_movie_open_list(const char *const *paths, size_t count,
                               const clv_movie_options *options, clv_movie **movie)
{
    if (count == 1) return clv_movie_open(paths[0], options, movie);
    return open_movie(paths[0], paths, count, options, movie);
}

const clv_movie_facts *clv_movie_look(const clv_movie *movie)
{
    return &movie->facts;
}

char *const *clv_movie_files(const clv_movie *movie, size_t *count)
{
    *count = movie->file_count;
    return movie->files;
}

clv_status clv_movie_read(clv_movie *movie, size_t first, size_t count, void *pixels)
{
    if (first > movie->facts.frames || count > movie->facts.frames - first)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: frames %zu to %zu were asked for, but there are %zu, counted from 0",
                        movie->path, first, first + count, movie->facts.frames);
    for (size_t i = 0; i < count; ++i)
        CLV_TRY(movie->read(movie, first + i, (char *)pixels + i * movie->frame_bytes));
    return CLV_OK;
}

void clv_movie_close(clv_movie *movie)
{
    if (!movie) return;
    if (movie->close) movie->close(movie->state);
    clv_free(movie->path);
    clv_free(movie);
}
