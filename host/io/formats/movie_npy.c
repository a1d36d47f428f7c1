/* SPDX-License-Identifier: Apache-2.0 */
/* Reads movies from NPY files: frames in C order one by one, other files as a whole when they are opened. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/formats/npy.h"
#include "host/io/formats/npy_header.h"
#include "host/io/stream.h"

#include <stdio.h>
#include <string.h>

typedef struct npy_movie {
    clv_input input;
    clv_npy_header header;
    uint64_t data;      /* offset of the data in the file, in bytes */
    size_t pixels;      /* pixels per frame */
    size_t first, step; /* frames are the planes first, first + step, ... of the file */
    void *row;          /* a frame as stored in the file, if it must be converted */
    clv_file_array whole;
} npy_movie;

static void close_npy(void *state)
{
    npy_movie *npy = state;
    clv_input_close(&npy->input);
    clv_file_array_clear(&npy->whole);
    clv_free(npy->row);
    clv_free(npy);
}

static clv_status read_npy(clv_movie *movie, size_t frame, void *pixels)
{
    npy_movie *npy = movie->state;
    const size_t plane = npy->first + frame * npy->step;
    if (npy->whole.data) {
        memcpy(pixels, (const char *)npy->whole.data + plane * movie->frame_bytes,
               movie->frame_bytes);
        return CLV_OK;
    }
    const size_t bytes = npy->pixels * npy->header.dtype->size;
    void *to = npy->row ? npy->row : pixels;
    CLV_TRY(clv_input_read_at(&npy->input, npy->data + (uint64_t)plane * bytes, to, bytes));
    if (npy->header.swap) clv_npy_swap(to, bytes, npy->header.dtype->size);
    if (npy->row)
        clv_movie_convert(npy->header.dtype->type, CLV_NARROW_NOT, npy->row, npy->pixels, pixels);
    return CLV_OK;
}

static clv_status check_length(clv_movie *movie, npy_movie *npy, bool partial)
{
    const size_t frame = npy->pixels * npy->header.dtype->size;
    const uint64_t there = npy->input.length - npy->data;
    const uint64_t wanted = (uint64_t)frame * npy->step * movie->facts.frames;
    if (there > wanted)
        return clv_fail(CLV_E_FORMAT, "%s has %llu bytes of data, but its header promises %llu",
                        movie->path, (unsigned long long)there, (unsigned long long)wanted);
    if (there == wanted) return CLV_OK;
    const size_t planes = (size_t)(there / frame),
                 whole = planes > npy->first ? (planes - npy->first - 1) / npy->step + 1 : 0;
    char what[100];
    snprintf(what, sizeof what, "truncated: %llu bytes of data, expected %llu",
             (unsigned long long)there, (unsigned long long)wanted);
    if (!partial || !whole || npy->header.fortran) return clv_movie_short(movie->path, what, whole);
    clv_movie_notice(movie, "%s; %zu of %zu frames are there\n", what, whole, movie->facts.frames);
    movie->facts.frames = whole;
    return CLV_OK;
}

static clv_status load(clv_movie *movie, npy_movie *npy)
{
    CLV_TRY(clv_npy_read(movie->path, &npy->whole));
    if (npy->whole.type != movie->facts.type)
        return clv_file_array_convert(&npy->whole, movie->path, movie->facts.type);
    return CLV_OK;
}

clv_status clv_movie_open_npy(clv_movie *movie, const clv_movie_options *options)
{
    char shape[CLV_SHAPE_TEXT];
    npy_movie *npy = clv_zalloc(1, sizeof *npy);
    if (!npy) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    npy->input.descriptor = -1;
    movie->state = npy, movie->close = close_npy, movie->read = read_npy;
    CLV_TRY(clv_input_open(&npy->input, movie->path));
    CLV_TRY(clv_npy_header_read(&npy->input, &npy->header));
    npy->data = npy->input.position;
    const clv_npy_header *h = &npy->header;
    const bool plane = h->rank == 4 && options->z_given,
               stacks = h->rank == 4 && options->stacks && !plane;
    if (h->rank < 2 || (h->rank > 3 && !stacks && !plane))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the array is %s; expected a frame [H,W] or a movie [T,H,W]%s",
                        movie->path, clv_shape_text(h->rank, h->shape, shape),
                        options->stacks ? " or stacks [T,Z,H,W]" : "");
    if (stacks &&
        (options->axes == CLV_MOVIE_TYX || (options->axes == CLV_MOVIE_ZYX && h->shape[0] != 1)))
        return clv_fail(
            CLV_E_ARGUMENT,
            "%s: the array is %s with the four axes T, Z, Y and X, but --axes names three",
            movie->path, clv_shape_text(h->rank, h->shape, shape));
    if (plane && options->z >= h->shape[1])
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: plane %zu was asked for, but there are %zu, counted from 0",
                        movie->path, options->z, h->shape[1]);
    clv_movie_options others = *options;
    if (plane) others.z_given = false;
    CLV_TRY(clv_movie_only_one(movie->path, &others));
    npy->first = plane ? options->z : 0, npy->step = plane ? h->shape[1] : 1;
    clv_movie_facts *f = &movie->facts;
    f->frames = h->rank >= 3 ? h->shape[0] : 1;
    if (stacks && !clv_size_mul(h->shape[0], h->shape[1], &f->frames)) f->frames = SIZE_MAX;
    if (stacks) f->depth = h->shape[1];
    f->height = h->shape[h->rank - 2], f->width = h->shape[h->rank - 1];
    f->type = clv_movie_type(h->dtype->type);
    snprintf(f->format, sizeof f->format, "NPY");
    snprintf(f->stored, sizeof f->stored, "%s", clv_type_name(h->dtype->type));
    size_t count, bytes;
    if (!clv_shape_size(CLV_F64, h->rank, h->shape, &count, &bytes))
        return clv_fail(CLV_E_SHAPE, "%s: shape %s needs more memory than can be addressed",
                        movie->path, clv_shape_text(h->rank, h->shape, shape));
    npy->pixels = f->height * f->width;
    if (!count) return CLV_OK; /* the caller reports a movie without frames */
    CLV_TRY(check_length(movie, npy, options->partial));
    if (f->type != h->dtype->type) clv_movie_notice(movie, "%s pixels become float32\n", f->stored);
    if (h->fortran || h->dtype->widen != CLV_NPY_AS_IT_IS) return load(movie, npy);
    if (f->type != h->dtype->type) {
        npy->row = clv_alloc(npy->pixels, h->dtype->size);
        if (!npy->row)
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a frame", movie->path);
    }
    return CLV_OK;
}
