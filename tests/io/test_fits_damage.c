/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/fits, gunzip.c: files that are cut, packed, or claim what they do not hold. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/fits.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void a_cut_file_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t needed; /* bytes without the padding at the end */
    } files[] = { { "cube.fits", 2880 + 240 }, { "rank1.fits", 2880 + 20 }, { "cube.fits.gz", 0 } };
    for (size_t f = 0; f < CLV_LEN(files); ++f) {
        unsigned char *bytes;
        size_t length;
        io_load(io_data(files[f].name), &bytes, &length);
        const size_t needed = files[f].needed ? files[f].needed : length;
        for (size_t cut = 0; cut < needed; cut += cut < 100 ? 1 : 37) {
            clv_file_array array;
            clv_fits_cards cards = { 0 };
            EXPECT_FAIL(CLV_E_FORMAT, "cut.fits",
                        clv_fits_read(io_make("cut.fits", bytes, cut), -1, &array, &cards));
            assert_true(array.data == NULL && cards.items == NULL);
        }
        free(bytes);
    }
}

/* `bytes` as one member of a gzip file, behind `used` bytes of it; the new length is returned. */
static size_t gzip_append(unsigned char *out, size_t used, size_t capacity, void *bytes,
                          size_t length)
{
    z_stream z = { .next_in = bytes, .avail_in = (uInt)length };
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out + used;
    z.avail_out = (uInt)(capacity - used);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t end = capacity - z.avail_out;
    deflateEnd(&z);
    return end;
}

static void gzip_files_have_members_and_sums(void **state)
{
    (void)state;
    enum { ROOM = 8192 };
    char text[] = "no FITS at all";
    unsigned char *bytes, packed[ROOM];
    size_t length;
    clv_file_array array, expected;
    io_load(io_data("cube.fits"), &bytes, &length);
    EXPECT_OK(clv_fits_read(io_data("cube.fits"), -1, &expected, NULL));
    /* one member, two, three with an empty one, and what a tape adds */
    const size_t cuts[][2] = { { 0, 0 }, { 0, 1000 }, { 1000, 1000 }, { 2881, length } };
    for (size_t i = 0; i < CLV_LEN(cuts); ++i) {
        size_t used = 0, from = 0;
        for (size_t k = 0; k < 2; from = cuts[i][k++])
            if (i) used = gzip_append(packed, used, ROOM, bytes + from, cuts[i][k] - from);
        used = gzip_append(packed, used, ROOM, bytes + from, length - from);
        memset(packed + used, 0, 100);
        const size_t tails[] = { 0, 1, 100 };
        for (size_t t = 0; t < CLV_LEN(tails); ++t) {
            EXPECT_OK(clv_fits_read(io_make("m.fits", packed, used + tails[t]), -1, &array, NULL));
            assert_int_equal(array.type, expected.type);
            assert_int_equal(clv_file_array_bytes(&array), clv_file_array_bytes(&expected));
            assert_memory_equal(array.data, expected.data, clv_file_array_bytes(&array));
            clv_file_array_clear(&array);
        }
        packed[used - 8] ^= 1; /* the sum of the last member */
        EXPECT_FAIL(CLV_E_FORMAT, "damaged gzip file: incorrect data check",
                    clv_fits_read(io_make("m.fits", packed, used), -1, &array, NULL));
    }
    const size_t other = gzip_append(packed, 0, ROOM, text, 14);
    EXPECT_FAIL(CLV_E_FORMAT, "begins with \"no FITS a\"; expected a FITS",
                clv_fits_read(io_make("m.fits", packed, other), -1, &array, NULL));
    const size_t nothing = gzip_append(packed, 0, ROOM, text, 0);
    EXPECT_FAIL(CLV_E_FORMAT, "begins with \"\"",
                clv_fits_read(io_make("m.fits", packed, nothing), -1, &array, NULL));
    clv_file_array_clear(&expected);
    free(bytes);
}

/* CFITSIO 4.2 writes beyond its room when a column's name of 70 characters is not in quotes. */
/* What gzip held is read from memory. There CFITSIO took the length that the last image says for that of the file,
 * and what lies behind the memory for pixels. */
static void a_cut_file_in_gzip_is_an_error(void **state)
{
    (void)state;
    enum { ROOM = 16384 };
    static const char *const names[] = { "cube.fits", "rank1.fits" };
    for (size_t f = 0; f < CLV_LEN(names); ++f) {
        unsigned char *bytes, packed[ROOM];
        size_t length;
        io_load(io_data(names[f]), &bytes, &length);
        for (size_t cut = 2880; cut < 2880 + 20; ++cut) { /* the data of either end later */
            clv_file_array array;
            double *values;
            size_t count;
            const size_t used = gzip_append(packed, 0, ROOM, bytes, cut);
            const char *path = io_make("cut.fits.gz", packed, used);
            EXPECT_FAIL(CLV_E_FORMAT, "truncated", clv_fits_read(path, -1, &array, NULL));
            if (f == 1)
                EXPECT_FAIL(CLV_E_FORMAT, "truncated", clv_fits_read_vector(path, &values, &count));
        }
        free(bytes);
    }
}

static void a_name_without_quotes_does_not_reach_the_library(void **state)
{
    (void)state;
    unsigned char *bytes, packed[8192];
    size_t length, count;
    double *values;
    clv_file_array array;
    bool found;
    io_load(io_data("angles_named.fits"), &bytes, &length);
    for (size_t at = 0; at + 80 <= length; at += 80)
        if (memcmp(bytes + at, "TTYPE1  =", 9) == 0) memset(bytes + at + 9, 'x', 71);
    for (int zipped = 0; zipped < 2; ++zipped) {
        if (zipped) length = gzip_append(packed, 0, sizeof packed, bytes, length);
        const char *path = io_make("name.fits", zipped ? packed : bytes, length);
        EXPECT_FAIL(CLV_E_FORMAT, "is not in quotes", clv_fits_read_vector(path, &values, &count));
        EXPECT_FAIL(CLV_E_FORMAT, "is not in quotes", clv_fits_read(path, 1, &array, NULL));
        EXPECT_FAIL(CLV_E_FORMAT, "is not in quotes",
                    clv_fits_read_named(path, "X", 0, 0, &array, &found));
        EXPECT_FAIL(CLV_E_FORMAT, "is not in quotes",
                    clv_fits_read_column(path, "X", "PA", CLV_F64, &array, &found));
    }
    free(bytes);
}

/* A primary header of these cards. */
static const char *make_fits(const char *const *cards, size_t data)
{
    char file[3 * 2880];
    memset(file, ' ', 2880);
    memset(file + 2880, 0, sizeof file - 2880);
    for (size_t i = 0; cards[i]; ++i)
        memcpy(file + 80 * i, cards[i], strlen(cards[i]));
    return io_make("made.fits", file, 2880 + data);
}

static void claimed_sizes_are_checked(void **state)
{
    (void)state;
#define START "SIMPLE  =                    T"
    static const struct {
        const char *cards[8];
        clv_status status;
        const char *part;
    } cases[] = {
        { { START, "BITPIX  =                    8", "NAXIS   =                    2",
            "NAXIS1  =            100000000", "NAXIS2  =            100000000", "END" },
          CLV_E_FORMAT,
          "truncated: the file has 2880 bytes of data, but it must have 10000000000000000 for "
          "image "
          "[100000000,100000000] with BITPIX 8" },
        { { START, "BITPIX  =                  -64", "NAXIS   =                    2",
            "NAXIS1  =           8589934592", "NAXIS2  =           8589934592", "END" },
          CLV_E_SHAPE,
          "more memory than can be addressed" },
        { { START, "BITPIX  =                   16", "NAXIS   =                    1",
            "NAXIS1  =                 1441", "END" },
          CLV_E_FORMAT,
          "truncated" },
        { { START, "BITPIX  =                   16", "NAXIS   =                    1",
            "NAXIS1  =                   -5", "END" },
          CLV_E_FORMAT,
          "" },
        { { START, "BITPIX  =                   24", "NAXIS   =                    1",
            "NAXIS1  =                    5", "END" },
          CLV_E_FORMAT,
          "" },
        { { START, "BITPIX  =                   16", "NAXIS   =                 1000",
            "NAXIS1  =                    5", "END" },
          CLV_E_FORMAT,
          "" },
        { { START, "BITPIX  =                   16", "NAXIS   =                    2",
            "NAXIS1  =                    5", "END" },
          CLV_E_FORMAT,
          "" },
        { { START, "BITPIX  =                    8", "NAXIS   =                    0", "END" },
          CLV_E_FORMAT,
          "none of its 1 HDU has an image with data" },
        { { START, "BITPIX  =                    8", "NAXIS   =                    1",
            "NAXIS1  =                    5" },
          CLV_E_FORMAT,
          "" }, /* no END */
        { { "SIMPLE  =                    F" }, CLV_E_FORMAT, "" },
        { { "XTENSION= 'IMAGE   '" }, CLV_E_FORMAT, "begins with \"XTENSION=\"; expected a FITS" },
    };
#undef START
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_file_array array;
        EXPECT_FAIL(cases[i].status, cases[i].part,
                    clv_fits_read(make_fits(cases[i].cards, 2880), -1, &array, NULL));
        assert_non_null(strstr(clv_error_message(), "made.fits"));
        assert_null(strchr(clv_error_message(), '\n'));
    }
}

/* CFITSIO 4.2 has room for 99 axes, and writes those that a header claims. */
static void more_axes_than_the_library_has_room_for(void **state)
{
    (void)state;
    static const char *const claims[] = {
        "100", "200", "999", "99999999999999999999", "-1", "1E2"
    };
    double *values;
    size_t count;
    clv_file_array array;
    EXPECT_FAIL(CLV_E_FORMAT,
                "header's NAXIS is larger, but it must be a whole number from 0 to 99",
                clv_fits_read(io_data("axes200.fits"), -1, &array, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "NAXIS",
                clv_fits_read_vector(io_data("axes200.fits"), &values, &count));
    for (size_t i = 0; i < CLV_LEN(claims); ++i)
        for (int hdu = 0; hdu < 2; ++hdu) { /* also in an extension, and under a long name */
            char file[3 * 2880], line[81];
            memset(file, ' ', sizeof file);
            const char *const first[] = { "SIMPLE  =                    T",
                                          "BITPIX  =                    8",
                                          hdu ? "NAXIS   =                    0" : line, "END" };
            const char *const second[] = { "XTENSION= 'IMAGE   '", "BITPIX  =                    8",
                                           line, "END" };
            snprintf(line, sizeof line, hdu ? "HIERARCH NAXIS = %s" : "NAXIS   = %20s", claims[i]);
            for (size_t c = 0; c < 4; ++c) {
                memcpy(file + 80 * c, first[c], strlen(first[c]));
                memcpy(file + 2880 + 80 * c, second[c], strlen(second[c]));
            }
            EXPECT_FAIL(CLV_E_FORMAT, "header's NAXIS",
                        clv_fits_read(io_make("axes.fits", file, sizeof file), hdu, &array, NULL));
        }
}

/* The library's function for a column's width copies TDISP of any length into 20 bytes. */
static void a_long_display_form_is_not_copied(void **state)
{
    (void)state;
    static const char *const cards[] = { "SIMPLE  =                    T",
                                         "BITPIX  =                    8",
                                         "NAXIS   =                    0",
                                         "EXTEND  =                    T", "END" };
    static const char *const table[] = {
        "XTENSION= 'BINTABLE'",
        "BITPIX  =                    8",
        "NAXIS   =                    2",
        "NAXIS1  =                    4",
        "NAXIS2  =                    2",
        "PCOUNT  =                    0",
        "GCOUNT  =                    1",
        "TFIELDS =                    1",
        "EXTNAME = 'T'",
        "TTYPE1  = 'NAME'",
        "TFORM1  = '4A'",
        "TDISP1  = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'",
        "END"
    };
    char file[3 * 2880];
    memset(file, ' ', sizeof file);
    for (size_t c = 0; c < CLV_LEN(cards); ++c)
        memcpy(file + 80 * c, cards[c], strlen(cards[c]));
    for (size_t c = 0; c < CLV_LEN(table); ++c)
        memcpy(file + 2880 + 80 * c, table[c], strlen(table[c]));
    memcpy(file + 5760, "ab  wxyz", 8);
    clv_file_array array;
    bool found;
    EXPECT_OK(clv_fits_read_column(io_make("tdisp.fits", file, sizeof file), "T", "NAME", CLV_U8,
                                   &array, &found));
    assert_true(found);
    assert_int_equal(array.shape[1], 5); /* not the 66 of TDISP */
    assert_string_equal((const char *)array.data + 5, "wxyz");
    clv_file_array_clear(&array);
}

/* Whatever tiles hold: the process that unpacks them may crash, and we go on. */
static void damaged_tiles_are_an_error(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t length, failed = 0, crashed = 0;
    uint64_t chance = 25;
    clv_file_array array;
    EXPECT_FAIL(CLV_E_FORMAT, "in a process of its own, and it crashed (signal 8)",
                clv_fits_read(io_data("compressed_fpe.fits"), -1, &array, NULL));
    io_load(io_data("tiles.fits.fz"), &bytes, &length);
    unsigned char *bent = malloc(length);
    for (int round = 0; round < 60; ++round) {
        memcpy(bent, bytes, length);
        for (int k = 0; k < 1 + round % 5; ++k) {
            const size_t at =
                2880 + (size_t)(test_uniform(&chance, 0, 1) * (double)(length - 2881));
            bent[at] = (unsigned char)(test_uniform(&chance, 0, 1) * 255);
        }
        const char *path = io_make("bent.fz", bent, length);
        for (int hdu = 1; hdu <= 3; ++hdu) {
            const clv_status status = clv_fits_read(path, hdu, &array, NULL);
            failed += status != CLV_OK;
            crashed += status && strstr(clv_error_message(), "process of its own") != NULL;
            clv_file_array_clear(&array);
        }
    }
    assert_in_range(failed, 10, 179);
    printf("%zu of 180 damaged images were refused, %zu of them ended their process\n", failed,
           crashed);
    free(bent), free(bytes);
}

static void *read_tiles(void *wrong)
{
    for (int i = 0; i < 20; ++i) {
        clv_file_array array = { 0 };
        if (clv_fits_read(io_data("tiles.fits.fz"), 1 + i % 3, &array, NULL)) ++*(int *)wrong;
        clv_file_array_clear(&array);
    }
    return NULL;
}

/* The child is made while other threads are inside CFITSIO. */
static void tiles_are_read_by_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int wrong[4] = { 0 };
    for (size_t i = 0; i < CLV_LEN(threads); ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, read_tiles, &wrong[i]), 0);
    for (size_t i = 0; i < CLV_LEN(threads); ++i) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_file_is_an_error),
        cmocka_unit_test(gzip_files_have_members_and_sums),
        cmocka_unit_test(a_cut_file_in_gzip_is_an_error),
        cmocka_unit_test(a_name_without_quotes_does_not_reach_the_library),
        cmocka_unit_test(claimed_sizes_are_checked),
        cmocka_unit_test(more_axes_than_the_library_has_room_for),
        cmocka_unit_test(a_long_display_form_is_not_copied),
        cmocka_unit_test(damaged_tiles_are_an_error),
        cmocka_unit_test(tiles_are_read_by_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
