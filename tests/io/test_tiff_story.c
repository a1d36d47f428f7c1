/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/tiff_pages.c: what descriptions by ImageJ and OME say of a movie, which pages a choice takes, and
 * damaged chains of directories. No TIFF library is needed. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/tiff_pages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MICRO "\xC2\xB5m"
#define OME(ATTRIBUTES, REST) "<OME><Image><Pixels " ATTRIBUTES ">" REST "</Pixels></Image>"
#define SIZES(C, Z, T) "SizeC=\"" #C "\" SizeZ=\"" #Z "\" SizeT=\"" #T "\" "
#define DATA(C, Z, T, PAGE) \
    "<TiffData FirstC=\"" #C "\" FirstZ=\"" #Z "\" FirstT=\"" #T "\" IFD=\"" #PAGE "\"/>"

static void counts_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t channels, slices, frames, others;
        const char *order;
        double promised;
    } cases[] = {
        { NULL, 0, 0, 0, 0, "", 0 },
        { "a plain text with slices=3", 0, 0, 0, 0, "", 0 },
        { "ImageJ=1.53\nimages=60\nchannels=2\nslices=3\nframes=10\n", 2, 3, 10, 0, "CZT", 60 },
        { "ImageJ=1.53\nimages=9\nslices=9\n", 0, 0, 9, 0, "CZT", 9 },
        { "ImageJ=1.53\nimages=70\nframes=10\n", 0, 0, 10, 0, "CZT", 70 },
        { "<OME></OME>", 0, 0, 0, 0, "", 0 },
        { OME(SIZES(2, 3, 4) "DimensionOrder=\"XYTZC\"", ""), 2, 3, 4, 0, "TZC", 24 },
        { OME(SIZES(1, 1, 5) "DimensionOrder=\"odd\"", ""), 1, 1, 5, 0, "CZT", 5 },
        { OME(SIZES(1, 2, 5) "DimensionOrder=\"XYZZZ\"", ""), 1, 2, 5, 0, "CZT", 10 },
        /* attributes in alphabetical order */
        { OME("PhysicalSizeZ=\"2.0\" " SIZES(1, 6, 1), ""), 1, 6, 1, 0, "CZT", 6 },
        { OME(SIZES(1, 1, 5), "") "<Pixels SizeT=\"7\"></Pixels><Pixels>", 1, 1, 5, 2, "CZT", 5 },
        { "<OME><Pixels " SIZES(1, 2, 3), 1, 2, 3, 0, "CZT", 6 }, /* the end is missing */
        /* comments and CDATA are no elements */
        { "<OME><!-- <Pixels SizeT=\"9\"/> --><Pixels " SIZES(1, 1,
                                                              5) "></Pixels><![CDATA[<Pixels>]]>",
          1, 1, 5, 0, "CZT", 5 },
        { "<!-- <OME><Pixels SizeT=\"9\"></Pixels> -->", 0, 0, 0, 0, "", 0 },
        { "<OME><Pixels " SIZES(1, 1, 5) "></Pixels><!-- <Pixels></Pixels>", 1, 1, 5, 0, "CZT", 5 },
        { "<OME><Pixels SizeC=\"\" SizeT=\"3\"", 0, 0, 3, 0, "CZT", 3 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_tiff_story s;
        clv_movie_facts f = { 0 };
        EXPECT_OK(clv_tiff_read_story("a.tif", cases[i].text, &s, &f));
        if (s.channels != cases[i].channels || s.slices != cases[i].slices ||
            s.frames != cases[i].frames || s.other_images != cases[i].others ||
            strcmp(s.order, cases[i].order) != 0 || clv_tiff_promised(&s) != cases[i].promised)
            fail_msg("case %zu: %zu channels, %zu slices, %zu frames, %zu others, %s, %g", i,
                     s.channels, s.slices, s.frames, s.other_images, s.order,
                     clv_tiff_promised(&s));
    }
}

static void units_are_converted(void **state)
{
    (void)state;
    static const struct {
        const char *text, *unit, *time_unit;
        double pixel, row, plane, interval;
    } cases[] = {
        { "ImageJ=1\nunit=micron\nspacing=-0.5\nfinterval=0.25\n", "micron", "sec", 0, 0, 0.5,
          0.25 },
        { "ImageJ=1\nunit=\\u00B5m\nfinterval=2\ntunit=min\n", MICRO, "min", 0, 0, 0, 2 },
        { "ImageJ=1\nunit=\xCE\xBCm\n", MICRO, "", 0, 0, 0, 0 },
        { "ImageJ=1\nunit=a unit that is too long\n", "", "", 0, 0, 0, 0 },
        { OME("PhysicalSizeX=\"0.1\" PhysicalSizeY=\"0.2\" PhysicalSizeZ=\"0.5\"", ""), MICRO, "",
          0.1, 0.2, 0.5, 0 },
        { OME("PhysicalSizeX=\"100\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"0.2\" "
              "PhysicalSizeZ=\"0.003\" PhysicalSizeZUnit=\"mm\"",
              ""),
          "nm", "", 100, 200, 3000, 0 },
        { OME("PhysicalSizeX=\"1\" PhysicalSizeXUnit=\"&#181;m\" PhysicalSizeY=\"1\" "
              "PhysicalSizeYUnit=\"pixel\"",
              ""),
          MICRO, "", 1, 0, 0, 0 },
        { OME("PhysicalSizeX=\"-1\" TimeIncrement=\"3\"", ""), "", "s", 0, 0, 0, 3 },
        { OME("TimeIncrement=\"3\" TimeIncrementUnit=\"ms\"", ""), "", "ms", 0, 0, 0, 3 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_tiff_story s;
        clv_movie_facts f = { 0 };
        EXPECT_OK(clv_tiff_read_story("a.tif", cases[i].text, &s, &f));
        assert_string_equal(f.pixel_unit, cases[i].unit);
        assert_string_equal(f.time_unit, cases[i].time_unit);
        assert_true(fabs(f.pixel_size - cases[i].pixel) < 1e-12 && f.interval == cases[i].interval);
        assert_true(fabs(f.row_spacing - cases[i].row) < 1e-9);
        assert_true(fabs(f.plane_spacing - cases[i].plane) < 1e-9);
    }
}

static void descriptions_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "ImageJ=1\nimages=1e12\n",
          "promises images=1e12, but the number of planes must be whole" },
        { "ImageJ=1\nframes=2.5\n", "promises frames=2.5, but" },
        /* the steps between planes would exceed 64 bits, and the last plane would be page 0 */
        { OME(SIZES(64, 536870913, 536870912) "DimensionOrder=\"XYCTZ\"", ""),
          "promises 64 channels x 536870913 planes x 536870912 times, but" },
        { "ImageJ=1\nslices=-3\n", "promises slices=-3, but" },
        { OME("SizeT=\"1000000000\"", ""), "SizeT=\"1000000000\", but" },
        { OME(SIZES(1, 2, 2), DATA(0, 0, 0, 0) DATA(0, 0, 1, 1)), "in another order than" },
        { OME(SIZES(2, 1, 2), "<TiffData FirstC=\"1\" FileName=\"a\" IFD=\"0\"/>"),
          "in another order than" },
    };
    static const char *const good[] = {
        OME(SIZES(1, 2, 2), DATA(0, 0, 0, 0) DATA(0, 1, 0, 1) DATA(0, 0, 1, 2) "<TiffData/>"),
        /* each file counts its own pages */
        OME(SIZES(1, 1, 3), "<TiffData FirstT=\"0\" IFD=\"0\"><UUID FileName=\"a\"/></TiffData>"
                            "<TiffData FirstT=\"1\" IFD=\"0\"><UUID FileName=\"b\"/></TiffData>"
                            "<TiffData FirstT=\"2\" IFD=\"1\"><UUID FileName=\"b\"/></TiffData>"),
        /* the channels of a colour are on one page */
        OME(SIZES(3, 1, 2), "<Channel SamplesPerPixel=\"3\"/>" DATA(0, 0, 1, 1)),
    };
    clv_tiff_story s;
    clv_movie_facts f = { 0 };
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part,
                    clv_tiff_read_story("a.tif", cases[i].text, &s, &f));
    for (size_t i = 0; i < CLV_LEN(good); ++i)
        EXPECT_OK(clv_tiff_read_story("a.tif", good[i], &s, &f));
}

/* The pages that hold channel c and the planes from z0 to z1 of each time, found by counting all pages. */
static size_t count_pages(const clv_tiff_story *s, size_t c, size_t z0, size_t z1, size_t pages,
                          size_t *found)
{
    size_t count = 0;
    for (size_t t = 0; t < s->frames; ++t)
        for (size_t z = z0; z <= z1; ++z) {
            size_t at[128], page = 0;
            for (size_t outer = 0; outer < s->channels * s->slices * s->frames; ++outer, ++page) {
                size_t rest = outer; /* from the axis that varies fastest */
                for (const char *axis = s->order; *axis; ++axis) {
                    const size_t n = *axis == 'C'   ? s->channels
                                     : *axis == 'Z' ? s->slices
                                                    : s->frames;
                    at[(unsigned char)*axis] = rest % n, rest /= n;
                }
                if (at['C'] == c && at['Z'] == z && at['T'] == t) break;
            }
            if (page < pages) found[count++] = page;
        }
    return count;
}

static void chosen_pages_are_those_of_the_channel(void **state)
{
    (void)state;
    static const char *const orders[] = { "CZT", "CTZ", "ZCT", "ZTC", "TCZ", "TZC" };
    for (size_t o = 0; o < CLV_LEN(orders); ++o)
        for (size_t c = 0; c < 2; ++c)
            for (size_t z = 0; z <= 3; ++z) { /* 3: whole stacks */
                clv_tiff_story s = { .channels = 2, .slices = 3, .frames = 4 };
                const clv_movie_options options = {
                    .channel_given = true, .channel = c, .z_given = z < 3, .z = z, .stacks = true
                };
                clv_tiff_choice choice;
                size_t want[32];
                memcpy(s.order, orders[o], 4);
                EXPECT_OK(clv_tiff_choose("a.tif", &s, &options, 24, &choice));
                const size_t planes = choice.planes;
                assert_int_equal(planes, z < 3 ? 1 : 3);
                assert_int_equal(choice.frames, count_pages(&s, c, z % 3, z < 3 ? z : 2, 24, want));
                for (size_t f = 0; f < choice.frames; ++f)
                    assert_int_equal(choice.first + f / planes * choice.step +
                                         f % planes * choice.plane_step,
                                     want[f]);
            }
}

static void short_files_and_impossible_choices(void **state)
{
    (void)state;
    static const clv_tiff_story full = { .channels = 2, .slices = 3, .frames = 4, .order = "CZT" },
                                deep = { .slices = 3, .frames = 4, .order = "CZT" },
                                two = { .frames = 5, .other_images = 1, .order = "CZT" };
    static const struct {
        const clv_tiff_story *story;
        clv_movie_options options;
        size_t pages;
        const char *part; /* NULL: accepted, with so many frames */
        size_t frames;
    } cases[] = {
        { &full, { .z_given = true }, 24, "has 2 channels; choose one with --channel 0 to 1", 0 },
        { &deep, { .channel = 0 }, 12, "has 3 planes in depth; choose one with --z 0 to 2", 0 },
        { &deep, { .stacks = true, .axes = CLV_MOVIE_TYX }, 12, "with --axes TZYX", 0 },
        { &deep, { .stacks = true, .axes = CLV_MOVIE_ZYX }, 12, "with --axes TZYX", 0 },
        { &full,
          { .channel_given = true, .channel = 2, .z_given = true },
          24,
          "channel 2 and plane 0 were asked for, but there are 2 channels and 3 planes",
          0 },
        { &deep, { .z_given = true, .z = 3 }, 12, "channel 0 and plane 3 were asked for", 0 },
        { &deep, { .stacks = true }, 2, "promises 3 planes in depth, but it has only 2 pages", 0 },
        { &deep, { .stacks = true }, 8, NULL, 6 }, /* two whole stacks */
        { &deep, { .z_given = true, .z = 2 }, 8, NULL, 2 },
        { &deep, { .z_given = true, .z = 2 }, 2, NULL, 0 },
        { &deep, { .z_given = true }, 100, NULL, 4 },
        { &two, { .channel = 0 }, 9, NULL, 5 }, /* pages of the second image are left out */
        { &two, { .channel = 0 }, 3, NULL, 3 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_tiff_choice choice;
        const clv_status status =
            clv_tiff_choose("a.tif", cases[i].story, &cases[i].options, cases[i].pages, &choice);
        if (cases[i].part) {
            EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, status);
        } else {
            EXPECT_OK(status);
            assert_int_equal(choice.frames, cases[i].frames);
        }
    }
}

static void damaged_chains_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *part;
    } cases[] = {
        { "II", 2, "not a TIFF file" },
        { "II*\0", 4, "TIFF header and nothing else" },
        { "II*\0\0\0\0\0", 8, "no pages" },
        { "II*\0\x00\x01\0\0", 8, "a.tif" },            /* the first page lies behind the end */
        { "II*\0\x08\0\0\0\0\0\0\0\0\0", 14, "a.tif" }, /* a page without entries */
        { "MM\0+\0\x08\0\0\0\0", 10, "TIFF header and nothing else" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_tiff_chain chain = { 0 };
        const char *path = io_make("a.tif", cases[i].bytes, cases[i].length);
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, clv_tiff_follow(path, &chain));
        assert_null(chain.offset);
    }
    clv_tiff_chain chain;
    EXPECT_FAIL(CLV_E_IO, "missing.tif", clv_tiff_follow(io_temp("missing.tif"), &chain));
}

/* ---- chains of pages ----------------------------------------------------------------------------- */

static void put_number(unsigned char *to, uint64_t value, size_t bytes, bool big_endian)
{
    for (size_t i = 0; i < bytes; ++i)
        to[big_endian ? bytes - 1 - i : i] = (unsigned char)(value >> 8 * i);
}

/* Writes a file of 800 bytes whose pages, of one tag each, are at `offset`; the last page names `after` as the next. */
static const char *make_chain(bool big_endian, bool big, const uint64_t *offset, size_t count,
                              uint64_t after)
{
    unsigned char bytes[800] = { 0 };
    const size_t word = big ? 8 : 4, counter = big ? 8 : 2, entry = big ? 20 : 12;
    memcpy(bytes, big_endian ? "MM" : "II", 2);
    put_number(bytes + 2, big ? 43 : 42, 2, big_endian);
    if (big) put_number(bytes + 4, 8, 2, big_endian);
    put_number(bytes + (big ? 8 : 4), count ? offset[0] : after, word, big_endian);
    for (size_t i = 0; i < count; ++i) {
        unsigned char *page = bytes + offset[i];
        put_number(page, 1, counter, big_endian);
        put_number(page + counter, 256, 2, big_endian); /* the width, a number of 16 bits */
        put_number(page + counter + 2, 3, 2, big_endian);
        put_number(page + counter + 4, 1, word, big_endian);
        put_number(page + counter + entry, i + 1 < count ? offset[i + 1] : after, word, big_endian);
    }
    return io_make("chain.tif", bytes, sizeof bytes);
}

static const uint64_t places[] = { 600, 100, 400, 200 };
static clv_tiff_chain followed;

static clv_status follow_it(void)
{
    return clv_tiff_follow(io_temp("chain.tif"), &followed);
}

static int has_no_chain(void)
{
    return !followed.offset && !followed.count;
}

static void chains_are_followed_in_every_form(void **state)
{
    (void)state;
    for (int form = 0; form < 4; ++form) {
        make_chain(form & 1, form & 2, places, CLV_LEN(places), 0);
        assert_true(io_without_memory(follow_it, has_no_chain) > 3);
        assert_true(followed.count == CLV_LEN(places) && !followed.damage);
        assert_memory_equal(followed.offset, places, sizeof places);
        clv_free(followed.offset);
    }
}

static void the_pages_before_damage_are_kept(void **state)
{
    (void)state;
    static const struct {
        uint64_t after;
        const char *damage;
    } cases[] = {
        { 400, "its pages form a circle" },
        { 801, "truncated: a page begins beyond its end" },
        { 799, "truncated: a page begins beyond its end" },
        { 780, "a page's directory is damaged" },                /* no tags */
        { 202, "truncated: it ends inside a page's directory" }, /* the tag's number as a count */
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        make_chain(false, false, places, CLV_LEN(places), cases[i].after);
        EXPECT_OK(follow_it());
        assert_int_equal(followed.count, CLV_LEN(places));
        assert_string_equal(followed.damage, cases[i].damage);
        clv_free(followed.offset);
    }
    make_chain(false, false, NULL, 0, 801);
    EXPECT_FAIL(CLV_E_FORMAT, "truncated: a page begins beyond its end", follow_it());
    assert_true(has_no_chain());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_read),
        cmocka_unit_test(units_are_converted),
        cmocka_unit_test(descriptions_that_cannot_be_are_refused),
        cmocka_unit_test(chosen_pages_are_those_of_the_channel),
        cmocka_unit_test(short_files_and_impossible_choices),
        cmocka_unit_test(damaged_chains_are_told),
        cmocka_unit_test(chains_are_followed_in_every_form),
        cmocka_unit_test(the_pages_before_damage_are_kept),
    };
    return cmocka_run_group_tests_name("tiff_story", tests, NULL, NULL);
}
