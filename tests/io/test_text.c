/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/table.c, csv.c, reader.c: vectors and tables in text, and telling formats apart. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/reader.h"
#include "host/io/formats/table.h"
#include "host/io/tables/any.h"
#include "host/io/tables/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *make_text(const char *text)
{
    return io_make("text", text, strlen(text));
}

/* ---- vectors ------------------------------------------------------------------------------- */

static void vectors_are_read_in_every_layout(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1.5\n-2\n150\n",
        "1.5 -2 150",
        "1.5,-2,150\n",
        "1.5; -2 ;150",
        "1.5,\n-2,\n150,\n",
        "\xEF\xBB\xBF+1.5\r\n-2\r\n1.5e2\r\n",
        "# angles in degrees\n\n 1.5 # first\n\t-2.0\n\n1.5D+02",
        "+1.5\n-.2E1\n1.5d2\n#",
        "1.5\r-2\r150\r", /* old Mac: one row */
    };
    for (size_t i = 0; i < CLV_LEN(texts); ++i) {
        double *values;
        size_t count;
        EXPECT_OK(clv_text_vector_read(make_text(texts[i]), &values, &count));
        assert_int_equal(count, 3);
        assert_true(values[0] == 1.5 && values[1] == -2 && values[2] == 150);
        clv_free(values);
    }
}

static void bad_words_are_shown_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "text: the file has no numbers" },
        { "# only this\n", "has no numbers" },
        { "1\n2\nthree\n", "text: line 3, column 1: \"three\" is not a finite number" },
        { "1, 2, 3x\n", "line 1, column 7: \"3x\"" },
        { "1\n 2\n  0x10", "line 3, column 3: \"0x10\"" },
        { "nan", "\"nan\" is not a finite number" },
        { "inf", "\"inf\"" },
        { "1e999", "\"1e999\"" },
        { "1.5D", "\"1.5D\"" },
        { "1,,2", "line 1, column 3: \",\" has no number before it" },
        { ",1", "line 1, column 1: \",\" has no number" },
        { "1\n;", "line 2, column 1: \";\" has no number" },
        { "1 2\n3 4\n",
          "line 2, column 1: \"3\" makes it a table; expected one column or one row" },
        { "1\n2\n3 4\n", "line 3, column 3: \"4\" makes it a table" },
        { "\xEF\xBB\xBFx", "line 1, column 1: \"x\"" },
        { "1\n\xC3\xA9", "\"\\xC3\\xA9\" is not" },
    };
    double *values;
    size_t count;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part,
                    clv_text_vector_read(make_text(cases[i].text), &values, &count));
        assert_true(values == NULL && count == 0);
    }
    EXPECT_FAIL(CLV_E_FORMAT, "\"1\\x002\" is not",
                clv_text_vector_read(io_make("text", "1\0002", 3), &values, &count));
    char digits[200];
    memset(digits, '1', sizeof digits);
    EXPECT_FAIL(CLV_E_FORMAT, "too long for a number",
                clv_text_vector_read(io_make("text", digits, sizeof digits), &values, &count));
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_text_vector_read(io_temp("absent"), &values, &count));
}

/* ---- CSV writing --------------------------------------------------------------------------- */

static void fill_csv(clv_csv *csv)
{
    static const char *const names[] = { "id", "value, f32", "number", "text" };
    clv_csv_begin(csv, names, CLV_LEN(names));
    clv_csv_int(csv, -7), clv_csv_float(csv, 0.1f), clv_csv_number(csv, 1.0 / 3);
    clv_csv_string(csv, "plain");
    clv_csv_end_row(csv);
    clv_csv_int(csv, INT64_MAX), clv_csv_float(csv, 16777217.0f), clv_csv_number(csv, -1e-17);
    clv_csv_string(csv, "say \"hi\",\nthen");
    clv_csv_end_row(csv);
    clv_csv_int(csv, 0), clv_csv_float(csv, NAN), clv_csv_number(csv, -INFINITY);
    clv_csv_string(csv, "");
    clv_csv_end_row(csv);
}

static const char csv_text[] = "id,\"value, f32\",number,text\n"
                               "-7,0.1,0.333333333,plain\n"
                               "9223372036854775807,16777216,-1e-17,\"say \"\"hi\"\",\nthen\"\n"
                               "0,nan,-inf,\"\"\n";

static void tables_are_written_as_rfc_4180(void **state)
{
    (void)state;
    clv_csv csv;
    unsigned char *bytes;
    size_t length;
    fill_csv(&csv);
    EXPECT_OK(clv_csv_write(&csv, io_temp("a.csv")));
    clv_csv_clear(&csv);
    io_load(io_temp("a.csv"), &bytes, &length);
    assert_int_equal(length, strlen(csv_text));
    assert_memory_equal(bytes, csv_text, length);
    free(bytes);
}

static void the_decimal_point_is_a_point_everywhere(void **state)
{
    (void)state;
    clv_csv csv;
    test_comma();
    fill_csv(&csv);
    test_point();
    assert_string_equal(csv.text.data, csv_text);
    clv_csv_clear(&csv);
}

/* Any float, or one of a usual size. */
static float some_float(uint64_t *seed, int number)
{
    const uint32_t bits = (uint32_t)test_random(seed);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (number % 3 == 1) return (float)(bits % 100000000) * (bits & 1 ? -1e-5f : 1e-3f);
    if (number % 3 == 2) return (float)(bits % 1000000) / (float)(bits >> 20);
    return value;
}

static void floats_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    static const char *const names[] = { "x" };
    uint64_t seed = 1;
    for (int i = 0; i < 60000; ++i) {
        const float value = some_float(&seed, i);
        char want[40];
        if (!isfinite(value)) continue;
        for (int digits = 6; digits <= 9; ++digits) {
            snprintf(want, sizeof want, "x\n%.*g\n", digits, (double)value);
            if (strtof(want + 2, NULL) == value) break;
        }
        clv_csv csv;
        clv_csv_begin(&csv, names, 1);
        clv_csv_float(&csv, value);
        clv_csv_end_row(&csv);
        assert_true(strtof(csv.text.data + 2, NULL) == value);
        assert_string_equal(csv.text.data, want);
        clv_csv_clear(&csv);
    }
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    clv_csv csv;
    mkdir(io_temp("out"), 0700);
    fill_csv(&csv);
    io_limit_files(50);
    EXPECT_FAIL(CLV_E_IO, "a.csv: cannot write", clv_csv_write(&csv, io_temp("out/a.csv")));
    io_limit_files(0);
    EXPECT_FAIL(CLV_E_IO, "cannot create", clv_csv_write(&csv, io_temp("nowhere/a.csv")));
    assert_int_equal(io_files_in(io_temp("out")), 0);
    clv_csv_clear(&csv);
}

/* ---- CSV reading --------------------------------------------------------------------------- */

static void tables_are_read_by_column_name(void **state)
{
    (void)state;
    static const char text[] = "\xEF\xBB\xBF"
                               "frame,\"y, px\",\"x\"\"q\"\"\",note\r\n"
                               "0,1.5, 2 ,\"a,\nb\"\r\n"
                               "\r\n"
                               "1,\"-2.5\",3e2,\"\"\r\n"
                               "2,4,5,c";
    clv_csv_table *table;
    double values[3];
    size_t column, length;
    EXPECT_OK(clv_csv_read(make_text(text), &table));
    assert_int_equal(clv_csv_columns(table), 4);
    assert_int_equal(clv_csv_rows(table), 3);
    assert_string_equal(clv_csv_name(table, 0), "frame");
    EXPECT_OK(clv_csv_find(table, "y, px", &column));
    EXPECT_OK(clv_csv_doubles(table, column, values));
    assert_true(values[0] == 1.5 && values[1] == -2.5 && values[2] == 4);
    EXPECT_OK(clv_csv_find(table, "x\"q\"", &column));
    EXPECT_OK(clv_csv_doubles(table, column, values));
    assert_true(values[0] == 2 && values[1] == 300 && values[2] == 5);
    EXPECT_FAIL(CLV_E_FORMAT,
                "text: there is no column 'z'; the columns are frame,\"y, px\",\"x\"\"q\"\"\",note",
                clv_csv_find(table, "z", &column));
    EXPECT_OK(clv_csv_find(table, "note", &column));
    EXPECT_FAIL(CLV_E_FORMAT, "text: line 2, column 'note': \"a,\\x0Ab\" is not a finite number",
                clv_csv_doubles(table, column, values));

    const char *row = clv_csv_row(table, 0, &length);
    assert_int_equal(length, 16);
    assert_memory_equal(row, "0,1.5, 2 ,\"a,\nb\"", length);
    row = clv_csv_row(table, 2, &length);
    assert_int_equal(length, 7);
    assert_memory_equal(row, "2,4,5,c", length);
    row = clv_csv_header(table, &length);
    assert_memory_equal(row, "frame,\"y, px\",", 14);
    assert_int_equal(length, 27);
    clv_csv_free(table);
    clv_csv_free(NULL);
}

static void numbers_name_their_line(void **state)
{
    (void)state;
    clv_csv_table *table;
    double values[3];
    EXPECT_OK(clv_csv_read(make_text("x,y\n1,\"a\nb\"\n\n2,\n3,inf\n"), &table));
    EXPECT_OK(clv_csv_doubles(table, 0, values));
    EXPECT_FAIL(CLV_E_FORMAT, "line 2, column 'y'", clv_csv_doubles(table, 1, values));
    clv_csv_free(table);
    EXPECT_OK(clv_csv_read(make_text("x,y\n1,2\n\n2,\n"), &table));
    EXPECT_FAIL(CLV_E_FORMAT, "line 4, column 'y': \"\" is not", clv_csv_doubles(table, 1, values));
    clv_csv_free(table);
    EXPECT_OK(clv_csv_read(make_text("x,x\n1,2\n"), &table));
    size_t column;
    EXPECT_FAIL(CLV_E_FORMAT, "2 columns have the name 'x'", clv_csv_find(table, "x", &column));
    clv_csv_free(table);
    EXPECT_OK(clv_csv_read(make_text("only,a,header"), &table));
    assert_int_equal(clv_csv_rows(table), 0);
    clv_csv_free(table);
}

static void wrong_tables_are_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "is empty" },
        { "\n\r\n\n", "is empty" },
        { "a,b\n1\n", "line 2 has 1 field, but the header has 2" },
        { "a,b\n\"1\n\n\",2\n3\n", "line 5 has 1 field" },
        { "a,b\n1,2\n\n1,2,3\n", "line 4 has 3 fields" },
        { "a,b\n1,\"2\n3\n", "line 2: a quoted field has no closing quote" },
        { "a,b\n1,\"2\"x\n", "line 2: \"x\" after a closing quote" },
        { "a,b\n1,2\"3\"\n", "inside a field without quotes" },
        { "a,b\r1,2\r", "line 1 has a CR without an LF" },
        { "a,b\n1,\"2\"\r3,4\n", "line 2 has a CR without an LF" },
    };
    clv_csv_table *table;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].part, clv_csv_read(make_text(cases[i].text), &table));
        assert_null(table);
    }
    EXPECT_FAIL(CLV_E_FORMAT, "a NUL byte", clv_csv_read(io_make("text", "a\n\0\n", 4), &table));
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_csv_read(io_temp("absent"), &table));
    char *wide = malloc(5001);
    memset(wide, ',', 5000);
    wide[5000] = '\0';
    EXPECT_FAIL(CLV_E_FORMAT, "more than 4096 columns", clv_csv_read(make_text(wide), &table));
    free(wide);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    clv_csv csv;
    clv_csv_table *table;
    double values[3];
    fill_csv(&csv);
    EXPECT_OK(clv_csv_write(&csv, io_temp("back.csv")));
    clv_csv_clear(&csv);
    EXPECT_OK(clv_csv_read(io_temp("back.csv"), &table));
    assert_int_equal(clv_csv_rows(table), 3);
    assert_string_equal(clv_csv_name(table, 1), "value, f32");
    EXPECT_OK(clv_csv_doubles(table, 0, values));
    assert_true(values[0] == -7);
    clv_csv_free(table);
}

/* ---- telling formats apart ----------------------------------------------------------------- */

static void vectors_are_read_from_any_format(void **state)
{
    (void)state;
    static const char *const names[] = { "angles.txt", "rank1_c.npy", "angles_column.fits" };
    io_make("angles.txt", "-19.5 -16.5 -13.5 -10.5 -7.5", 28);
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        double *values;
        size_t count;
        const clv_status status =
            clv_vector_read(i ? io_data(names[i]) : io_temp(names[i]), &values, &count);
        if (i == 2 && status && strstr(clv_error_message(), "built without FITS")) continue;
        EXPECT_OK(status);
        assert_true(count == 5 || count == 7);
        for (size_t k = 0; k < count; ++k)
            assert_true(values[k] == io_golden(CLV_F64, k));
        clv_free(values);
    }
    double *values;
    size_t count;
    EXPECT_FAIL(CLV_E_SHAPE, "shape [5,3] is not a vector; expected [T], [T,1] or [1,T]",
                clv_vector_read(io_data("rank2_c.npy"), &values, &count));
    EXPECT_FAIL(CLV_E_SHAPE, "[0,3] is not a vector",
                clv_vector_read(io_data("empty.npy"), &values, &count));
    EXPECT_FAIL(CLV_E_FORMAT, "not supported (unknown); expected text, NPY",
                clv_vector_read(io_make("odd", "\x01\x02", 2), &values, &count));
    assert_true(values == NULL && count == 0);
}

/* Tables with a line of names, in the first line or in a comment. */
static void columns_of_tables_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *column;
        double first;
    } good[] = {
        { "1.5\n2.5\n", NULL, 1.5 },
        { "PARANG\n1.5\n2.5\n", NULL, 1.5 },
        { "frame,time,parang\n0,2013-02-01T03:04:05,-3.5\n1,x,2.5\n", NULL, -3.5 },
        { "frame time Angle_deg\n0 a 7\n1 b 2.5\n", NULL, 7 },
        { "frame parang_deg\n0 9\n1 2.5\n", NULL, 9 },
        { "# frame pa\n0 8\n1 2.5\n", NULL, 8 },
        { "a;b;c\n1;2;3\n4;2.5;6\n", "B", 2 },
        { "a\tb\n1\t4d0\n4\t2.5\n", "2", 4 },
        { "1 9\n2 2.5\n", "2", 9 },
        { "\xEF\xBB\xBF\"pa\",\"q\"\r\n6,1\r\n2.5,1\r\n", NULL, 6 },
    };
    for (size_t i = 0; i < CLV_LEN(good); ++i) {
        double *values;
        size_t count;
        EXPECT_OK(clv_angles_read(io_make("t.txt", good[i].text, strlen(good[i].text)),
                                  good[i].column, &values, &count));
        assert_int_equal(count, 2);
        assert_true(values[0] == good[i].first && values[1] == 2.5);
        clv_free(values);
    }
    static const struct {
        const char *text, *column, *part;
    } bad[] = {
        { "a b\n1 2\n", NULL, "columns (a, b) is called PA, PARANG... or ANGLE" },
        { "a b\n1 2\n", "c", "there is no column \"c\" among the 2 columns (a, b)" },
        { "a b\n1 2\n", "3", "no column \"3\"" },
        { "1 2\n3 4\n", "x", "2 columns (without names)" },
        { "a pa\n1 2\n3\n", NULL, "line 3 has 1 cells, but column 2 was asked for" },
        { "a pa\n1 2\n3 y\n", NULL, "line 3, cell 2: \"y\" is not a finite number" },
        { "pa\n", NULL, "has no numbers" },
        { "1 2\n3 4\n", NULL, "makes it a table" },
    };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        double *values;
        size_t count;
        EXPECT_FAIL(CLV_E_FORMAT, bad[i].part,
                    clv_angles_read(io_make("t.txt", bad[i].text, strlen(bad[i].text)),
                                    bad[i].column, &values, &count));
        assert_true(values == NULL && count == 0);
    }
    double *values;
    size_t count;
    EXPECT_FAIL(CLV_E_FORMAT, "an array has no column 1",
                clv_angles_read(io_data("rank1_c.npy"), "1", &values, &count));
}

/* NULs fill a field of NumPy's records up; before other characters they belong to the text, which no table may hold. */
static void texts_with_nul_are_refused(void **state)
{
    (void)state;
    static const char *const name[] = { "name" }, *const code[] = { "S3" };
    const char *kind;
    clv_csv_table *table;
    clv_text npy = { 0 };
    clv_npy_records_begin(&npy, name, code, 1, 2);
    clv_text_bytes(&npy, "ab\0xyz", 6);
    const char *path = io_make("t.npy", npy.data, npy.length);
    EXPECT_OK(clv_table_read(path, 0, &table, &kind));
    assert_int_equal(clv_csv_rows(table), 2);
    clv_csv_free(table);
    npy.data[npy.length - 2] = '\0';
    path = io_make("t.npy", npy.data, npy.length);
    EXPECT_FAIL(CLV_E_FORMAT, "row 2, column name: the text has a NUL byte",
                clv_table_read(path, 0, &table, &kind));
    clv_text_clear(&npy);
}

static void arrays_are_known_by_content(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t length;
    clv_file_array array;
    clv_fits_cards cards = { 0 };
    io_load(io_data("rank2_c.npy"), &bytes, &length);
    EXPECT_OK(clv_array_read(io_make("lies.fits", bytes, length), &array, &cards));
    io_expect_golden(&array, CLV_F32, 2, (const size_t[]){ 5, 3 });
    assert_int_equal(cards.count, 0);
    clv_file_array_clear(&array);
    free(bytes);

    static const struct {
        const char *start;
        size_t length;
        const char *part;
    } others[] = {
        { "", 0, "not supported (empty)" },
        { "hello\n", 6, "(text); expected NPY (.npy) or FITS (.fits, .fits.gz, .fits.fz)" },
        { "PK\x03\x04...", 7, "numpy.save" },
        { "\x89HDF\r\n\x1A\n", 8, "(HDF5)" },
        { "II*\0", 4, "(TIFF)" },
        { "\x00\x01\x02", 3, "(unknown)" },
        { "BZh9", 4, "bzip2 file: unpack it first" },
        { "\xFF\xFE"
          "1\0",
          4, "UTF-16" },
    };
    for (size_t i = 0; i < CLV_LEN(others); ++i)
        EXPECT_FAIL(
            CLV_E_FORMAT, others[i].part,
            clv_array_read(io_make("other", others[i].start, others[i].length), &array, NULL));
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_array_read(io_temp("absent"), &array, NULL));
    EXPECT_FAIL(CLV_E_IO, "is a directory", clv_array_read(test_temp_dir(), &array, NULL));
    assert_null(array.data);
}

/* ---- memory -------------------------------------------------------------------------------- */

static double *subject_values;
static size_t subject_count;
static clv_csv_table *subject_table;

static clv_status read_vector(void)
{
    const clv_status status = clv_vector_read(io_temp("many"), &subject_values, &subject_count);
    if (status) return status;
    clv_free(subject_values);
    subject_values = NULL;
    subject_count = 0;
    return CLV_OK;
}

static clv_status read_npy_vector(void)
{
    const clv_status status =
        clv_vector_read(io_data("rank1_c.npy"), &subject_values, &subject_count);
    if (status) return status;
    clv_free(subject_values);
    subject_values = NULL;
    subject_count = 0;
    return CLV_OK;
}

static clv_status read_table(void)
{
    const clv_status status = clv_csv_read(io_temp("table"), &subject_table);
    if (status) return status;
    clv_csv_free(subject_table);
    subject_table = NULL;
    return CLV_OK;
}

static int subject_is_empty(void)
{
    return !subject_values && !subject_count && !subject_table;
}

static clv_status write_table(void)
{
    clv_csv csv;
    fill_csv(&csv);
    const clv_status status = clv_csv_write(&csv, io_temp("memory/a.csv"));
    clv_csv_clear(&csv);
    return status;
}

static int nothing_written(void)
{
    return io_files_in(io_temp("memory")) == 0;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    io_make("many", "1 2 3 4 5 6 7 8 9 10 11 12", 26);
    io_make("table", "a,b\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n", 44);
    assert_true(io_without_memory(read_vector, subject_is_empty) >= 3);
    assert_true(io_without_memory(read_npy_vector, subject_is_empty) >= 3);
    assert_true(io_without_memory(read_table, subject_is_empty) >= 6);
    mkdir(io_temp("memory"), 0700);
    assert_true(io_without_memory(write_table, nothing_written) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_read_in_every_layout),
        cmocka_unit_test(bad_words_are_shown_with_their_place),
        cmocka_unit_test(tables_are_written_as_rfc_4180),
        cmocka_unit_test(the_decimal_point_is_a_point_everywhere),
        cmocka_unit_test(floats_are_as_short_as_they_can_be),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(tables_are_read_by_column_name),
        cmocka_unit_test(numbers_name_their_line),
        cmocka_unit_test(wrong_tables_are_errors),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(vectors_are_read_from_any_format),
        cmocka_unit_test(columns_of_tables_are_read),
        cmocka_unit_test(texts_with_nul_are_refused),
        cmocka_unit_test(arrays_are_known_by_content),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
