/* SPDX-License-Identifier: Apache-2.0 */
/* Reads movies from TIFF files with libtiff; tiff_pages.c finds the pages and their meaning.
 *
 * ImageJ writes a file of more than 4 GiB with a single page, followed by all planes one after the other. Such planes
 * are read without libtiff. */
#define _GNU_SOURCE
#include "host/io/formats/movie_parts.h"

#include "base/error.h"

#ifdef CLEAVE_HAVE_TIFF

#include "base/alloc.h"
#include "host/io/formats/npy_header.h"
#include "host/io/formats/tiff_pages.h"
#include "host/io/stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>

typedef struct tiff_movie {
    const char *path;
    TIFF *tiff;
    clv_input input;
    clv_tiff_chain chain;
    clv_tiff_choice choice;
    char error[300]; /* the library's last message */
    /* properties that all pages share */
    uint32_t width, height;
    uint16_t bits, format, samples, planar, compression, photometric;
    clv_type stored;
    clv_narrow narrow;
    size_t sample; /* the chosen channel if a page has several */
    /* `contiguous`: all planes follow the only page, from offset `data` of the file */
    bool contiguous;
    uint64_t data;
    /* a strip or a tile, or a frame before it is widened from int8 or float16 */
    unsigned char *block;
    size_t block_bytes;
    void *wide; /* a frame as stored, if it is returned in another type */
} tiff_movie;

#if TIFFLIB_VERSION >= 20221213
static int note_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    tiff_movie *t = user;
    (void)tiff, (void)module;
    vsnprintf(t->error, sizeof t->error, format, args);
    return 1;
}

static int note_warning(TIFF *tiff, void *user, const char *module, const char *format,
                        va_list args)
{
    (void)tiff, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

static TIFF *open_quietly(tiff_movie *t, const char *path)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, note_error, t);
    TIFFOpenOptionsSetWarningHandlerExtR(options, note_warning, t);
    /* m: libtiff must not map the file, since mapped pages would count as this process's memory */
    TIFF *tiff = TIFFOpenExt(path, "rm", options);
    TIFFOpenOptionsFree(options);
    return tiff;
}
#else
static TIFF *open_quietly(tiff_movie *t, const char *path)
{
    (void)t;
    /* for the whole process: this version of libtiff has no handlers per file */
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
    return TIFFOpen(path, "rm");
}
#endif

static const char *why(const tiff_movie *t)
{
    return t->error[0] ? t->error : "libtiff cannot read it";
}

static void close_tiff(void *state)
{
    tiff_movie *t = state;
    if (t->tiff) TIFFClose(t->tiff);
    clv_input_close(&t->input);
    clv_free(t->chain.offset), clv_free(t->block), clv_free(t->wide);
    clv_free(t);
}

static clv_status find_type(tiff_movie *t)
{
    static const struct {
        uint16_t bits, format;
        clv_type type;
        clv_narrow narrow;
    } known[] = {
        { 8, SAMPLEFORMAT_INT, CLV_I16, CLV_NARROW_INT8 },
        { 16, SAMPLEFORMAT_IEEEFP, CLV_F32, CLV_NARROW_HALF },
        { 8, SAMPLEFORMAT_UINT, CLV_U8 },
        { 16, SAMPLEFORMAT_UINT, CLV_U16 },
        { 16, SAMPLEFORMAT_INT, CLV_I16 },
        { 32, SAMPLEFORMAT_IEEEFP, CLV_F32 },
        { 32, SAMPLEFORMAT_UINT, CLV_U32 },
        { 32, SAMPLEFORMAT_INT, CLV_I32 },
        { 64, SAMPLEFORMAT_INT, CLV_I64 },
        { 64, SAMPLEFORMAT_IEEEFP, CLV_F64 },
    };
    const uint16_t format = t->format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : t->format;
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (known[i].bits == t->bits && known[i].format == format) {
            t->stored = known[i].type, t->narrow = known[i].narrow;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: its pixels have %u bits and sample format %u; expected unsigned integers "
                    "(format 1) of 8, 16 or 32 bits, signed integers (2) of 8 to 64, or floats (3) "
                    "of 16 to 64",
                    t->path, t->bits, t->format);
}

/* Reads the current page's tags into `t`. */
static void look_at_page(tiff_movie *t)
{
    t->width = t->height = 0;
    TIFFGetField(t->tiff, TIFFTAG_IMAGEWIDTH, &t->width);
    TIFFGetField(t->tiff, TIFFTAG_IMAGELENGTH, &t->height);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_BITSPERSAMPLE, &t->bits);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLEFORMAT, &t->format);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_SAMPLESPERPIXEL, &t->samples);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_PLANARCONFIG, &t->planar);
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_COMPRESSION, &t->compression);
    if (!TIFFGetField(t->tiff, TIFFTAG_PHOTOMETRIC, &t->photometric))
        t->photometric = PHOTOMETRIC_MINISBLACK;
}

/* Returns whether the current page's pixels are inside the file: tests the first, the middle and the last strip or
 * tile. */
static bool page_is_there(tiff_movie *t, uint64_t file_bytes)
{
    const uint32_t count =
        TIFFIsTiled(t->tiff) ? TIFFNumberOfTiles(t->tiff) : TIFFNumberOfStrips(t->tiff);
    if (!count) return false;
    /* writers put strips and tiles into the file in order */
    const uint32_t asked[] = { 0, count / 2, count - 1 };
    for (size_t i = 0; i < CLV_LEN(asked); ++i) {
        const uint64_t offset = TIFFGetStrileOffset(t->tiff, asked[i]),
                       bytes = TIFFGetStrileByteCount(t->tiff, asked[i]);
        if (!offset || !bytes || offset > file_bytes || bytes > file_bytes - offset) return false;
    }
    return true;
}

/* Checks that every page has the first page's size, type and form and is complete, so that damage is found before hours
 * of work. Drops damaged pages if `partial` is set. */
static clv_status check_pages(clv_movie *movie, tiff_movie *t, bool partial)
{
    const uint32_t width = t->width, height = t->height;
    const uint16_t bits = t->bits, format = t->format, samples = t->samples, planar = t->planar;
    const bool white_is_zero = t->photometric == PHOTOMETRIC_MINISWHITE;
    size_t good = 0;
    const char *damage = t->chain.damage;
    for (; good < t->chain.count; ++good) {
        if (!TIFFSetSubDirectory(t->tiff, t->chain.offset[good])) {
            damage = "a page's directory cannot be read";
            break;
        }
        look_at_page(t);
        if (t->width != width || t->height != height || t->bits != bits || t->format != format ||
            t->samples != samples)
            return clv_fail(
                CLV_E_FORMAT,
                "%s: page %zu has %ux%u pixels of %u bits, but page 0 has %ux%u pixels of %u bits",
                movie->path, good, t->width, t->height, t->bits, width, height, bits);
        if ((t->photometric == PHOTOMETRIC_MINISWHITE) != white_is_zero)
            return clv_fail(CLV_E_FORMAT,
                            "%s: 0 is %s on page %zu, but %s on page 0 (photometric "
                            "interpretation); save all pages in the same form",
                            movie->path, white_is_zero ? "black" : "white", good,
                            white_is_zero ? "white" : "black");
        if (samples > 1 && t->planar != planar)
            return clv_fail(CLV_E_FORMAT,
                            "%s: page %zu has the planar configuration %u, but page 0 has %u; save "
                            "all pages in the same form",
                            movie->path, good, t->planar, planar);
        if (!page_is_there(t, t->input.length)) {
            damage = "truncated: it ends before a page's pixels do";
            break;
        }
    }
    if (damage && (!partial || !good)) return clv_movie_short(movie->path, damage, good);
    if (damage) clv_movie_notice(movie, "%s; %zu frames can be read\n", damage, good);
    t->chain.count = good;
    return CLV_OK;
}

/* Returns whether the file has only one page, and all planes follow it without pages of their own. */
static bool is_contiguous(const tiff_movie *t, const clv_tiff_story *s)
{
    return s->imagej && s->images > t->chain.count && t->chain.count == 1 &&
           t->compression == COMPRESSION_NONE && t->samples == 1 && !TIFFIsTiled(t->tiff);
}

static clv_status count_contiguous(clv_movie *movie, tiff_movie *t, size_t images, bool partial,
                                   size_t *pages)
{
    const uint64_t frame = (uint64_t)t->width * t->height * (t->bits / 8u);
    t->contiguous = true;
    t->data = TIFFGetStrileOffset(t->tiff, 0);
    const uint64_t there =
        frame && t->data <= t->input.length ? (t->input.length - t->data) / frame : 0;
    *pages = images;
    if (there >= images) return CLV_OK;
    if (!partial || !there)
        return clv_movie_short(movie->path, "truncated: ImageJ promises more images",
                               (size_t)there);
    clv_movie_notice(movie, "truncated: %zu of %zu images are there\n", (size_t)there, images);
    *pages = (size_t)there;
    return CLV_OK;
}

/* Checks that the file holds all images that its description promises. Fails for a truncated file of ImageJ, unless
 * `partial` is set. An OME file only causes a notice, since its images may be spread over several files. */
static clv_status check_promise(clv_movie *movie, const clv_tiff_story *story, size_t pages,
                                bool partial)
{
    const double promised = clv_tiff_promised(story);
    if (promised <= (double)pages) return CLV_OK;
    if (story->imagej && !partial)
        return clv_movie_short(movie->path, "truncated: ImageJ promises more images", pages);
    clv_movie_notice(movie, "its description promises %.12g images, %zu are there\n", promised,
                     pages);
    return CLV_OK;
}

static clv_status choose_sample(tiff_movie *t, const clv_movie_options *options)
{
    if (t->photometric == PHOTOMETRIC_PALETTE)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the image has a palette, so its pixel values are not intensities; "
                        "convert it to greyscale",
                        t->path);
    if (t->samples == 1) return CLV_OK;
    if (!options->channel_given)
        return clv_fail(CLV_E_FORMAT,
                        "%s is %s with %u samples per pixel; choose one with --channel 0 to %u",
                        t->path, t->photometric == PHOTOMETRIC_RGB ? "colour (RGB)" : "pixels",
                        t->samples, t->samples - 1u);
    if (options->channel >= t->samples)
        return clv_fail(CLV_E_FORMAT,
                        "%s: channel %zu was asked for, but there are %u, counted from 0", t->path,
                        options->channel, t->samples);
    t->sample = options->channel;
    return CLV_OK;
}

/* Copies the chosen sample of `count` pixels; `from` holds all samples of each pixel, unless they are in separate
 * planes. */
static void copy_pixels(const tiff_movie *t, unsigned char *to, const unsigned char *from,
                        size_t count)
{
    const size_t size = t->bits / 8u;
    if (t->samples == 1 || t->planar == PLANARCONFIG_SEPARATE) {
        memcpy(to, from, count * size);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        memcpy(to + i * size, from + (i * t->samples + t->sample) * size, size);
}

static bool need_block(tiff_movie *t, tmsize_t bytes)
{
    if (bytes <= 0) return false;
    if ((size_t)bytes <= t->block_bytes) return true;
    clv_free(t->block);
    t->block = clv_alloc((size_t)bytes, 1);
    t->block_bytes = t->block ? (size_t)bytes : 0;
    return t->block != NULL;
}

static bool read_tiles(tiff_movie *t, unsigned char *to)
{
    uint32_t tile_width = 0, tile_height = 0;
    TIFFGetField(t->tiff, TIFFTAG_TILEWIDTH, &tile_width);
    TIFFGetField(t->tiff, TIFFTAG_TILELENGTH, &tile_height);
    const size_t size = t->bits / 8u,
                 row = TIFFTileRowSize(t->tiff) > 0 ? (size_t)TIFFTileRowSize(t->tiff) : 0;
    const tmsize_t bytes = TIFFTileSize(t->tiff);
    const size_t each = t->planar == PLANARCONFIG_SEPARATE ? size : size * t->samples;
    if (!tile_width || !tile_height || row < tile_width * each || !need_block(t, bytes) ||
        (size_t)bytes < row * tile_height)
        return false;
    const uint16_t plane = t->planar == PLANARCONFIG_SEPARATE ? (uint16_t)t->sample : 0;
    for (uint32_t y = 0; y < t->height; y += tile_height)
        for (uint32_t x = 0; x < t->width; x += tile_width) {
            if (TIFFReadEncodedTile(t->tiff, TIFFComputeTile(t->tiff, x, y, 0, plane), t->block,
                                    bytes) != bytes)
                return false;
            const uint32_t rows = CLV_MIN(tile_height, t->height - y),
                           columns = CLV_MIN(tile_width, t->width - x);
            for (uint32_t r = 0; r < rows; ++r)
                copy_pixels(t, to + ((size_t)(y + r) * t->width + x) * size, t->block + r * row,
                            columns);
        }
    return true;
}

static bool read_strips(tiff_movie *t, unsigned char *to)
{
    uint32_t strip_rows = t->height;
    TIFFGetFieldDefaulted(t->tiff, TIFFTAG_ROWSPERSTRIP, &strip_rows);
    strip_rows = CLV_MIN(strip_rows, t->height);
    const bool whole = t->samples == 1 || t->planar == PLANARCONFIG_SEPARATE;
    const size_t size = t->bits / 8u, row = (size_t)t->width * size * (whole ? 1 : t->samples);
    const uint16_t plane = t->planar == PLANARCONFIG_SEPARATE ? (uint16_t)t->sample : 0;
    if (!strip_rows || (!whole && !need_block(t, (tmsize_t)(row * strip_rows)))) return false;
    for (uint32_t y = 0; y < t->height; y += strip_rows) {
        const uint32_t rows = CLV_MIN(strip_rows, t->height - y);
        unsigned char *out = to + (size_t)y * t->width * size;
        const tmsize_t bytes = (tmsize_t)(row * rows);
        if (TIFFReadEncodedStrip(t->tiff, TIFFComputeStrip(t->tiff, y, plane),
                                 whole ? out : t->block, bytes) != bytes)
            return false;
        if (!whole) copy_pixels(t, out, t->block, (size_t)t->width * rows);
    }
    return true;
}

static clv_status read_plane(tiff_movie *t, size_t page, unsigned char *to, size_t bytes)
{
    uint64_t offset = t->data + (uint64_t)page * bytes;
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(t->input.descriptor, to + done, bytes - done, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return clv_fail(CLV_E_IO, "%s: image %zu cannot be read: %s", t->path, page,
                            got < 0 ? strerror(errno) : "the file ends");
        done += (size_t)got, offset += (uint64_t)got;
    }
    const bool foreign = (TIFFIsBigEndian(t->tiff) != 0) == (CLV_NPY_NATIVE == '<');
    if (foreign) clv_npy_swap(to, bytes, t->bits / 8u);
    return CLV_OK;
}

static clv_status read_tiff(clv_movie *movie, size_t frame, void *pixels)
{
    tiff_movie *t = movie->state;
    const clv_tiff_choice *c = &t->choice;
    const size_t page = c->first + frame / c->planes * c->step + frame % c->planes * c->plane_step;
    const size_t count = movie->facts.height * movie->facts.width;
    unsigned char *to = t->wide ? t->wide : pixels;
    if (t->contiguous) {
        CLV_TRY(read_plane(t, page, to, count * (t->bits / 8u)));
    } else {
        t->error[0] = '\0';
        if (!TIFFSetSubDirectory(t->tiff, t->chain.offset[page]) ||
            !(TIFFIsTiled(t->tiff) ? read_tiles(t, to) : read_strips(t, to)))
            return clv_fail(CLV_E_FORMAT, "%s: page %zu cannot be read: %s", movie->path, page,
                            why(t));
    }
    if (t->wide) clv_movie_convert(t->stored, t->narrow, t->wide, count, pixels);
    return CLV_OK;
}

static clv_status open_pages(clv_movie *movie, tiff_movie *t, const clv_movie_options *options)
{
    clv_tiff_story story;
    char *description = NULL;
    clv_movie_facts *f = &movie->facts;
    CLV_TRY(clv_tiff_follow(movie->path, &t->chain));
    CLV_TRY(clv_input_open(&t->input, movie->path));
    t->tiff = open_quietly(t, movie->path);
    if (!t->tiff) return clv_fail(CLV_E_FORMAT, "%s: %s", movie->path, why(t));
    if (!TIFFSetSubDirectory(t->tiff, t->chain.offset[0]))
        return clv_fail(CLV_E_FORMAT, "%s: %s", movie->path, why(t));
    look_at_page(t);
    if (!TIFFGetField(t->tiff, TIFFTAG_IMAGEDESCRIPTION, &description)) description = NULL;
    CLV_TRY(clv_tiff_read_story(movie->path, description, &story, f));
    float resolution = 0;
    if (story.imagej && TIFFGetField(t->tiff, TIFFTAG_XRESOLUTION, &resolution) && resolution > 0 &&
        f->pixel_unit[0]) {
        f->pixel_size = 1 / (double)resolution;
        if (TIFFGetField(t->tiff, TIFFTAG_YRESOLUTION, &resolution) && resolution > 0)
            f->row_spacing = 1 / (double)resolution;
    }
    if (!t->width || !t->height || t->bits < 8)
        return clv_fail(
            CLV_E_FORMAT,
            "%s has %ux%u pixels of %u bits; expected at least one pixel, of at least 8 bits",
            movie->path, t->width, t->height, t->bits);
    uint32_t depth = 1;
    if (TIFFGetField(t->tiff, TIFFTAG_IMAGEDEPTH, &depth) && depth > 1)
        return clv_fail(CLV_E_FORMAT,
                        "%s: each page holds %u planes (ImageDepth), which is not read; save every "
                        "plane as a page",
                        movie->path, depth);
    CLV_TRY(find_type(t));
    CLV_TRY(choose_sample(t, options));
    const bool white_is_zero = t->photometric == PHOTOMETRIC_MINISWHITE;
    size_t pages;
    if (is_contiguous(t, &story)) {
        CLV_TRY(count_contiguous(movie, t, story.images, options->partial, &pages));
    } else {
        CLV_TRY(check_pages(movie, t, options->partial));
        pages = t->chain.count;
    }
    if (t->samples > 1) story.channels = 1;
    CLV_TRY(check_promise(movie, &story, pages, options->partial));
    CLV_TRY(clv_tiff_choose(movie->path, &story, options, pages, &t->choice));
    f->frames = t->choice.frames, f->height = t->height, f->width = t->width;
    f->depth = t->choice.planes;
    if (story.other_images)
        clv_movie_notice(movie, "the file describes %zu images; only the first is read\n",
                         story.other_images + 1);
    if (options->stacks && options->axes == CLV_MOVIE_AS_TOLD && story.slices_in_time &&
        f->frames > 1)
        clv_movie_notice(
            movie,
            "ImageJ calls its %zu images slices; they are taken as frames in time (--axes ZYX "
            "takes them as a stack in depth)\n",
            f->frames);
    f->type = clv_movie_type(t->stored);
    snprintf(f->format, sizeof f->format, "%s",
             story.ome      ? "OME-TIFF"
             : story.imagej ? "ImageJ TIFF"
                            : "TIFF");
    snprintf(f->stored, sizeof f->stored, "%s", clv_movie_stored_name(t->stored, t->narrow));
    if (white_is_zero)
        clv_movie_notice(movie, "0 is white in this file; its numbers are taken as they are: "
                                "--invert looks for dark spots\n");
    if (f->type != t->stored || t->narrow) {
        clv_movie_notice(movie, "%s pixels become %s\n", f->stored, clv_type_name(f->type));
        t->wide = clv_alloc(f->height * f->width, clv_movie_stored_size(t->stored, t->narrow));
        if (!t->wide)
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a frame", movie->path);
    }
    return CLV_OK;
}

clv_status clv_movie_open_tiff(clv_movie *movie, const clv_movie_options *options)
{
    tiff_movie *t = clv_zalloc(1, sizeof *t);
    if (!t) return clv_fail(CLV_E_MEMORY, "%s: out of memory", movie->path);
    t->path = movie->path, t->input.descriptor = -1;
    movie->state = t, movie->close = close_tiff, movie->read = read_tiff;
    return open_pages(movie, t, options);
}

#else

clv_status clv_movie_open_tiff(clv_movie *movie, const clv_movie_options *options)
{
    (void)options;
    return clv_fail(CLV_E_FORMAT,
                    "%s is a TIFF file, but this Cleave was built without TIFF support",
                    movie->path);
}

#endif
