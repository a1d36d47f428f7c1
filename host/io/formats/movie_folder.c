/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a movie from several files: the files of a folder or those that match a pattern, in the order of the numbers in
 * their names; or files in the order that the user gave. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct folder {
    char **path;
    size_t count, room;
    /* [count + 1]: number of the first frame of each file; NULL: each file is one frame */
    size_t *first;
    const char *why; /* for messages: why each file must be one frame */
    clv_movie *open; /* the file that was read last, if files have several frames */
    size_t open_file;
    clv_movie_options options;
    clv_movie_opener opener;
} folder;

static void close_folder(void *state)
{
    folder *f = state;
    f->opener.close(f->open);
    for (size_t i = 0; i < f->count; ++i)
        clv_free(f->path[i]);
    clv_free(f->path), clv_free(f->first);
    clv_free(f);
}

/* Orders "frame9" before "frame10": compares digits as numbers, and everything else by bytes. */
static int by_number(const void *left, const void *right)
{
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    while (*a && *b) {
        const size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
        if (na && nb) {
            const size_t za = strspn(a, "0"), zb = strspn(b, "0");
            const size_t la = za < na ? na - za : 0, lb = zb < nb ? nb - zb : 0;
            if (la != lb) return la < lb ? -1 : 1;
            const int order = strncmp(a + za, b + zb, la);
            if (order) return order;
            a += na, b += nb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            ++a, ++b;
        }
    }
    return (*a != 0) - (*b != 0);
}

static bool is_frame(const char *name)
{
    static const char *const endings[] = {
        ".tif", ".tiff", ".TIF", ".TIFF", ".npy", ".png", ".PNG"
    };
    for (size_t i = 0; i < CLV_LEN(endings); ++i)
        if (name[0] != '.' && clv_ends_with(name, endings[i])) return true;
    return false;
}

static clv_status add_path(folder *f, const char *before, const char *name)
{
    const size_t bytes = strlen(before) + strlen(name) + 2;
    char *full =
        clv_reserve(&f->path, &f->room, f->count + 1, sizeof *f->path) ? clv_alloc(bytes, 1) : NULL;
    if (!full) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a list of files", name);
    snprintf(full, bytes, "%s%s%s", before, *before ? "/" : "", name);
    f->path[f->count++] = full;
    return CLV_OK;
}

static clv_status list(const char *path, folder *f, size_t *others)
{
    DIR *stream = opendir(path);
    const struct dirent *entry;
    if (!stream) return clv_fail(CLV_E_IO, "%s: cannot read: %s", path, strerror(errno));
    clv_status status = CLV_OK;
    while (!status && (entry = readdir(stream)))
        if (is_frame(entry->d_name))
            status = add_path(f, path, entry->d_name);
        else
            *others += entry->d_name[0] != '.';
    closedir(stream);
    if (f->count) qsort(f->path, f->count, sizeof *f->path, by_number);
    return status;
}

/* Opens file number `file`, whose frames must have the size and type of the first file's frames. */
static clv_status open_file(const clv_movie *movie, size_t file, clv_movie **one)
{
    const folder *f = movie->state;
    CLV_TRY(f->opener.open(f->path[file], &f->options, one));
    const clv_movie_facts *is = &(*one)->facts, *all = &movie->facts;
    clv_status status = CLV_OK;
    if (is->frames != 1 && !f->first)
        status =
            clv_fail(CLV_E_FORMAT, "%s has %zu frames, but %s", f->path[file], is->frames, f->why);
    else if (movie->stacked && is->depth != all->depth)
        status = clv_fail(CLV_E_SHAPE,
                          "%s has %zu planes per stack, but the first file has %zu; --axes TYX "
                          "reads all planes as frames in time",
                          f->path[file], is->depth, all->depth);
    else if (all->height &&
             (is->height != all->height || is->width != all->width || is->type != all->type))
        status = clv_fail(CLV_E_SHAPE, "%s is %zux%zu %s, but the first file is %zux%zu %s",
                          f->path[file], is->width, is->height, clv_type_name(is->type), all->width,
                          all->height, clv_type_name(all->type));
    if (!status) return CLV_OK;
    f->opener.close(*one);
    *one = NULL;
    return status;
}

/* Returns the number of the file that holds frame `frame`. */
static size_t file_of(const folder *f, size_t frame)
{
    size_t low = 0, high = f->count; /* first[low] <= frame < first[high] */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (f->first[middle] <= frame)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static clv_status read_folder(clv_movie *movie, size_t frame, void *pixels)
{
    folder *f = movie->state;
    if (!f->first) {
        clv_movie *one;
        CLV_TRY(open_file(movie, frame, &one));
        const clv_status status = one->read(one, 0, pixels);
        f->opener.close(one);
        return status;
    }
    const size_t file = file_of(f, frame), at = frame - f->first[file];
    if (!f->open || f->open_file != file) {
        f->opener.close(f->open);
        f->open = NULL;
        CLV_TRY(open_file(movie, file, &f->open));
        f->open_file = file;
    }
    if (at >= f->open->facts.frames)
        return clv_fail(CLV_E_FORMAT, "%s: the file became shorter while it was read",
                        f->path[file]);
    return f->open->read(f->open, at, pixels);
}

/* Copies the facts of the first file. If files may hold several frames and the first does, counts the frames of all
 * files. */
static clv_status look(clv_movie *movie, folder *f, bool several)
{
    clv_movie *one;
    size_t frames = f->count;
    movie->files = f->path, movie->file_count = f->count;
    if (several) {
        f->first = clv_alloc(f->count + 1, sizeof *f->first);
        if (!f->first) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    }
    CLV_TRY(open_file(movie, 0, &one));
    movie->facts = one->facts, movie->stacked = one->facts.depth > 1;
    f->opener.close(one);
    if (several && movie->facts.frames == 1) {
        clv_free(f->first);
        f->first = NULL;
    } else if (several) {
        f->first[0] = 0, f->first[1] = movie->facts.frames;
        for (size_t i = 1; i < f->count; ++i) {
            CLV_TRY(open_file(movie, i, &one));
            f->first[i + 1] = f->first[i] + one->facts.frames;
            f->opener.close(one);
        }
        frames = f->first[f->count];
    }
    movie->facts.frames = frames;
    return CLV_OK;
}

static clv_status begin(clv_movie *movie, const clv_movie_options *options, clv_movie_opener opener,
                        folder **out)
{
    folder *f = clv_zalloc(1, sizeof *f);
    if (!f) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    movie->state = f, movie->close = close_folder, movie->read = read_folder;
    f->options = *options, f->opener = opener;
    /* a single file does not state the planes per stack; make_stacks in movie.c checks them */
    if (options->axes == CLV_MOVIE_TZYX) f->options.axes = CLV_MOVIE_AS_TOLD;
    f->why = "the first of these files holds one, so each of them must be one frame";
    *out = f;
    return CLV_OK;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void tell_files(clv_movie *movie, const folder *f)
{
    clv_movie_notice(movie, "%zu files %s, from %.60s to %.60s\n", f->count,
                     f->first ? "follow each other" : "are the frames", name_of(f->path[0]),
                     name_of(f->path[f->count - 1]));
}

clv_status clv_movie_open_files(clv_movie *movie, const char *const *paths, size_t count,
                                const clv_movie_options *options, clv_movie_opener opener)
{
    folder *f = NULL;
    CLV_TRY(begin(movie, options, opener, &f));
    for (size_t i = 0; i < count; ++i)
        CLV_TRY(add_path(f, "", paths[i]));
    CLV_TRY(look(movie, f, true));
    clv_copy_string(movie->facts.format, sizeof movie->facts.format, "several files");
    tell_files(movie, f);
    for (size_t i = 1; i < count; ++i)
        if (by_number(&f->path[i - 1], &f->path[i]) > 0) {
            clv_movie_notice(
                movie,
                "the files are read in the order given, %.60s before %.60s; with a folder or a "
                "pattern in quotes they are read in the order of their numbers\n",
                name_of(f->path[i - 1]), name_of(f->path[i]));
            break;
        }
    return CLV_OK;
}

clv_status clv_movie_open_pattern(clv_movie *movie, const clv_movie_options *options,
                                  clv_movie_opener opener)
{
    folder *f = NULL;
    glob_t found = { 0 };
    CLV_TRY(begin(movie, options, opener, &f));
    const int code = glob(movie->path, GLOB_NOSORT, NULL, &found);
    clv_status status =
        code == GLOB_NOSPACE ? clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path)
        : code || !found.gl_pathc
            ? clv_fail(CLV_E_IO,
                       "%s: there is no file of this name, and none matches it as a pattern",
                       movie->path)
            : CLV_OK;
    for (size_t i = 0; !status && i < found.gl_pathc; ++i)
        status = add_path(f, "", found.gl_pathv[i]);
    globfree(&found);
    CLV_TRY(status);
    qsort(f->path, f->count, sizeof *f->path, by_number);
    CLV_TRY(look(movie, f, true));
    clv_copy_string(movie->facts.format, sizeof movie->facts.format, "several files");
    tell_files(movie, f);
    return CLV_OK;
}

clv_status clv_movie_open_folder(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener)
{
    folder *f = NULL;
    size_t others = 0;
    CLV_TRY(begin(movie, options, opener, &f));
    if (options->raw.given)
        return clv_fail(CLV_E_ARGUMENT, "%s is a folder, but --raw describes a single file",
                        movie->path);
    f->why = "of a folder each file is one frame; give the files themselves";
    CLV_TRY(list(movie->path, f, &others));
    if (!f->count)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: the folder has no .tif, .tiff, .png or .npy files, each of which would be a frame "
            "(it has %zu other files; Fiji, for example, can save other image formats as TIFF)",
            movie->path, others);
    CLV_TRY(look(movie, f, false));
    clv_copy_string(movie->facts.format, sizeof movie->facts.format, "folder");
    tell_files(movie, f);
    if (others) clv_movie_notice(movie, "%zu other files of the folder are left out\n", others);
    return CLV_OK;
}
