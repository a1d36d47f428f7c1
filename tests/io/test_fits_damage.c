/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/fits, gunzip.c: files that are cut, packed, or claim what they do not hold. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/fits.h"

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
    EXPECT_FAIL(CLV_E_FORMAT, "begins with \"no FITS a\", expected a FITS",
                clv_fits_read(io_make("m.fits", packed, other), -1, &array, NULL));
    const size_t nothing = gzip_append(packed, 0, ROOM, text, 0);
    EXPECT_FAIL(CLV_E_FORMAT, "begins with \"\"",
                clv_fits_read(io_make("m.fits", packed, nothing), -1, &array, NULL));
    clv_file_array_clear(&expected);
    free(bytes);
}

/* CFITSIO 4.2 writes beyond its room when a column's name of 70 characters has no quotes. */
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
        EXPECT_FAIL(CLV_E_FORMAT, "has no quotes", clv_fits_read_vector(path, &values, &count));
        EXPECT_FAIL(CLV_E_FORMAT, "has no quotes", clv_fits_read(path, 1, &array, NULL));
        EXPECT_FAIL(CLV_E_FORMAT, "has no quotes",
                    clv_fits_read_named(path, "X", 0, 0, &array, &found));
        EXPECT_FAIL(CLV_E_FORMAT, "has no quotes",
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
          "truncated: 2880 bytes of data, expected 10000000000000000 for image "
          "[100000000,100000000] with BITPIX 8" },
        { { START, "BITPIX  =                  -64", "NAXIS   =                    2",
            "NAXIS1  =           8589934592", "NAXIS2  =           8589934592", "END" },
          CLV_E_SHAPE,
          "larger than any memory" },
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
          "no image with data in its 1 HDU" },
        { { START, "BITPIX  =                    8", "NAXIS   =                    1",
            "NAXIS1  =                    5" },
          CLV_E_FORMAT,
          "" }, /* no END */
        { { "SIMPLE  =                    F" }, CLV_E_FORMAT, "" },
        { { "XTENSION= 'IMAGE   '" }, CLV_E_FORMAT, "begins with \"XTENSION=\", expected a FITS" },
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_file_is_an_error),
        cmocka_unit_test(gzip_files_have_members_and_sums),
        cmocka_unit_test(a_name_without_quotes_does_not_reach_the_library),
        cmocka_unit_test(claimed_sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
