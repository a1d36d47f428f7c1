/* SPDX-License-Identifier: Apache-2.0 */
/* Reads movies without a header: frames one after the other, as cameras write them. */
#include "host/io/formats/movie_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/npy_header.h"
#include "host/io/stream.h"

#include <stdio.h>
#include <string.h>

typedef struct raw_movie {
    clv_input input;
    clv_raw_layout layout;
    size_t pixels; /* pixels per frame */
    void *row;     /* a frame as stored in the file, if it must be converted */
} raw_movie;

static void close_raw(void *state)
{
    raw_movie *raw = state;
    clv_input_close(&raw->input);
    clv_free(raw->row);
    clv_free(raw);
}

static clv_status read_raw(clv_movie *movie, size_t frame, void *pixels)
{
    raw_movie *raw = movie->state;
    const size_t size = clv_movie_stored_size(raw->layout.type, raw->layout.narrow),
                 bytes = raw->pixels * size;
    void *to = raw->row ? raw->row : pixels;
    CLV_TRY(
        clv_input_read_at(&raw->input, raw->layout.offset + (uint64_t)frame * bytes, to, bytes));
    if (raw->layout.big_endian) clv_npy_swap(to, bytes, size);
    if (raw->row)
        clv_movie_convert(raw->layout.type, raw->layout.narrow, raw->row, raw->pixels, pixels);
    return CLV_OK;
}

/* Determines the number of frames from the length of the file, and checks the number that the user gave. */
static clv_status check_length(clv_movie *movie, const raw_movie *raw, bool partial)
{
    char what[100];
    const uint64_t there = raw->input.length < raw->layout.offset
                               ? 0
                               : raw->input.length - raw->layout.offset,
                   frame = (uint64_t)raw->pixels *
                           clv_movie_stored_size(raw->layout.type, raw->layout.narrow);
    clv_movie_facts *f = &movie->facts;
    if (!f->frames) f->frames = (size_t)(there / frame);
    const uint64_t wanted = frame * f->frames;
    if (there >= wanted && f->frames) {
        if (there > wanted)
            clv_movie_notice(movie, "%llu bytes after the last frame are ignored\n",
                             (unsigned long long)(there - wanted));
        return CLV_OK;
    }
    const size_t whole = (size_t)(there / frame);
    snprintf(what, sizeof what, "%llu bytes of pixels, --raw says %llu", (unsigned long long)there,
             (unsigned long long)wanted);
    if (!partial || !whole) return clv_movie_short(movie->path, what, whole);
    clv_movie_notice(movie, "%s; %zu of %zu frames are there\n", what, whole, f->frames);
    f->frames = whole;
    return CLV_OK;
}

clv_status clv_movie_open_raw(clv_movie *movie, const clv_movie_options *options)
{
    const clv_raw_layout *l = &options->raw;
    size_t bytes;
    raw_movie *raw = clv_zalloc(1, sizeof *raw);
    if (!raw) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    raw->input.descriptor = -1;
    raw->layout = *l;
    movie->state = raw, movie->close = close_raw, movie->read = read_raw;
    CLV_TRY(clv_input_open(&raw->input, movie->path));
    clv_movie_facts *f = &movie->facts;
    f->frames = l->frames, f->height = l->height, f->width = l->width;
    f->type = clv_movie_type(l->type);
    snprintf(f->format, sizeof f->format, "raw");
    snprintf(f->stored, sizeof f->stored, "%s", clv_movie_stored_name(l->type, l->narrow));
    if (!clv_shape_size(CLV_F64, 3,
                        (size_t[]){ CLV_MAX(l->frames, (size_t)1), l->height, l->width },
                        &raw->pixels, &bytes))
        return clv_fail(CLV_E_SHAPE,
                        "%s: --raw %zu,%zu,%zu needs more memory than can be addressed",
                        movie->path, l->frames, l->height, l->width);
    raw->pixels = l->height * l->width;
    CLV_TRY(check_length(movie, raw, options->partial));
    if (f->type == l->type && !l->narrow) return CLV_OK;
    clv_movie_notice(movie, "%s pixels become %s\n", f->stored, clv_type_name(f->type));
    raw->row = clv_alloc(raw->pixels, clv_movie_stored_size(l->type, l->narrow));
    return raw->row ? CLV_OK
                    : clv_fail(CLV_E_MEMORY, "%s: not enough memory for a frame", movie->path);
}

/* ---- the option ------------------------------------------------------------------------------ */

static bool read_type(const char *name, clv_raw_layout *layout)
{
    static const struct {
        const char *names[3];
        clv_type type;
        clv_narrow narrow;
    } kinds[] = { { { "i8", "int8", "i1" }, CLV_I16, CLV_NARROW_INT8 },
                  { { "f16", "float16", "f2" }, CLV_F32, CLV_NARROW_HALF },
                  { { "u8", "uint8", "u1" }, CLV_U8 },
                  { { "u16", "uint16", "u2" }, CLV_U16 },
                  { { "i16", "int16", "i2" }, CLV_I16 },
                  { { "u32", "uint32", "u4" }, CLV_U32 },
                  { { "f32", "float32", "f4" }, CLV_F32 },
                  { { "f64", "float64", "f8" }, CLV_F64 } };
    layout->big_endian = *name == '>';
    if (*name == '<' || *name == '>') ++name;
    for (size_t i = 0; i < CLV_LEN(kinds); ++i)
        for (size_t k = 0; k < CLV_LEN(kinds[i].names); ++k)
            if (strcmp(name, kinds[i].names[k]) == 0) {
                layout->type = kinds[i].type, layout->narrow = kinds[i].narrow;
                return true;
            }
    return false;
}

bool clv_raw_parse(const char *text, clv_raw_layout *layout)
{
    char copy[120], *part[6], *at = copy;
    size_t parts = 0;
    uint64_t number[4] = { 0 };
    if (strlen(text) >= sizeof copy) return false;
    clv_copy_string(copy, sizeof copy, text);
    while (at && parts < CLV_LEN(part)) {
        part[parts++] = at;
        at = strchr(at, ',');
        if (at) *at++ = '\0';
    }
    *layout = (clv_raw_layout){ .given = true };
    if (parts < 4 || parts > 5) return false;
    for (size_t i = 0; i < 3; ++i)
        if (!clv_parse_u64(part[i], &number[i]) || number[i] > UINT32_MAX) return false;
    if (!read_type(part[3], layout)) return false;
    if (parts == 5 && (!clv_parse_u64(part[4], &number[3]) || number[3] > INT64_MAX)) return false;
    layout->frames = (size_t)number[0];
    layout->height = (size_t)number[1], layout->width = (size_t)number[2];
    layout->offset = number[3];
    return layout->height && layout->width;
}
