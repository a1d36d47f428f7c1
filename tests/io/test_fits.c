/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/fits: images, vectors and tables of FITS files. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "host/io/formats/fits.h"
#include "host/io/formats/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CLEAVE_HAVE_CFITSIO

static void every_call_says_that_fits_is_missing(void **state)
{
    (void)state;
    clv_file_array array = { 0 };
    double *values;
    size_t count;
    EXPECT_FAIL(CLV_E_FORMAT, "built without FITS", clv_fits_read("x.fits", -1, &array, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "built without FITS", clv_fits_read_vector("x", &values, &count));
    EXPECT_FAIL(CLV_E_FORMAT, "built without FITS", clv_fits_write("x.fits", &array, NULL));
}

#else

/* ---- images -------------------------------------------------------------------------------- */

static void every_pixel_type_is_read(void **state)
{
    (void)state;
    static const clv_type types[] = { CLV_U8,  CLV_I16, CLV_I32, CLV_I64, CLV_F32,
                                      CLV_F64, CLV_I16, CLV_U16, CLV_U32 };
    const size_t shape[] = { 2, 3 };
    clv_file_array array;
    for (size_t i = 0; i < CLV_LEN(types); ++i) {
        EXPECT_OK(clv_fits_read(io_data("images.fits"), (int)i + 1, &array, NULL));
        io_expect_golden(&array, types[i], 2, shape);
        clv_file_array_clear(&array);
    }
    EXPECT_OK(clv_fits_read(io_data("images.fits"), CLV_FITS_FIRST_IMAGE, &array, NULL));
    io_expect_golden(&array, CLV_U8, 2, shape);
    clv_file_array_clear(&array);

    EXPECT_FAIL(CLV_E_FORMAT, "HDU 0 is not an image with data",
                clv_fits_read(io_data("images.fits"), 0, &array, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "no HDU 10", clv_fits_read(io_data("images.fits"), 10, &array, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "no HDU -2", clv_fits_read(io_data("images.fits"), -2, &array, NULL));
    EXPECT_FAIL(CLV_E_FORMAT, "none of its 2 HDUs has an image with data",
                clv_fits_read(io_data("angles_named.fits"), CLV_FITS_FIRST_IMAGE, &array, NULL));
    assert_null(array.data);
}

static void every_rank_is_read_in_c_order(void **state)
{
    (void)state;
    static const size_t shapes[5][4] = { { 0 }, { 5 }, { 5, 3 }, { 2, 5, 3 }, { 2, 3, 4, 5 } };
    clv_file_array array;
    for (size_t rank = 1; rank <= 4; ++rank) {
        char name[32];
        snprintf(name, sizeof name, "rank%zu.fits", rank);
        EXPECT_OK(clv_fits_read(io_data(name), 0, &array, NULL));
        io_expect_golden(&array, CLV_F32, rank, shapes[rank]);
        clv_file_array_clear(&array);
    }
    EXPECT_FAIL(CLV_E_SHAPE, "5 axes, but at most 4",
                clv_fits_read(io_data("rank5.fits"), 0, &array, NULL));
}

static void scaled_and_blank_pixels_are_floats(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        clv_type type;
        double scale, zero;
        size_t blank; /* element that is NaN */
    } cases[] = { { "scaled16.fits", CLV_F32, 0.5, 100, 99 },
                  { "scaled32.fits", CLV_F64, 0.5, 100, 99 },
                  { "blank16.fits", CLV_F32, 1, 0, 1 },
                  { "blank32.fits", CLV_F64, 1, 0, 1 } };
    for (size_t c = 0; c < CLV_LEN(cases); ++c) {
        clv_file_array array;
        EXPECT_OK(clv_fits_read(io_data(cases[c].name), 0, &array, NULL));
        assert_int_equal(array.type, cases[c].type);
        EXPECT_OK(clv_file_array_convert(&array, "x", CLV_F64));
        for (size_t i = 0; i < 6; ++i) {
            const double got = ((const double *)array.data)[i];
            if (i == cases[c].blank)
                assert_true(isnan(got));
            else
                assert_true(got == io_golden(CLV_I16, i) * cases[c].scale + cases[c].zero);
        }
        clv_file_array_clear(&array);
    }
}

static void expect_cube(const clv_file_array *array)
{
    static const size_t shape[] = { 3, 4, 5 };
    assert_int_equal(array->type, CLV_F32);
    assert_int_equal(array->rank, 3);
    assert_memory_equal(array->shape, shape, sizeof shape);
    for (size_t i = 0; i < 60; ++i) {
        const float got = ((const float *)array->data)[i];
        if (i == 20 + 2 * 5 + 3)
            assert_true(isnan(got));
        else
            assert_true(got == io_golden(CLV_F32, i));
    }
}

static void a_cube_brings_its_cards(void **state)
{
    (void)state;
    static const char *const names[] = { "cube.fits", "cube.fits.gz" };
    for (size_t n = 0; n < CLV_LEN(names); ++n) {
        clv_file_array array;
        clv_fits_cards cards = { 0 };
        EXPECT_OK(clv_fits_read(io_data(names[n]), CLV_FITS_FIRST_IMAGE, &array, &cards));
        expect_cube(&array);
        assert_int_equal(cards.rank, 3);
        assert_int_equal(cards.count, 18);
        assert_string_equal(clv_fits_card_find(&cards, "OBJECT"), "OBJECT  = 'beta Pic'");
        assert_non_null(clv_fits_card_find(&cards, "CD3_3"));
        assert_null(clv_fits_card_find(&cards, "EXPTIME"));
        clv_file_array_clear(&array);
        clv_fits_cards_clear(&cards);
    }
}

static void the_primary_hdu_names_the_target_of_extensions(void **state)
{
    (void)state;
    clv_file_array array;
    clv_fits_cards cards = { 0 };
    EXPECT_OK(clv_fits_read(io_data("images.fits"), 5, &array, &cards));
    io_expect_golden(&array, CLV_F32, 2, (const size_t[]){ 2, 3 });
    assert_string_equal(clv_fits_card_find(&cards, "OBJECT"), "OBJECT  = 'named once'");
    assert_null(clv_fits_card_find(&cards, "CRPIX1"));
    clv_file_array_clear(&array);
    clv_fits_cards_clear(&cards);
}

static void compressed_images_are_read(void **state)
{
    (void)state;
    clv_file_array array;
    clv_fits_cards cards = { 0 };
    EXPECT_OK(clv_fits_read(io_data("tiles.fits.fz"), CLV_FITS_FIRST_IMAGE, &array, &cards));
    io_expect_golden(&array, CLV_I16, 2, (const size_t[]){ 12, 10 });
    assert_non_null(clv_fits_card_find(&cards, "OBJECT"));
    clv_file_array_clear(&array), clv_fits_cards_clear(&cards);

    for (int hdu = 2; hdu <= 3; ++hdu) { /* 2: exact; 3: quantised */
        EXPECT_OK(clv_fits_read(io_data("tiles.fits.fz"), hdu, &array, NULL));
        assert_int_equal(array.type, CLV_F32);
        for (size_t i = 0; i < 120; ++i) {
            const float got = ((const float *)array.data)[i];
            if (i == 34)
                assert_true(isnan(got));
            else
                assert_true(fabs(got - io_golden(CLV_F32, i)) <= (hdu == 2 ? 0 : 1.0));
        }
        clv_file_array_clear(&array);
    }
}

static void a_path_is_a_path(void **state)
{
    (void)state;
    static const char *const names[] = { "cube[1].fits", "cube.fits(out)", " blank.fits",
                                         "~nobody",      "!bang.fits",     "mem:",
                                         "a+1",          "plain.fits.gz",  "x.fits[col A]",
                                         "http:",        "file:x",         "cube.fits[1:2,1:2]" };
    unsigned char *bytes;
    size_t length;
    char before[4096];
    clv_file_array array;
    io_load(io_data("cube.fits"), &bytes, &length);
    assert_non_null(getcwd(before, sizeof before));
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        const char *path = io_make(names[i], bytes, length);
        EXPECT_OK(clv_fits_read(path, 0, &array, NULL));
        expect_cube(&array);
        clv_file_array_clear(&array);
        assert_int_equal(chdir(test_temp_dir()), 0);
        const clv_status status = clv_fits_read(names[i], 0, &array, NULL);
        assert_int_equal(chdir(before), 0);
        EXPECT_OK(status);
        clv_file_array_clear(&array);
        unlink(path);
    }
    free(bytes);

    static const char *const drivers[] = { "http://127.0.0.1:9/x.fits",
                                           "ftp://127.0.0.1/x.fits",
                                           "root://127.0.0.1/x.fits",
                                           "shmem://h1",
                                           "mem://x",
                                           "-",
                                           "stdin://",
                                           "file://x" };
    for (size_t i = 0; i < CLV_LEN(drivers); ++i)
        EXPECT_FAIL(CLV_E_IO, "cannot open: No such file",
                    clv_fits_read(drivers[i], 0, &array, NULL));
    /* "cube" is not there, though "cube.gz" is */
    io_make("cube.gz", "\x1F\x8B", 2);
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_fits_read(io_temp("cube"), 0, &array, NULL));
    char deep[1100];
    snprintf(deep, sizeof deep, "%s", io_data("cube.fits"));
    while (strlen(deep) < 1050)
        memmove(deep + 2, deep, strlen(deep) + 1), memcpy(deep, "/.", 2);
    EXPECT_FAIL(CLV_E_IO, "path too long", clv_fits_read(deep, 0, &array, NULL));
}

/* ---- vectors ------------------------------------------------------------------------------- */

static void vectors_come_from_images_and_tables(void **state)
{
    (void)state;
    static const char *const names[] = { "angles_image.fits",  "angles_row.fits",
                                         "angles_column.fits", "angles_named.fits",
                                         "angles_ascii.fits",  "angles_array.fits" };
    double *values;
    size_t count;
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        EXPECT_OK(clv_fits_read_vector(io_data(names[i]), &values, &count));
        assert_int_equal(count, 7);
        for (size_t k = 0; k < count; ++k)
            assert_true(values[k] == io_golden(CLV_F64, k));
        clv_free(values);
    }
    EXPECT_OK(clv_fits_read_vector(io_data("angles_null.fits"), &values, &count));
    assert_int_equal(count, 7);
    for (size_t k = 0; k < count; ++k)
        assert_true(k == 2 ? isnan(values[k]) : values[k] == io_golden(CLV_I32, k));
    clv_free(values);
    EXPECT_FAIL(CLV_E_FORMAT, "there is no vector",
                clv_fits_read_vector(io_data("cube.fits"), &values, &count));
    EXPECT_FAIL(CLV_E_FORMAT, "several columns of numbers",
                clv_fits_read_vector(io_data("angles_first.fits"), &values, &count));
    assert_true(values == NULL && count == 0);
}

/* "FILE[EXT]" as CFITSIO names it, where no file has that very name. */
static const char *with_extension(const char *name)
{
    static char path[1024];
    const size_t plain = strcspn(name, "[");
    char file[64] = "";
    memcpy(file, name, plain);
    snprintf(path, sizeof path, "%s%s", io_data(file), name + plain);
    return path;
}

static void extensions_are_chosen_by_name_or_number(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        clv_type type;
    } good[] = { { "images.fits[I4]", CLV_I32 },
                 { "images.fits[f8]", CLV_F64 },
                 { "images.fits[F8,1]", CLV_F64 },
                 { "images.fits[2]", CLV_I16 },
                 { "images.fits", CLV_U8 } };
    const size_t shape[] = { 2, 3 };
    clv_file_array array;
    for (size_t i = 0; i < CLV_LEN(good); ++i) {
        EXPECT_OK(clv_array_read(with_extension(good[i].name), &array, NULL));
        io_expect_golden(&array, good[i].type, 2, shape);
        clv_file_array_clear(&array);
    }
    static const char *const bad[][2] = {
        { "images.fits[F9]", "no HDU [F9]" },
        { "images.fits[F8,2]", "no HDU [F8,2]" },
        { "images.fits[10]", "no HDU [10]" },
        { "images.fits[-1]", "no HDU [-1]" },
        { "images.fits[0]", "HDU [0] is not an image" },
        { "images.fits[PRIMARY]", "HDU [PRIMARY] is not an image" },
        { "images.fits[p]", "HDU [p] is not an image" },
        { "angles_named.fits[1]", "HDU [1] is not an image" },
        { "rank1_c.npy[1]", "[1] names an HDU of a FITS file, but this is NPY" },
    };
    for (size_t i = 0; i < CLV_LEN(bad); ++i)
        EXPECT_FAIL(CLV_E_FORMAT, bad[i][1],
                    clv_array_read(with_extension(bad[i][0]), &array, NULL));
    EXPECT_FAIL(CLV_E_IO, "images.fits[]",
                clv_array_read(with_extension("images.fits[]"), &array, NULL));

    double *values;
    size_t count;
    EXPECT_OK(clv_angles_read(with_extension("angles_named.fits[1]"), "parang", &values, &count));
    assert_int_equal(count, 7);
    assert_true(values[6] == io_golden(CLV_F64, 6));
    clv_free(values);
    EXPECT_OK(clv_angles_read(with_extension("angles_named.fits"), "1", &values, &count));
    assert_true(count == 7 && values[6] != io_golden(CLV_F64, 6));
    clv_free(values);
    EXPECT_FAIL(CLV_E_FORMAT, "no table [1] has a numeric column X",
                clv_angles_read(with_extension("angles_named.fits[1]"), "X", &values, &count));
    EXPECT_FAIL(CLV_E_FORMAT, "there is no vector",
                clv_vector_read(with_extension("angles_named.fits[0]"), &values, &count));
}

/* ---- writing ------------------------------------------------------------------------------- */

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const size_t shape[] = { 2, 3, 4, 5 };
    static const float odd[] = { NAN, -0.0f, INFINITY, 0x1p-149f };
    for (int wide = 0; wide < 2; ++wide)
        for (size_t rank = 1; rank <= 4; ++rank) {
            const clv_type type = wide ? CLV_F64 : CLV_F32;
            clv_file_array array, back;
            EXPECT_OK(clv_file_array_create(&array, "a", type, rank, shape));
            const size_t count = clv_file_array_count(&array);
            for (size_t i = 0; i < count; ++i) {
                const double v = i < 2 ? (double)odd[(i + rank) % 4] : io_golden(type, i);
                if (wide)
                    ((double *)array.data)[i] = v;
                else
                    ((float *)array.data)[i] = (float)v;
            }
            EXPECT_OK(clv_fits_write(io_temp("round.fits"), &array, NULL));
            EXPECT_OK(clv_fits_read(io_temp("round.fits"), 0, &back, NULL));
            assert_int_equal(back.type, type);
            assert_int_equal(back.rank, rank);
            assert_memory_equal(back.shape, array.shape, rank * sizeof(size_t));
            assert_memory_equal(back.data, array.data, clv_file_array_bytes(&array));
            clv_file_array_clear(&array), clv_file_array_clear(&back);
        }
    struct stat info;
    assert_int_equal(stat(io_temp("round.fits"), &info), 0);
    assert_int_equal(info.st_size % 2880, 0);
}

static bool holds_card(const unsigned char *header, const char *card)
{
    for (size_t i = 0; i < 72; ++i)
        if (memcmp(header + 80 * i, card, strlen(card)) == 0) return true;
    return false;
}

static void cards_are_carried_to_results(void **state)
{
    (void)state;
    clv_file_array cube;
    clv_fits_cards cards = { 0 };
    EXPECT_OK(clv_fits_read(io_data("cube.fits"), -1, &cube, &cards));
    clv_fits_card_string(&cards, "OBJECT", "changed", NULL);
    clv_fits_card_int(&cards, "PACO_RAD", 4, "patch radius");
    clv_fits_card_history(&cards, "made by a test");
    for (size_t rank = 2; rank <= 3; ++rank) {
        float data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        unsigned char *bytes, *again;
        size_t length, same;
        const clv_file_array map = { CLV_F32, rank, { 2, 2, 2 }, data };
        EXPECT_OK(clv_fits_write(io_temp("map.fits"), &map, &cards));
        io_load(io_temp("map.fits"), &bytes, &length);
        assert_true(holds_card(bytes, "OBJECT  = 'changed '"));
        assert_true(holds_card(bytes, "PACO_RAD=                    4 / patch radius"));
        assert_true(holds_card(bytes, "HISTORY made by a test"));
        assert_true(holds_card(bytes, "CTYPE1  = 'RA---TAN'"));
        assert_true(holds_card(bytes, "CD2_2   =              7.5E-06"));
        assert_true(holds_card(bytes, "CTYPE3  =") == (rank == 3));
        assert_true(holds_card(bytes, "CD3_3   =") == (rank == 3));
        assert_false(holds_card(bytes, "DATE "));
        EXPECT_OK(clv_fits_write(io_temp("map.fits"), &map, &cards)); /* same bytes again */
        io_load(io_temp("map.fits"), &again, &same);
        assert_int_equal(length, same);
        assert_memory_equal(bytes, again, length);
        free(bytes), free(again);
    }
    clv_file_array_clear(&cube);
    clv_fits_cards_clear(&cards);
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    float data[4096] = { 0 };
    const clv_file_array array = { CLV_F32, 1, { 4096 }, data };
    mkdir(io_temp("out"), 0700);
    io_limit_files(5000);
    EXPECT_FAIL(CLV_E_IO, "a.fits: cannot write",
                clv_fits_write(io_temp("out/a.fits"), &array, NULL));
    io_limit_files(0);
    EXPECT_FAIL(CLV_E_IO, "cannot create", clv_fits_write(io_temp("nowhere/a.fits"), &array, NULL));
    const clv_file_array integers = { CLV_I16, 1, { 4096 }, data },
                         number = { CLV_F32, 0, { 0 }, data };
    EXPECT_FAIL(CLV_E_ARGUMENT, "not int16",
                clv_fits_write(io_temp("out/a.fits"), &integers, NULL));
    EXPECT_FAIL(CLV_E_ARGUMENT, "no axes", clv_fits_write(io_temp("out/a.fits"), &number, NULL));
    assert_int_equal(io_files_in(io_temp("out")), 0);
    EXPECT_OK(clv_fits_write(io_temp("out/!a[1].fits"), &array, NULL)); /* a path is a path */
    assert_int_equal(access(io_temp("out/!a[1].fits"), R_OK), 0);
    assert_int_equal(io_files_in(io_temp("out")), 1);
}

/* ---- memory and threads -------------------------------------------------------------------- */

static clv_file_array subject;
static clv_fits_cards subject_cards;
static double *subject_values;
static size_t subject_count;

static int subject_is_empty(void)
{
    return !subject.data && !subject_cards.items && !subject_values && !subject_count;
}

static clv_status read_subject(void)
{
    const clv_status status = clv_fits_read(io_data("cube.fits"), -1, &subject, &subject_cards);
    if (status) return status;
    clv_file_array_clear(&subject);
    clv_fits_cards_clear(&subject_cards);
    return CLV_OK;
}

static clv_status read_unpacked(void)
{
    const clv_status status = clv_fits_read(io_data("cube.fits.gz"), -1, &subject, NULL);
    if (!status) clv_file_array_clear(&subject);
    return status;
}

static clv_status read_vector(void)
{
    const clv_status status =
        clv_fits_read_vector(io_data("angles_named.fits"), &subject_values, &subject_count);
    if (status) return status;
    clv_free(subject_values);
    subject_values = NULL;
    subject_count = 0;
    return CLV_OK;
}

static clv_status write_subject(void)
{
    float data[6] = { 0 };
    const clv_file_array array = { CLV_F32, 2, { 2, 3 }, data };
    clv_fits_cards cards = { 0 };
    clv_fits_card_int(&cards, "A", 1, NULL);
    const clv_status status = clv_fits_write(io_temp("memory/a.fits"), &array, &cards);
    clv_fits_cards_clear(&cards);
    return status;
}

static int nothing_written(void)
{
    return io_files_in(io_temp("memory")) == 0;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(io_without_memory(read_subject, subject_is_empty) >= 2);
    assert_int_equal(io_without_memory(read_unpacked, subject_is_empty), 3);
    assert_int_equal(io_without_memory(read_vector, subject_is_empty), 1);
    mkdir(io_temp("memory"), 0700);
    assert_true(io_without_memory(write_subject, nothing_written) >= 3);
}

static void *read_often(void *failed)
{
    for (int i = 0; i < 100; ++i) {
        clv_file_array array;
        const bool good = clv_fits_read(io_data("cube.fits"), -1, &array, NULL) == CLV_OK &&
                          ((const float *)array.data)[59] == (float)io_golden(CLV_F32, 59);
        if (!good) *(bool *)failed = true;
        clv_file_array_clear(&array);
    }
    return NULL;
}

static void threads_read_the_same_file(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    clv_thread threads[THREADS];
    bool failed[THREADS] = { false };
    for (int i = 0; i < THREADS; ++i)
        assert_true(clv_thread_start(&threads[i], "reader", read_often, &failed[i]));
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        assert_false(failed[i]);
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef CLEAVE_HAVE_CFITSIO
        cmocka_unit_test(every_call_says_that_fits_is_missing),
#else
        cmocka_unit_test(every_pixel_type_is_read),
        cmocka_unit_test(every_rank_is_read_in_c_order),
        cmocka_unit_test(scaled_and_blank_pixels_are_floats),
        cmocka_unit_test(a_cube_brings_its_cards),
        cmocka_unit_test(the_primary_hdu_names_the_target_of_extensions),
        cmocka_unit_test(compressed_images_are_read),
        cmocka_unit_test(a_path_is_a_path),
        cmocka_unit_test(vectors_come_from_images_and_tables),
        cmocka_unit_test(extensions_are_chosen_by_name_or_number),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(cards_are_carried_to_results),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(threads_read_the_same_file),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
