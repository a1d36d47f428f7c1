/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a PNG picture as a movie of one frame; movie_folder.c makes a movie of a folder of pictures. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/png.h"

#include <string.h>

typedef struct png_movie {
    size_t sample; /* the chosen channel of a colour picture */
} png_movie;

static void close_png(void *state)
{
    clv_free(state);
}

static clv_status read_png(clv_movie *movie, size_t frame, void *pixels)
{
    const png_movie *m = movie->state;
    clv_png_pixels p;
    (void)frame;
    CLV_TRY(clv_png_read(movie->path, false, &p));
    clv_status status = CLV_OK;
    if (p.height != movie->facts.height || p.width != movie->facts.width ||
        p.wide != (movie->facts.type == CLV_U16) || m->sample >= p.samples)
        status = clv_fail(CLV_E_FORMAT, "%s: the file changed while it was read", movie->path);
    const size_t size = p.wide ? 2 : 1;
    for (size_t i = 0; !status && i < p.height * p.width; ++i)
        memcpy((char *)pixels + i * size, (const char *)p.data + (i * p.samples + m->sample) * size,
               size);
    clv_free(p.data);
    return status;
}

clv_status clv_movie_open_png(clv_movie *movie, const clv_movie_options *options)
{
    png_movie *m = clv_zalloc(1, sizeof *m);
    clv_png_pixels p;
    clv_movie_facts *f = &movie->facts;
    if (!m) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    movie->state = m, movie->close = close_png, movie->read = read_png;
    CLV_TRY(clv_png_read(movie->path, true, &p));
    if (p.samples > 1 && !options->channel_given)
        return clv_fail(
            CLV_E_FORMAT,
            "%s has colour (RGB) with %zu samples per pixel; choose one with --channel 0 to %zu",
            movie->path, p.samples, p.samples - 1);
    clv_movie_options others = *options;
    if (p.samples > 1) others.channel_given = false;
    CLV_TRY(clv_movie_only_one(movie->path, &others));
    m->sample = options->channel_given ? options->channel : 0;
    if (m->sample >= p.samples)
        return clv_fail(CLV_E_FORMAT,
                        "%s: channel %zu was asked for, but there are %zu, counted from 0",
                        movie->path, m->sample, p.samples);
    f->frames = 1, f->height = p.height, f->width = p.width;
    f->type = p.wide ? CLV_U16 : CLV_U8;
    clv_copy_string(f->format, sizeof f->format, "PNG");
    clv_copy_string(f->stored, sizeof f->stored, clv_type_name(f->type));
    return CLV_OK;
}
