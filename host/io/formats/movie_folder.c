/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of frames, one file each, in the order of the numbers in their names. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct folder {
    char **path; /* of each frame */
    size_t count, room;
    clv_movie_options options;
    clv_movie_opener opener;
} folder;

static void close_folder(void *state)
{
    folder *f = state;
    for (size_t i = 0; i < f->count; ++i)
        clv_free(f->path[i]);
    clv_free(f->path);
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

static clv_status list(const char *path, folder *f, size_t *others)
{
    DIR *stream = opendir(path);
    const struct dirent *entry;
    if (!stream) return clv_fail(CLV_E_IO, "%s: cannot read: %s", path, strerror(errno));
    clv_status status = CLV_OK;
    while (!status && (entry = readdir(stream))) {
        if (!is_frame(entry->d_name)) {
            *others += entry->d_name[0] != '.';
            continue;
        }
        const size_t bytes = strlen(path) + strlen(entry->d_name) + 2;
        char *full = clv_reserve(&f->path, &f->room, f->count + 1, sizeof *f->path)
                         ? clv_alloc(bytes, 1)
                         : NULL;
        if (full) {
            snprintf(full, bytes, "%s/%s", path, entry->d_name);
            f->path[f->count++] = full;
        } else {
            status = clv_fail(CLV_E_MEMORY, "%s: no memory for its list of files", path);
        }
    }
    closedir(stream);
    if (f->count) qsort(f->path, f->count, sizeof *f->path, by_number);
    return status;
}

/* Opens a file that must hold one frame like that of the first file. */
static clv_status open_frame(const clv_movie *movie, size_t frame, clv_movie **one)
{
    const folder *f = movie->state;
    CLV_TRY(f->opener.open(f->path[frame], &f->options, one));
    const clv_movie_facts *is = &(*one)->facts, *all = &movie->facts;
    clv_status status = CLV_OK;
    if (is->frames != 1)
        status = clv_fail(
            CLV_E_FORMAT,
            "%s: holds %zu frames, but of a folder each file is one frame; give the file alone",
            f->path[frame], is->frames);
    else if (all->height &&
             (is->height != all->height || is->width != all->width || is->type != all->type))
        status = clv_fail(CLV_E_SHAPE,
                          "%s: is %zux%zu %s, but the first file of the folder is %zux%zu %s",
                          f->path[frame], is->width, is->height, clv_type_name(is->type),
                          all->width, all->height, clv_type_name(all->type));
    if (!status) return CLV_OK;
    f->opener.close(*one);
    *one = NULL;
    return status;
}

static clv_status read_folder(clv_movie *movie, size_t frame, void *pixels)
{
    const folder *f = movie->state;
    clv_movie *one;
    CLV_TRY(open_frame(movie, frame, &one));
    const clv_status status = one->read(one, 0, pixels);
    f->opener.close(one);
    return status;
}

clv_status clv_movie_open_folder(clv_movie *movie, const clv_movie_options *options,
                                 clv_movie_opener opener)
{
    folder *f = clv_zalloc(1, sizeof *f);
    size_t others = 0;
    if (!f) return clv_fail(CLV_E_MEMORY, "%s: no memory", movie->path);
    movie->state = f, movie->close = close_folder, movie->read = read_folder;
    f->options = *options, f->opener = opener;
    f->options.stacks = false, f->options.axes = CLV_MOVIE_AS_TOLD;
    if (options->raw.given)
        return clv_fail(CLV_E_ARGUMENT, "%s: is a folder, but --raw tells what one file holds",
                        movie->path);
    CLV_TRY(list(movie->path, f, &others));
    if (!f->count)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: a folder without .tif, .tiff, .png or .npy files; each of them would be "
            "a frame (%zu other files "
            "are there; other pictures can be saved as TIFF, for example in Fiji)",
            movie->path, others);
    clv_movie *first;
    CLV_TRY(open_frame(movie, 0, &first));
    movie->facts = first->facts;
    opener.close(first);
    movie->facts.frames = f->count, movie->facts.depth = 0;
    clv_copy_string(movie->facts.format, sizeof movie->facts.format, "folder");
    const char *name = strrchr(f->path[0], '/') + 1,
               *last = strrchr(f->path[f->count - 1], '/') + 1;
    clv_movie_notice(movie, "%zu files are the frames, from %.60s to %.60s\n", f->count, name,
                     last);
    if (others) clv_movie_notice(movie, "%zu other files of the folder are left out\n", others);
    return CLV_OK;
}
