/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the chain of a TIFF file's directories and checks every offset, and reads the descriptions of ImageJ and OME
 * in the first page.
 *
 * TIFF 6.0; BigTIFF (8-byte offsets, version 43). */
#define _GNU_SOURCE
#include "host/io/formats/tiff_pages.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/stream.h"
#include "host/io/xml.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_PAGES = 1000000, /* pages; libtiff 4.5 reads no file with more than 2^20 of them */
    MOST_ENTRIES = 65536, /* tags per page */
    /* if a page's tags hold fewer strips than claimed, libtiff allocates for at most so many */
    MOST_STRIPS = 1000000,
    /* bytes of directories accepted for a file of any length; reading them takes a second */
    FREE_BYTES = 1 << 30,
    MOST_PROMISED =
        999999999 /* largest accepted number of planes along an axis, and of all images */
};

typedef struct walker {
    clv_input input;
    bool big_endian, big;
    unsigned char *entries; /* the tags of one page */
    size_t room;
} walker;

static bool at(const walker *w, uint64_t offset, unsigned char *out, size_t length)
{
    while (length) {
        const ssize_t got = pread(w->input.descriptor, out, length, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        out += got, offset += (uint64_t)got, length -= (size_t)got;
    }
    return true;
}

static uint64_t number(const walker *w, const unsigned char *bytes, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; ++i)
        value = value << 8 | bytes[w->big_endian ? i : length - 1 - i];
    return value;
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Finds out whether `offset` occurred earlier in the chain. Offsets mostly grow, and one above `highest` is new; only a
 * lower one is compared with all earlier offsets. */
static clv_status seen_before(const walker *w, const clv_tiff_chain *chain, uint64_t highest,
                              uint64_t offset, bool *seen)
{
    *seen = false;
    if (!chain->count || offset > highest) return CLV_OK;
    uint64_t *sorted = clv_alloc(chain->count, sizeof *sorted);
    if (!sorted)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the offsets of %zu pages",
                        w->input.path, chain->count);
    memcpy(sorted, chain->offset, chain->count * sizeof *sorted);
    qsort(sorted, chain->count, sizeof *sorted, by_offset);
    *seen = bsearch(&offset, sorted, chain->count, sizeof *sorted, by_offset) != NULL;
    clv_free(sorted);
    return CLV_OK;
}

/* Returns the number of bytes that libtiff reads and allocates for a page whose tags are in w->entries. Pages may share
 * bytes of the file, so that a small file can cause much work. */
static uint64_t bytes_of_page(const walker *w, size_t count)
{
    static const unsigned char sizes[] = {
        0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8
    };
    enum { WIDTH = 256, HEIGHT = 257, ROWS_PER_STRIP = 278, TILE_WIDTH = 322, TILE_HEIGHT = 323 };
    const size_t entry = w->big ? 20 : 12, word = w->big ? 8 : 4;
    uint64_t all = count * entry;
    double width = 0, height = 0, rows = 0, tile_width = 0;
    for (size_t i = 0; i < count; ++i) {
        const unsigned char *e = w->entries + i * entry;
        const uint64_t tag = number(w, e, 2), type = number(w, e + 2, 2),
                       n = number(w, e + 4, word);
        const size_t size = type < CLV_LEN(sizes) ? sizes[type] : 0;
        const double value = size && size <= word ? (double)number(w, e + 4 + word, size) : 0;
        if (tag == WIDTH) width = value;
        if (tag == HEIGHT) height = value;
        if (tag == ROWS_PER_STRIP || tag == TILE_HEIGHT) rows = value;
        if (tag == TILE_WIDTH) tile_width = value;
        /* libtiff reads no value that is longer than the file */
        all += CLV_MIN(n, w->input.length) * size;
    }
    const double strips =
        (rows >= 1 ? ceil(height / rows) : 1) * (tile_width >= 1 ? ceil(width / tile_width) : 1);
    return all + 16 * (uint64_t)CLV_MIN(strips, (double)MOST_STRIPS);
}

static clv_status follow(walker *w, clv_tiff_chain *chain)
{
    unsigned char bytes[16];
    const size_t head = w->big ? 16 : 8, entry = w->big ? 20 : 12, word = w->big ? 8 : 4;
    const size_t counter = w->big ? 8 : 2;
    size_t room = 0, backwards = 0;
    uint64_t highest = 0, work = 0;
    if (w->input.length < head || !at(w, 0, bytes, head))
        return clv_fail(CLV_E_FORMAT, "%s: the file has a TIFF header and nothing else",
                        w->input.path);
    uint64_t offset = number(w, bytes + head - word, word);
    while (offset) {
        bool seen;
        CLV_TRY(seen_before(w, chain, highest, offset, &seen));
        if (seen) {
            chain->damage = "its pages form a circle";
            return CLV_OK;
        }
        if (offset <= highest && ++backwards > 1000) {
            chain->damage = "its pages go to and fro";
            return CLV_OK;
        }
        if (offset > w->input.length || !at(w, offset, bytes, counter)) {
            chain->damage = "truncated: a page begins beyond its end";
            return CLV_OK;
        }
        const uint64_t entries = number(w, bytes, counter);
        if (!entries || entries > MOST_ENTRIES) {
            chain->damage = "a page's directory is damaged";
            return CLV_OK;
        }
        if (!clv_reserve(&w->entries, &w->room, (size_t)entries * entry, 1))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a page's directory",
                            w->input.path);
        if (!at(w, offset + counter, w->entries, (size_t)entries * entry) ||
            !at(w, offset + counter + entries * entry, bytes, word)) {
            chain->damage = "truncated: it ends inside a page's directory";
            return CLV_OK;
        }
        work += bytes_of_page(w, (size_t)entries);
        if (work > FREE_BYTES && work / 4 > w->input.length)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the descriptions of the first %zu pages take %llu bytes, but the "
                            "file has %llu: it is damaged or malicious",
                            w->input.path, chain->count + 1, (unsigned long long)work,
                            (unsigned long long)w->input.length);
        if (chain->count == MOST_PAGES)
            return clv_fail(CLV_E_FORMAT,
                            "%s has more than %d pages, which is the most that can be read; split "
                            "it, or save it as .npy",
                            w->input.path, MOST_PAGES);
        if (!clv_reserve(&chain->offset, &room, chain->count + 1, sizeof *chain->offset))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu pages", w->input.path,
                            chain->count + 1);
        chain->offset[chain->count++] = offset;
        highest = CLV_MAX(highest, offset);
        offset = number(w, bytes, word);
    }
    return CLV_OK;
}

clv_status clv_tiff_follow(const char *path, clv_tiff_chain *chain)
{
    unsigned char start[4];
    walker w = { 0 };
    *chain = (clv_tiff_chain){ 0 };
    CLV_TRY(clv_input_open(&w.input, path));
    clv_status status = CLV_OK;
    if (!at(&w, 0, start, sizeof start)) {
        status = clv_fail(CLV_E_FORMAT, "%s: not a TIFF file", path);
    } else {
        w.big_endian = start[0] == 'M';
        w.big = number(&w, start + 2, 2) == 43;
        status = follow(&w, chain);
    }
    clv_input_close(&w.input);
    clv_free(w.entries);
    if (!status && !chain->count)
        status = clv_fail(CLV_E_FORMAT, "%s: %s", path,
                          chain->damage ? chain->damage : "the TIFF file has no pages");
    if (status) {
        clv_free(chain->offset);
        *chain = (clv_tiff_chain){ 0 };
    }
    return status;
}

/* Returns where `key` is in `text`; NULL if it is nowhere. A key begins a name: "SizeZ=" is not found in
 * "PhysicalSizeZ=". */
static const char *find_key(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    while (found && found > text && isalpha((unsigned char)*key) &&
           isalpha((unsigned char)found[-1]))
        found = strstr(found + 1, key);
    return found;
}

/* Returns the number that follows `key` in `text`, where `key` includes its "=" or quote; `fallback` if there is
 * none. */
static double told(const char *text, const char *key, double fallback)
{
    const char *found = find_key(text, key);
    if (!found) return fallback;
    char word[40];
    size_t length = strspn(found + strlen(key), "0123456789+-.eE");
    double value;
    if (!length || length >= sizeof word) return fallback;
    memcpy(word, found + strlen(key), length);
    word[length] = '\0';
    return clv_parse_double(word, &value) ? value : fallback;
}

/* Returns the count that follows `key` in the description; 0 if there is none. Sets s->absurd for a count that no file
 * can have. */
static size_t count_told(clv_tiff_story *s, const char *text, const char *key)
{
    const double value = told(text, key, 0);
    const char *found = find_key(text, key);
    const bool number = found && strspn(found + strlen(key), "0123456789+-.eE");
    if (value > MOST_PROMISED || (number && value != floor(value)) || value < 0) s->absurd = found;
    return value >= 1 && value <= MOST_PROMISED ? (size_t)value : 0;
}

static void word_told(const char *text, const char *key, const char *ends, char *out, size_t room)
{
    const char *found = find_key(text, key);
    out[0] = '\0';
    if (!found) return;
    found += strlen(key);
    const size_t length = strcspn(found, ends);
    if (length < room) {
        memcpy(out, found, length);
        out[length] = '\0';
    }
}

/* Replaces escapes of the micro sign, and the Greek letter mu, by the micro sign in a unit of micrometres. */
static void tidy_unit(char *unit)
{
    static const char *const micro[] = { "\\u00B5m", "\\u00b5m", "&#181;m",
                                         "&#xB5;m",  "&#xb5;m",  "\xCE\xBCm" };
    for (size_t i = 0; i < CLV_LEN(micro); ++i)
        if (strcmp(unit, micro[i]) == 0) memcpy(unit, "\xC2\xB5m", 4);
}

static void read_imagej(const char *text, clv_tiff_story *s, clv_movie_facts *f)
{
    s->imagej = true;
    s->images = count_told(s, text, "\nimages=");
    s->channels = count_told(s, text, "\nchannels=");
    s->slices = count_told(s, text, "\nslices=");
    s->frames = count_told(s, text, "\nframes=");
    if (!s->frames && s->slices) s->frames = s->slices, s->slices = 0, s->slices_in_time = true;
    memcpy(s->order, "CZT", 4);
    word_told(text, "\nunit=", "\n", f->pixel_unit, sizeof f->pixel_unit);
    tidy_unit(f->pixel_unit);
    f->plane_spacing = fabs(told(text, "\nspacing=", 0));
    f->interval = told(text, "\nfinterval=", 0);
    /* ImageJ states the unit unless it is the second */
    word_told(text, "\ntunit=", "\n", f->time_unit, sizeof f->time_unit);
    if (f->interval > 0 && !f->time_unit[0]) memcpy(f->time_unit, "sec", 4);
}

/* Returns a length from the attribute `name` of OME's element Pixels; 0 if there is none. `unit` gets its unit, which
 * is micrometres unless the attribute nameUnit states another. */
static double length_told(const char *pixels, const char *name, char *unit, size_t room)
{
    char key[32];
    snprintf(key, sizeof key, "%s=\"", name);
    const double length = told(pixels, key, 0);
    snprintf(key, sizeof key, "%sUnit=\"", name);
    word_told(pixels, key, "\"", unit, room);
    if (!unit[0]) clv_copy_string(unit, room, "\xC2\xB5m");
    tidy_unit(unit);
    return length > 0 ? length : 0;
}

/* Converts `length` to the unit `to`; returns 0 if one of the two units is unknown. */
static double in_unit(double length, const char *from, const char *to)
{
    static const struct {
        const char *name;
        double metres;
    } units[] = { { "pm", 1e-12 }, { "\xC3\x85", 1e-10 }, { "nm", 1e-9 }, { "\xC2\xB5m", 1e-6 },
                  { "mm", 1e-3 },  { "cm", 1e-2 },        { "m", 1 } };
    double ratio = 1;
    bool from_known = false, to_known = false;
    if (strcmp(from, to) == 0) return length;
    for (size_t i = 0; i < CLV_LEN(units); ++i) {
        if (strcmp(units[i].name, from) == 0) from_known = true, ratio *= units[i].metres;
        if (strcmp(units[i].name, to) == 0) to_known = true, ratio /= units[i].metres;
    }
    return from_known && to_known ? length * ratio : 0;
}

/* Returns how many pages before the plane of `tag`, an element TiffData, the description implies by its axes. */
static double pages_before(const char *tag, const clv_tiff_story *s)
{
    double page = 0, stride = 1;
    for (const char *axis = s->order; *axis; ++axis) {
        const size_t size = *axis == 'C' ? s->channels : *axis == 'Z' ? s->slices : s->frames;
        page += stride * told(tag,
                              *axis == 'C'   ? "FirstC=\""
                              : *axis == 'Z' ? "FirstZ=\""
                                             : "FirstT=\"",
                              0);
        stride *= (double)CLV_MAX(size, (size_t)1);
    }
    return page;
}

/* Returns whether the elements TiffData of an image, from `pixels` to `end`, put its planes on pages in the order of
 * its axes. If they name several files, each file has a count of its own. */
static bool in_order(const char *pixels, const char *end, const clv_tiff_story *s)
{
    char tag[1024], file[512], last[sizeof file] = "";
    double shift = 0;
    const char *next, *at = strstr(pixels, "<TiffData");
    for (; at && at < end; at = next) {
        next = strstr(at + 1, "<TiffData");
        const size_t length = (size_t)((next && next < end ? next : end) - at);
        snprintf(tag, sizeof tag, "%.*s", (int)CLV_MIN(length, sizeof tag - 1), at);
        const double page = told(tag, "IFD=\"", -1);
        if (page < 0) continue;
        word_told(tag, "FileName=\"", "\"", file, sizeof file);
        if (last[0] && strcmp(file, last) != 0) shift = pages_before(tag, s) - page;
        if (pages_before(tag, s) - page != shift) return false;
        memcpy(last, file, sizeof last);
    }
    return true;
}

/* Returns whether OME's DimensionOrder names two axes of the plane and then C, Z and T, each once. */
static bool is_order(const char *order)
{
    return strlen(order) == 5 && strchr(order + 2, 'C') && strchr(order + 2, 'Z') &&
           strchr(order + 2, 'T');
}

static void read_ome(const char *text, clv_tiff_story *s, clv_movie_facts *f)
{
    const char *pixels = strstr(text, "<Pixels");
    char order[16], unit[16];
    if (!pixels) return;
    s->ome = true;
    const char *end = strstr(pixels, "</Pixels>");
    if (!end) end = pixels + strlen(pixels);
    for (const char *other = end; (other = strstr(other, "<Pixels")); ++other)
        ++s->other_images;
    s->channels = count_told(s, pixels, "SizeC=\"");
    s->slices = count_told(s, pixels, "SizeZ=\"");
    s->frames = count_told(s, pixels, "SizeT=\"");
    word_told(pixels, "DimensionOrder=\"", "\"", order, sizeof order);
    memcpy(s->order, is_order(order) ? order + 2 : "CZT", 4);
    const char *samples = strstr(pixels, "SamplesPerPixel=\"");
    const bool colour = samples && samples < end && told(samples, "SamplesPerPixel=\"", 1) > 1;
    s->out_of_order = !colour && !in_order(pixels, end, s);
    f->pixel_size = length_told(pixels, "PhysicalSizeX", f->pixel_unit, sizeof f->pixel_unit);
    double length = length_told(pixels, "PhysicalSizeY", unit, sizeof unit);
    f->row_spacing = in_unit(length, unit, f->pixel_unit);
    length = length_told(pixels, "PhysicalSizeZ", unit, sizeof unit);
    f->plane_spacing = in_unit(length, unit, f->pixel_unit);
    if (!(f->pixel_size > 0)) f->pixel_unit[0] = '\0';
    f->interval = told(pixels, "TimeIncrement=\"", 0);
    word_told(pixels, "TimeIncrementUnit=\"", "\"", f->time_unit, sizeof f->time_unit);
    if (f->interval > 0 && !f->time_unit[0]) memcpy(f->time_unit, "s", 2);
}

static clv_status read_story(const char *path, const char *description, clv_tiff_story *story,
                             clv_movie_facts *facts)
{
    if (clv_starts_with(description, "ImageJ=")) read_imagej(description, story, facts);
    if (strstr(description, "<OME")) read_ome(description, story, facts);
    if (story->out_of_order)
        return clv_fail(CLV_E_FORMAT,
                        "%s: its description puts the planes on pages in another order than "
                        "DimensionOrder says, which is not read; save the movie again, for example "
                        "with ImageJ",
                        path);
    if (!story->absurd && clv_tiff_promised(story) > MOST_PROMISED)
        return clv_fail(CLV_E_FORMAT,
                        "%s: its description promises %zu channels x %zu planes x %zu times, but "
                        "their product must be at most %d; the file is damaged or malicious",
                        path, story->channels, story->slices, story->frames, MOST_PROMISED);
    if (!story->absurd) return CLV_OK;
    const char *number = story->absurd + (*story->absurd == '\n');
    return clv_fail(CLV_E_FORMAT,
                    "%s: its description promises %.*s, but the number of planes must be whole and "
                    "at most %d; the file is damaged or malicious",
                    path, (int)CLV_MIN(strcspn(number, "\n >"), (size_t)60), number, MOST_PROMISED);
}

clv_status clv_tiff_read_story(const char *path, const char *description, clv_tiff_story *story,
                               clv_movie_facts *facts)
{
    *story = (clv_tiff_story){ 0 };
    if (!description) return CLV_OK;
    char *text = clv_strdup(description);
    if (!text) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its description", path);
    if (!clv_starts_with(text, "ImageJ=")) clv_xml_blank(text, strlen(text));
    const clv_status status = read_story(path, text, story, facts);
    story->absurd = NULL; /* it points into the text */
    clv_free(text);
    return status;
}

double clv_tiff_promised(const clv_tiff_story *s)
{
    const double all = (double)CLV_MAX(s->channels, (size_t)1) *
                       (double)CLV_MAX(s->slices, (size_t)1) *
                       (double)CLV_MAX(s->frames, (size_t)1);
    const bool told = s->channels || s->slices || s->frames;
    return CLV_MAX((double)s->images, told ? all : 0);
}

clv_status clv_tiff_choose(const char *path, const clv_tiff_story *s,
                           const clv_movie_options *options, size_t pages, clv_tiff_choice *choice)
{
    const size_t channels = CLV_MAX(s->channels, (size_t)1), slices = CLV_MAX(s->slices, (size_t)1);
    const bool stacks = slices > 1 && options->stacks && !options->z_given &&
                        options->axes != CLV_MOVIE_TYX &&
                        (options->axes != CLV_MOVIE_ZYX || s->frames <= 1);
    *choice = (clv_tiff_choice){ .step = 1, .frames = pages, .planes = 1 };
    if (s->other_images && s->frames) choice->frames = CLV_MIN(pages, s->frames);
    if (channels == 1 && slices == 1) return CLV_OK;
    if (channels > 1 && !options->channel_given)
        return clv_fail(CLV_E_FORMAT, "%s has %zu channels; choose one with --channel 0 to %zu",
                        path, channels, channels - 1);
    if (slices > 1 && !options->z_given && !stacks)
        return clv_fail(
            CLV_E_FORMAT, "%s has %zu planes in depth; choose one with --z 0 to %zu%s", path,
            slices, slices - 1,
            options->stacks ? ", or read all of them in three dimensions with --axes TZYX" : "");
    const size_t channel = options->channel_given ? options->channel : 0,
                 z = options->z_given ? options->z : 0;
    if (channel >= channels || z >= slices)
        return clv_fail(CLV_E_FORMAT,
                        "%s: channel %zu and plane %zu were asked for, but there are %zu channels "
                        "and %zu planes, counted from 0",
                        path, channel, z, channels, slices);
    /* from the axis that varies fastest to the slowest */
    const size_t frames = CLV_MAX(s->frames, (size_t)1);
    size_t stride = 1;
    choice->first = 0;
    for (const char *axis = s->order; *axis; ++axis) {
        if (*axis == 'C') choice->first += channel * stride, stride *= channels;
        if (*axis == 'Z')
            choice->first += z * stride, choice->plane_step = stride, stride *= slices;
        if (*axis == 'T') choice->step = stride, stride *= frames;
    }
    choice->frames =
        choice->first < pages ? (pages - choice->first + choice->step - 1) / choice->step : 0;
    choice->frames = CLV_MIN(choice->frames, frames);
    if (!stacks) return CLV_OK;
    choice->planes = slices;
    size_t whole = 0; /* stacks whose last plane exists */
    while (whole < frames &&
           choice->first + whole * choice->step + (slices - 1) * choice->plane_step < pages)
        ++whole;
    if (!whole)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: its description promises %zu planes in depth, but it has only %zu pages", path,
            slices, pages);
    choice->frames = whole * slices;
    return CLV_OK;
}
