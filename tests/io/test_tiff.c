/* SPDX-License-Identifier: Apache-2.0 */
/* Tests movies: every form of TIFF and NPY gives the frames of its golden file; messages about damaged and odd files
 * say what is wrong with them, and how much can still be read. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/movie.h"
#include "host/io/formats/npy.h"

#include <stdlib.h>
#include <string.h>

static const char *golden(const char *name)
{
    return test_data("blobs/formats/%s", name);
}

static void every_form_equals_its_array(void **unused)
{
    (void)unused;
    static const struct {
        const char *file, *array;
    } forms[] = {
#ifdef CLEAVE_HAVE_TIFF
        { "fmt_u16_le.tif", "fmt_u16.npy" },
        { "fmt_u16_be.tif", "fmt_u16.npy" },
        { "fmt_u16_bigtiff.tif", "fmt_u16.npy" },
        { "fmt_u16_bigtiff_be.tif", "fmt_u16.npy" },
        { "fmt_u16_deflate.tif", "fmt_u16.npy" },
        { "fmt_u16_deflate_pred.tif", "fmt_u16.npy" },
        { "fmt_u16_imagej.tif", "fmt_u16.npy" },
        { "fmt_u16_lzw.tif", "fmt_u16.npy" },
        { "fmt_u16_lzw_pred.tif", "fmt_u16.npy" },
        { "fmt_u16_ome.tif", "fmt_u16.npy" },
        { "fmt_u16_strips7.tif", "fmt_u16.npy" },
        { "fmt_u16_tiled16.tif", "fmt_u16.npy" },
        { "fmt_i16_le.tif", "fmt_i16.npy" },
        { "fmt_f32_le.tif", "fmt_f32.npy" },
        { "fmt_f32_be.tif", "fmt_f32.npy" },
        { "fmt_u8_le.tif", "fmt_u8.npy" },
        { "fmt_u8_packbits.tif", "fmt_u8.npy" },
        { "fmt_u8_miniswhite.tif", "fmt_u8.npy" },
#endif
        { "fmt_u16_be.npy", "fmt_u16.npy" },
        { "fmt_f64_fortran.npy", "fmt_f32.npy" },
        { "fmt_u8.npy", "fmt_u8.npy" },
    };
    for (size_t i = 0; i < CLV_LEN(forms); ++i) {
        clv_file_array want;
        clv_movie *movie;
        EXPECT_OK(clv_npy_read(golden(forms[i].array), &want));
        EXPECT_OK(clv_movie_open(golden(forms[i].file), NULL, &movie));
        const clv_movie_facts *f = clv_movie_look(movie);
        assert_int_equal(f->type, want.type);
        assert_int_equal(f->frames, want.shape[0]);
        assert_int_equal(f->height, want.shape[1]);
        assert_int_equal(f->width, want.shape[2]);
        unsigned char *pixels = malloc(clv_file_array_bytes(&want));
        const size_t frame = clv_file_array_bytes(&want) / want.shape[0];
        for (size_t t = want.shape[0]; t-- > 0;) /* in any order */
            EXPECT_OK(clv_movie_read(movie, t, 1, pixels + t * frame));
        if (memcmp(pixels, want.data, clv_file_array_bytes(&want)) != 0)
            fail_msg("%s is not %s", forms[i].file, forms[i].array);
        const bool white = strstr(forms[i].file, "miniswhite") != NULL;
        assert_true(white == (strstr(f->notices, "--invert") != NULL));
        free(pixels);
        clv_movie_close(movie);
        clv_file_array_clear(&want);
    }
}

static void damage_is_named(void **unused)
{
    (void)unused;
    static const struct {
        const char *file, *says;
        clv_status status;
        size_t partial; /* frames that --partial finds; 0: none */
    } bad[] = {
#ifdef CLEAVE_HAVE_TIFF
        { "bad_ifd_cycle.tif", "circle", CLV_E_FORMAT, 3 },
        { "bad_truncated.tif", "last readable frame is 0", CLV_E_FORMAT, 1 },
        { "bad_header_only.tif", "truncated", CLV_E_FORMAT, 0 },
        { "bad_rgb.tif", "--channel", CLV_E_FORMAT, 0 },
#endif
        { "bad_empty.tif", "empty", CLV_E_FORMAT, 0 },
        { "bad_truncated.npy", "last readable frame is 0", CLV_E_FORMAT, 1 },
        { "bad_4d.npy", "[1,3,20,26]", CLV_E_FORMAT, 0 },
        { "bad_complex.npy", "complex", CLV_E_FORMAT, 0 },
    };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        clv_movie *movie;
        EXPECT_FAIL(bad[i].status, bad[i].says, clv_movie_open(golden(bad[i].file), NULL, &movie));
        assert_null(movie);
        const clv_movie_options partial = { .partial = true };
        if (!bad[i].partial) {
            EXPECT_FAIL(bad[i].status, bad[i].says,
                        clv_movie_open(golden(bad[i].file), &partial, &movie));
            continue;
        }
        EXPECT_OK(clv_movie_open(golden(bad[i].file), &partial, &movie));
        const clv_movie_facts *f = clv_movie_look(movie);
        assert_int_equal(f->frames, bad[i].partial);
        assert_true(f->notices[0]);
        unsigned char pixels[26 * 20 * 4];
        for (size_t t = 0; t < f->frames; ++t)
            EXPECT_OK(clv_movie_read(movie, t, 1, pixels));
        EXPECT_FAIL(CLV_E_ARGUMENT, "asked for", clv_movie_read(movie, f->frames, 1, pixels));
        clv_movie_close(movie);
    }
}

#ifdef CLEAVE_HAVE_TIFF
/* A file of which any byte is missing or wrong: an error, or frames; never more. */
static void cut_and_bent_files_do_no_harm(void **unused)
{
    (void)unused;
    static const char *const names[] = { "fmt_u16_deflate_pred.tif", "fmt_u16_tiled16.tif",
                                         "fmt_u16_bigtiff_be.tif", "fmt_u16_imagej.tif" };
    uint64_t state = 6;
    size_t good = 0;
    for (size_t n = 0; n < CLV_LEN(names); ++n) {
        unsigned char *bytes, pixels[26 * 20 * 8];
        size_t length;
        io_load(golden(names[n]), &bytes, &length);
        for (int round = 0; round < 150; ++round) {
            const size_t at = test_random(&state) % (round % 2 ? 600 : length);
            const unsigned char before = bytes[at];
            const size_t kept = round % 5 ? length : at;
            bytes[at] = (unsigned char)test_random(&state);
            clv_movie *movie;
            const clv_movie_options o = { .partial = round % 3 == 0, .channel_given = true };
            if (!clv_movie_open(io_make("bent.tif", bytes, kept), &o, &movie)) {
                const clv_movie_facts *f = clv_movie_look(movie);
                if (f->height == 20 && f->width == 26)
                    for (size_t t = 0; t < f->frames && t < 5; ++t)
                        good += clv_movie_read(movie, t, 1, pixels) == CLV_OK;
                clv_movie_close(movie);
            }
            bytes[at] = before;
        }
        free(bytes);
    }
    assert_true(good > 100);
}
#endif

/* A movie of a format that is not read has its name, and the way out. */
static void foreign_movies_are_called_by_their_names(void **unused)
{
    (void)unused;
    static const struct {
        const char *bytes;
        size_t length;
        const char *name, *way;
    } foreign[] = {
        { "\x00\x00\x00\x18"
          "ftypmp42....",
          16, "an MP4", "ffmpeg -i" },
        { "RIFF\x24\x00\x00\x00"
          "AVI LIST",
          16, "an AVI", "ffmpeg -i" },
        { "\xDA\xCE\xBE\x0A............", 16, "Nikon ND2", "bioformats2raw" },
        { "ZISRAWFILE......", 16, "Zeiss CZI", "bioformats2raw" },
        { "\x70\x00\x00\x00............", 16, "Leica LIF", "bioformats2raw" },
        { "\x1F\x8B", 2, "gzip", "gunzip" },
    };
    for (size_t i = 0; i < CLV_LEN(foreign); ++i) {
        clv_movie *movie;
        const char *path = io_make("foreign.bin", foreign[i].bytes, foreign[i].length);
        EXPECT_FAIL(CLV_E_FORMAT, foreign[i].name, clv_movie_open(path, NULL, &movie));
        EXPECT_FAIL(CLV_E_FORMAT, foreign[i].way, clv_movie_open(path, NULL, &movie));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_equals_its_array),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(foreign_movies_are_called_by_their_names),
#ifdef CLEAVE_HAVE_TIFF
        cmocka_unit_test(cut_and_bent_files_do_no_harm),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
