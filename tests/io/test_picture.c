/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/pictures/image.c, map.c, chart.c, png.c: pictures of maps, down to the pixel, and of curves. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/pictures/chart.h"
#include "host/io/pictures/font.h"
#include "host/io/pictures/map.h"
#include "host/io/pictures/png.h"

#ifdef CLEAVE_HAVE_PNG
#include <png.h>
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const clv_colour white = { 255, 255, 255 }, black = { 0, 0, 0 }, red = { 255, 0, 0 };

static clv_colour at(const clv_image *image, size_t x, size_t y)
{
    clv_colour colour;
    assert_true(x < image->width && y < image->height);
    memcpy(&colour, image->rgb + 3 * (y * image->width + x), 3);
    return colour;
}

static void expect_colour(clv_colour got, clv_colour want)
{
    if (memcmp(&got, &want, 3) == 0) return;
    print_error("colour %d,%d,%d, expected %d,%d,%d\n", got.red, got.green, got.blue, want.red,
                want.green, want.blue);
    fail();
}

static size_t count_not(const clv_image *image, clv_colour background)
{
    size_t count = 0;
    for (size_t i = 0; i < image->width * image->height; ++i)
        count += memcmp(image->rgb + 3 * i, &background, 3) != 0;
    return count;
}

static void drawing_stays_inside(void **state)
{
    (void)state;
    clv_image image;
    EXPECT_OK(clv_image_create(&image, 5, 4, white));
    clv_image_fill(&image, -3, -3, 4, 4, red); /* one pixel is inside */
    expect_colour(at(&image, 0, 0), red);
    assert_int_equal(count_not(&image, white), 1);
    clv_image_set(&image, 5, 0, red), clv_image_set(&image, 0, -1, red);
    clv_image_fill(&image, 4, 3, 100, 100, black);
    assert_int_equal(count_not(&image, white), 2);
    clv_image_ring(&image, NAN, 0, 1, 1, red);
    clv_image_ring(&image, 1e300, 0, 1, 1, red);
    clv_image_ring(&image, 0, 0, INFINITY, 1, red);
    clv_image_ring(&image, -50, -50, 3, 1, red);
    assert_int_equal(count_not(&image, white), 2);
    clv_image_text(&image, -100, -100, 3, "text far outside", red, &black);
    clv_image_text(&image, 3, 2, 1, "\xC3\xA9~ ", red, NULL);
    clv_image_clear(&image);
    clv_image_clear(&image);
    EXPECT_FAIL(CLV_E_MEMORY, "not enough memory for a picture",
                clv_image_create(&image, SIZE_MAX / 2, 3, white));
    assert_null(image.rgb);
}

static void rings_are_round_and_smooth(void **state)
{
    (void)state;
    clv_image image;
    EXPECT_OK(clv_image_create(&image, 61, 61, white));
    clv_image_ring(&image, 30, 30, 20, 2, black);
    expect_colour(at(&image, 50, 30), black);
    expect_colour(at(&image, 30, 10), black);
    expect_colour(at(&image, 30, 30), white);
    expect_colour(at(&image, 45, 45), at(&image, 15, 15)); /* symmetric */
    double ink = 0;
    for (size_t i = 0; i < 61 * 61; ++i)
        ink += (255 - image.rgb[3 * i]) / 255.0;
    assert_true(fabs(ink - 2 * 3.14159265 * 20 * 2) < 2.5); /* its area, by smooth edges */
    clv_image_clear(&image);
}

static void letters_are_the_dots_of_the_font(void **state)
{
    (void)state;
    clv_image image;
    EXPECT_OK(clv_image_create(&image, 24, 16, white));
    clv_image_text(&image, 2, 1, 2, "L", black, NULL); /* a column of 7 and a foot of 4 more dots */
    assert_int_equal(count_not(&image, white), (7 + 4) * 4);
    expect_colour(at(&image, 2, 1), black);
    expect_colour(at(&image, 11, 14), black);
    expect_colour(at(&image, 4, 1), white);
    assert_int_equal(clv_text_width("ab", 2), 22);
    assert_int_equal(clv_text_width("", 2), 0);
    assert_int_equal(clv_text_height(2), 14);
    clv_image_clear(&image);
    for (int c = CLV_FONT_FIRST; c <= CLV_FONT_LAST; ++c) { /* no glyph is missing or doubled */
        unsigned dots = 0;
        for (int row = 0; row < CLV_FONT_HEIGHT; ++row)
            dots += clv_font[c - CLV_FONT_FIRST][row];
        assert_true((dots == 0) == (c == ' '));
        for (int other = CLV_FONT_FIRST; other < c; ++other)
            assert_memory_not_equal(clv_font[c - CLV_FONT_FIRST], clv_font[other - CLV_FONT_FIRST],
                                    CLV_FONT_HEIGHT);
    }
}

static void colours_are_those_of_viridis(void **state)
{
    (void)state;
    expect_colour(clv_map_colour(0), (clv_colour){ 68, 1, 84 });
    expect_colour(clv_map_colour(1), (clv_colour){ 253, 231, 37 });
    expect_colour(clv_map_colour(-INFINITY), clv_map_colour(0));
    expect_colour(clv_map_colour(INFINITY), clv_map_colour(1));
    double before = -1; /* lightness never falls */
    for (int i = 0; i <= 1000; ++i) {
        const clv_colour c = clv_map_colour(i / 1000.0);
        const double light = 0.2126 * pow(c.red / 255.0, 2.2) + 0.7152 * pow(c.green / 255.0, 2.2) +
                             0.0722 * pow(c.blue / 255.0, 2.2);
        assert_true(light > before - 0.002);
        before = light;
        assert_true(abs(c.red - c.green) > 8 || abs(c.green - c.blue) > 8); /* grey is for NaN */
    }
    const clv_colour none = clv_map_colour(NAN);
    assert_true(none.red == none.green && none.green == none.blue);
}

static void map_pixels_are_where_they_belong(void **state)
{
    (void)state;
    enum { LEFT = 16, TOP = 16, ZOOM = 200 };
    static const float values[2][3] = { { 0, 1, NAN }, { 4, INFINITY, -INFINITY } };
    for (int below = 0; below < 2; ++below) {
        clv_image image;
        const clv_map_style style = { .low = 0, .high = 4, .first_row_below = below };
        EXPECT_OK(clv_map_draw(&values[0][0], 2, 3, &style, &image));
        for (size_t y = 0; y < 2; ++y)
            for (size_t x = 0; x < 3; ++x) {
                const size_t row = below ? 1 - y : y;
                const clv_colour want = clv_map_colour(values[y][x] / 4);
                expect_colour(at(&image, LEFT + x * ZOOM, TOP + row * ZOOM), want);
                expect_colour(at(&image, LEFT + x * ZOOM + ZOOM - 1, TOP + row * ZOOM + ZOOM - 1),
                              want);
            }
        assert_int_equal(image.height, TOP + 2 * ZOOM + 16);
        clv_image_clear(&image);
    }
}

static void marks_are_circles_around_their_pixel(void **state)
{
    (void)state;
    enum { LEFT = 16, TOP = 16, ZOOM = 60 };
    static float values[10 * 10];
    for (int below = 0; below < 2; ++below) {
        clv_image image;
        const clv_map_mark mark = { .x = 7, .y = 2, .radius = 1, .label = "b" };
        const clv_map_style style = {
            .low = 0, .high = 1, .first_row_below = below, .marks = &mark, .mark_count = 1
        };
        EXPECT_OK(clv_map_draw(values, 10, 10, &style, &image));
        const size_t row = below ? 7 : 2;
        const size_t x = LEFT + 7 * ZOOM + ZOOM / 2, y = TOP + row * ZOOM + ZOOM / 2;
        assert_true(at(&image, x + ZOOM, y).red > 250); /* the ring, a pixel of the map away */
        assert_true(at(&image, x, y - ZOOM).red > 250);
        expect_colour(at(&image, x, y), clv_map_colour(0));
        clv_image_clear(&image);
    }
}

static void the_star_is_a_cross_and_the_ruler_has_its_length(void **state)
{
    (void)state;
    enum { LEFT = 16, TOP = 16, ZOOM = 60, SIDE = 10 };
    static float values[SIDE * SIDE];
    for (int below = 0; below < 2; ++below) {
        clv_image image;
        const clv_map_style style = { .low = 0,
                                      .high = 1,
                                      .first_row_below = below,
                                      .star = true,
                                      .star_x = 6,
                                      .star_y = 2.5,
                                      .ruler = 3 };
        EXPECT_OK(clv_map_draw(values, SIDE, SIDE, &style, &image));
        const size_t row = below ? 6 * ZOOM + ZOOM / 2 : 2 * ZOOM + ZOOM / 2;
        const size_t x = LEFT + 6 * ZOOM + ZOOM / 2, y = TOP + row + ZOOM / 2;
        expect_colour(at(&image, x, y), clv_map_colour(0)); /* open in the middle */
        assert_true(at(&image, x + 8, y).red > 250 && at(&image, x - 8, y).red > 250);
        assert_true(at(&image, x, y + 8).red > 250 && at(&image, x, y - 8).red > 250);
        expect_colour(at(&image, x + 20, y), clv_map_colour(0));
        size_t bright = 0;
        for (size_t i = LEFT; i < LEFT + SIDE * ZOOM; ++i)
            bright += at(&image, i, TOP + SIDE * ZOOM - 16).red > 250;
        assert_int_equal(bright, 3 * ZOOM);
        clv_image_clear(&image);
    }
}

static void any_values_can_be_drawn(void **state)
{
    (void)state;
    static const float cases[][4] = {
        { NAN, NAN, NAN, NAN },
        { 5, 5, 5, 5 },
        { 0, 0, 0, 0 },
        { 1e-38f, 2e-38f, 3e-38f, 4e-38f },
        { -3e38f, 3e38f, 0, 1 },
        { INFINITY, -INFINITY, NAN, 0 },
        { 16777215, 16777216, 1, 2 },
        { 1e20f, 1e20f, 1e20f, 1.0000001e20f },
        { 0x1p-149f, 0, 0, 0 },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_image image;
        const clv_map_mark wild = { .x = 1e300, .y = NAN, .radius = INFINITY, .label = "x" };
        const clv_map_style style = { .title = "a title that is longer than the map, much longer",
                                      .unit = "unit",
                                      .marks = &wild,
                                      .mark_count = 1,
                                      .star = true,
                                      .star_x = -1e300,
                                      .ruler = 1e300,
                                      .ruler_label = "long" };
        EXPECT_OK(clv_map_draw(cases[i], 2, 2, &style, &image));
        clv_image_clear(&image);
    }
    clv_image image;
    EXPECT_FAIL(CLV_E_ARGUMENT, "map of 0 x 3",
                clv_map_draw(cases[0], 0, 3, &(clv_map_style){ 0 }, &image));
    EXPECT_FAIL(CLV_E_ARGUMENT, "map of 1 x 30001",
                clv_map_draw(cases[0], 1, 30001, &(clv_map_style){ 0 }, &image));
}

/* The percentiles leave out what is rare: one hot pixel does not darken the rest. */
/* Equal values so large that 0.5 beside them is the same number, differences that are almost 0, and values whose
 * difference overflows. */
static void curves_of_any_size_are_drawn(void **state)
{
    (void)state;
    static const double usual[] = { 1, 2, 3 };
    static const double cases[][3] = { { 1, 2, 3 },          { 7, 7, 7 },      { 1e17, 1e17, 1e17 },
                                       { -1e300, 0, 1e300 }, { 0, 0, 0 },      { 0, 5e-324, 0 },
                                       { 1e308, 1, 2 },      { 1, 2, -1e308 }, { INFINITY, 1, 2 } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        for (int points = 0; points < 2; ++points) {
            clv_image image;
            size_t drawn = 0;
            const clv_chart_curve curve = { .x = usual,
                                            .y = cases[i],
                                            .low = cases[i],
                                            .high = cases[i],
                                            .count = 3,
                                            .colour = red,
                                            .points = points };
            EXPECT_OK(clv_chart_draw(&curve, 1, &(clv_chart_style){ 0 }, &image));
            for (size_t y = 0; y < image.height; ++y)
                for (size_t x = 0; x < image.width; ++x) {
                    const clv_colour colour = at(&image, x, y);
                    drawn += memcmp(&colour, &red, 3) == 0;
                }
            if (drawn < 30) fail_msg("case %zu: %zu pixels of the curve", i, drawn);
            clv_image_clear(&image);
        }
}

static void one_hot_pixel_does_not_rule_the_stretch(void **state)
{
    (void)state;
    enum { SIDE = 200 };
    float *values = malloc(SIDE * SIDE * sizeof *values);
    for (size_t i = 0; i < SIDE * SIDE; ++i)
        values[i] = (float)(i % 100);
    values[0] = 1e9f;
    clv_image image;
    EXPECT_OK(clv_map_draw(values, SIDE, SIDE, &(clv_map_style){ 0 }, &image));
    expect_colour(at(&image, 16 + 3 * 99, 16), clv_map_colour(1)); /* the largest of the others */
    expect_colour(at(&image, 16, 16), clv_map_colour(1));
    expect_colour(at(&image, 16 + 3 * 100, 16), clv_map_colour(0));
    clv_image_clear(&image);
    free(values);
}

/* A map whose rare large values are what it is about: its colours tell them apart. */
static void a_peak_has_a_colour_of_its_own(void **state)
{
    (void)state;
    enum { SIDE = 100, ZOOM = 6, PEAK = 50, OTHER = 70 };
    static float values[SIDE * SIDE];
    for (size_t i = 0; i < CLV_LEN(values); ++i)
        values[i] = (float)(i % 2);
    values[0] = INFINITY; /* no end of a scale */
    values[OTHER] = 5, values[PEAK] = 10;
    for (int peak = 0; peak < 2; ++peak) {
        clv_image image;
        EXPECT_OK(clv_map_draw(values, SIDE, SIDE, &(clv_map_style){ .up_to_peak = peak }, &image));
        expect_colour(at(&image, 16 + ZOOM * PEAK, 16), clv_map_colour(1));
        expect_colour(at(&image, 16 + ZOOM * OTHER, 16), clv_map_colour(peak ? 0.5 : 1));
        clv_image_clear(&image);
    }
}

static clv_image subject;

static clv_status draw_subject(void)
{
    static const float values[4] = { 1, 2, 3, 4 };
    const clv_status status = clv_map_draw(values, 2, 2, &(clv_map_style){ 0 }, &subject);
    if (status) return status;
    clv_image_clear(&subject);
    return CLV_OK;
}

static int subject_is_empty(void)
{
    return subject.rgb == NULL && subject.width == 0;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    assert_int_equal(io_without_memory(draw_subject, subject_is_empty), 2);
}

#ifndef CLEAVE_HAVE_PNG

static void writing_says_that_png_is_missing(void **state)
{
    (void)state;
    EXPECT_FAIL(CLV_E_FORMAT, "built without PNG", clv_png_write("x.png", &subject));
}

#else

static void the_file_holds_the_picture_and_nothing_else(void **state)
{
    (void)state;
    clv_image image;
    unsigned char *bytes, *again;
    size_t length, same;
    EXPECT_OK(clv_image_create(&image, 33, 17, white));
    for (size_t i = 0; i < 33 * 17 * 3; ++i)
        image.rgb[i] = (unsigned char)(i * 7);
    EXPECT_OK(clv_png_write(io_temp("a.png"), &image));
    io_load(io_temp("a.png"), &bytes, &length);
    EXPECT_OK(clv_png_write(io_temp("a.png"), &image));
    io_load(io_temp("a.png"), &again, &same);
    assert_int_equal(length, same);
    assert_memory_equal(bytes, again, length);

    for (size_t i = 8; i < length;) { /* chunks: length, name, data, sum */
        const size_t size = (size_t)bytes[i] << 24 | (size_t)bytes[i + 1] << 16 |
                            (size_t)bytes[i + 2] << 8 | bytes[i + 3];
        assert_true(memcmp(bytes + i + 4, "tIME", 4) && memcmp(bytes + i + 5, "EXt", 3));
        i += size + 12;
    }
    png_image png = { .version = PNG_IMAGE_VERSION };
    unsigned char back[33 * 17 * 3];
    assert_true(png_image_begin_read_from_memory(&png, bytes, length));
    assert_true(png.width == 33 && png.height == 17);
    png.format = PNG_FORMAT_RGB;
    assert_true(png_image_finish_read(&png, NULL, back, 0, NULL));
    assert_memory_equal(back, image.rgb, sizeof back);
    free(bytes), free(again);
    clv_image_clear(&image);
}

static clv_status write_subject(void)
{
    unsigned char rgb[12] = { 0 };
    const clv_image image = { 2, 2, rgb };
    return clv_png_write(io_temp("out/a.png"), &image);
}

static int nothing_written(void)
{
    return io_files_in(io_temp("out")) == 0;
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    unsigned char rgb[12] = { 0 };
    const clv_image image = { 2, 2, rgb }, empty = { 0, 2, rgb }, wide = { 1000001, 1, rgb };
    mkdir(io_temp("out"), 0700);
    io_limit_files(30);
    EXPECT_FAIL(CLV_E_IO, "a.png: cannot write", clv_png_write(io_temp("out/a.png"), &image));
    io_limit_files(0);
    EXPECT_FAIL(CLV_E_IO, "cannot create", clv_png_write(io_temp("nowhere/a.png"), &image));
    EXPECT_FAIL(CLV_E_FORMAT, "image of 0 x 2", clv_png_write(io_temp("out/a.png"), &empty));
    EXPECT_FAIL(CLV_E_FORMAT, "image of 1000001", clv_png_write(io_temp("out/a.png"), &wide));
    assert_int_equal(io_files_in(io_temp("out")), 0);
    assert_true(io_without_memory(write_subject, nothing_written) >= 2);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawing_stays_inside),
        cmocka_unit_test(rings_are_round_and_smooth),
        cmocka_unit_test(letters_are_the_dots_of_the_font),
        cmocka_unit_test(colours_are_those_of_viridis),
        cmocka_unit_test(map_pixels_are_where_they_belong),
        cmocka_unit_test(marks_are_circles_around_their_pixel),
        cmocka_unit_test(the_star_is_a_cross_and_the_ruler_has_its_length),
        cmocka_unit_test(any_values_can_be_drawn),
        cmocka_unit_test(curves_of_any_size_are_drawn),
        cmocka_unit_test(one_hot_pixel_does_not_rule_the_stretch),
        cmocka_unit_test(a_peak_has_a_colour_of_its_own),
        cmocka_unit_test(every_failed_allocation_is_reported),
#ifndef CLEAVE_HAVE_PNG
        cmocka_unit_test(writing_says_that_png_is_missing),
#else
        cmocka_unit_test(the_file_holds_the_picture_and_nothing_else),
        cmocka_unit_test(a_failed_write_leaves_nothing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
