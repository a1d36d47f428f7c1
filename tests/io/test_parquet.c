/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet files: the bytes that are written, what is read back, damage, and forms that are refused. */
#include "data.h"
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/lines.h"
#include "host/io/tables/parquet.h"

#include <cleave/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "frame", "y", "x_um", "particle", "name" };
static const char *const codes[] = { "u4", "f4", "f8", "i8", "S3" };

/* Two groups of rows, of two records and of one: 0, 1.5, 0.25, -1, "ab" | 1, -2, 1e300, 7, "" |
 * 4294967295, 0.1f, -0, 2^40, "xyz". pyarrow 26 and pandas 3 read these numbers from it. */
static const unsigned char golden[] = {
#include "parquet_golden.inc"
};

static void write_golden(clv_text *out)
{
    enum { ROW = 4 + 4 + 8 + 8 + 3 };
    static const uint32_t frame[] = { 0, 1, 4294967295u };
    static const float y[] = { 1.5f, -2, 0.1f };
    static const double x[] = { 0.25, 1e300, -0.0 };
    static const int64_t particle[] = { -1, 7, (int64_t)1 << 40 };
    static const char name[][4] = { "ab", "", "xyz" };
    char rows[3][ROW];
    clv_parquet file;
    for (int i = 0; i < 3; ++i) {
        memcpy(rows[i], &frame[i], 4), memcpy(rows[i] + 4, &y[i], 4);
        memcpy(rows[i] + 8, &x[i], 8), memcpy(rows[i] + 16, &particle[i], 8);
        memcpy(rows[i] + 24, name[i], 3);
    }
    clv_parquet_begin(&file, names, codes, CLV_LEN(names), out);
    clv_parquet_add(&file, rows, 2, out);
    clv_parquet_add(&file, rows[2], 0, out);
    clv_parquet_add(&file, rows[2], 1, out);
    clv_parquet_end(&file, out);
    assert_false(out->failed);
}

static void files_are_the_golden_one(void **unused)
{
    (void)unused;
    clv_text out = { 0 };
    write_golden(&out);
    assert_int_equal(out.length, sizeof golden);
    assert_memory_equal(out.data, golden, sizeof golden);
    clv_text_clear(&out);
}

static clv_status read(const void *data, size_t length, clv_text *text)
{
    char(*found)[3];
    const clv_status status = clv_parquet_records("a.parquet", data, length, text, &found);
    if (!status) assert_true(found && (strlen(found[0]) == 2 || !*found[0]));
    if (!status && data == golden) assert_string_equal(found[0], "u4");
    clv_free(found);
    return status;
}

static void files_are_read_back(void **unused)
{
    (void)unused;
    clv_text text = { 0 }, out = { 0 };
    EXPECT_OK(read(golden, sizeof golden, &text));
    assert_string_equal(clv_text_get(&text), "frame,y,x_um,particle,name\n"
                                             "0,1.5,0.25,-1,ab\n"
                                             "1,-2,1e+300,7,\"\"\n"
                                             "4294967295,0.1,-0,1099511627776,xyz\n");
    clv_text_clear(&text);
    clv_parquet file; /* without rows */
    clv_parquet_begin(&file, names, codes, 2, &out);
    clv_parquet_end(&file, &out);
    EXPECT_OK(read(out.data, out.length, &text));
    assert_string_equal(clv_text_get(&text), "frame,y\n");
    clv_text_clear(&text), clv_text_clear(&out);
}

/* A file with one column of texts, `width` bytes each, filled up with NULs. */
static void write_texts(const char *texts, size_t rows, size_t width, clv_text *out)
{
    char code[24];
    const char *const name[] = { "text" }, *const its_code[] = { code };
    clv_parquet file;
    snprintf(code, sizeof code, "S%zu", width);
    clv_parquet_begin(&file, name, its_code, 1, out);
    clv_parquet_add(&file, texts, rows, out);
    clv_parquet_end(&file, out);
    assert_false(out->failed);
}

static clv_status read_texts(const clv_text *file, clv_text *table)
{
    char(*found)[3];
    const clv_status status =
        clv_parquet_records("a.parquet", file->data, file->length, table, &found);
    if (!status) assert_string_equal(found[0], "");
    clv_free(found);
    return status;
}

static void texts_of_blanks_are_rows(void **unused)
{
    (void)unused;
    static const char texts[5][3] = { "a", " ", "", " \t", "b" };
    static const size_t lengths[] = { 1, 1, 0, 2, 1 };
    const char *chosen;
    clv_text out = { 0 }, table = { 0 };
    clv_lines lines = { .descriptor = -1 };
    write_texts(texts[0], 5, 3, &out);
    EXPECT_OK(read_texts(&out, &table));
    assert_string_equal(clv_text_get(&table), "text\na\n\" \"\n\"\"\n\" \t\"\nb\n");
    clv_lines_take(&lines, "a.parquet", table.data, table.length);
    EXPECT_OK(clv_lines_choose(&lines, CLV_LINES_CSV, "text", 0, &chosen));
    EXPECT_OK(clv_lines_next(&lines, 100, 1000));
    assert_int_equal(lines.count, 5);
    for (size_t i = 0; i < 5; ++i) {
        assert_int_equal(lines.lengths[i], lengths[i]);
        assert_memory_equal(lines.texts[i], texts[i], lengths[i]);
    }
    clv_lines_close(&lines);
    clv_text_clear(&out);
}

/* One text of 2 MiB among short ones: as records of equal length they would take 140 times the file. */
static void texts_differ_in_length(void **unused)
{
    (void)unused;
    enum { ROWS = 140, LONG = 2 << 20 };
    char *texts = calloc(ROWS, LONG);
    clv_text out = { 0 }, table = { 0 };
    assert_non_null(texts);
    memset(texts, 'x', LONG);
    for (size_t i = 1; i < ROWS; ++i)
        texts[i * LONG] = 'y';
    write_texts(texts, ROWS, LONG, &out);
    EXPECT_OK(read_texts(&out, &table));
    assert_int_equal(table.length, 5 + LONG + 1 + 2 * (ROWS - 1));
    assert_memory_equal(table.data, "text\nx", 6);
    assert_memory_equal(table.data + 5 + LONG - 1, "x\ny\ny\n", 6);
    free(texts);
    clv_text_clear(&out), clv_text_clear(&table);
}

static void texts_with_nul_are_refused(void **unused)
{
    (void)unused;
    unsigned char copy[sizeof golden];
    memcpy(copy, golden, sizeof copy);
    size_t changed = 0;
    for (size_t i = 0; i + 7 <= sizeof copy; ++i)
        if (memcmp(copy + i, "\3\0\0\0xyz", 7) == 0) copy[i + 5] = '\0', ++changed;
    assert_int_equal(changed, 1);
    clv_text text = { 0 };
    EXPECT_FAIL(CLV_E_FORMAT, "row 3, column name: the text has a NUL byte",
                read(copy, sizeof copy, &text));
    clv_text_clear(&text);
}

/* Every file that differs in one byte, or ends early, is read or refused, and nothing else happens. */
static void damage_is_refused(void **unused)
{
    (void)unused;
    enum { EXACT = 64 };
    size_t refused = 0;
    for (size_t length = 0; length < sizeof golden; ++length) {
        clv_text text = { 0 };
        unsigned char *copy =
            clv_alloc(length + 1, 1); /* a sanitizer sees what is read beyond it */
        memcpy(copy, golden, length);
        assert_int_equal(read(copy, length, &text), CLV_E_FORMAT);
        clv_free(copy), clv_text_clear(&text);
    }
    static const unsigned char flips[] = { 1, 0x80, 0xFF, 0x10, 0x0F };
    for (size_t at = 0; at < sizeof golden; ++at)
        for (size_t f = 0; f < CLV_LEN(flips); ++f) {
            clv_text text = { 0 };
            unsigned char *copy = clv_alloc(sizeof golden, 1);
            memcpy(copy, golden, sizeof golden);
            copy[at] ^= flips[f];
            const clv_status status = read(copy, sizeof golden, &text);
            assert_true(!status || status == CLV_E_FORMAT || status == CLV_E_MEMORY);
            refused += status != CLV_OK;
            clv_free(copy), clv_text_clear(&text);
        }
    assert_true(refused > EXACT);
}

static void other_forms_are_named(void **unused)
{
    (void)unused;
    clv_text text = { 0 };
    unsigned char copy[sizeof golden];
    memcpy(copy, golden, sizeof copy);
    /* the schema's first column: type INT32, then required; 0x25 0x00 becomes repeated, 0x25 0x04 */
    size_t at = 0;
    for (size_t i = sizeof copy - 11; i > 4 && !at; --i)
        if (memcmp(copy + i,
                   "\x15\x02\x25\x00\x18\x05"
                   "frame",
                   11) == 0)
            at = i;
    assert_true(at);
    copy[at + 3] = 4;
    assert_int_equal(read(copy, sizeof copy, &text), CLV_E_FORMAT);
    assert_non_null(strstr(clv_error_message(), "lists"));
    assert_non_null(strstr(clv_error_message(), "read_parquet"));
    clv_text_clear(&text);
}

/* ---- files of pandas and pyarrow (tests/data/io/make_parquet.py) ------------------------------- */

static const char *const forms[] = {
    "pandas",  "none_1", "snappy_2_dictionary", "gzip_1_dictionary", "zstd_2", "overflow",
    "nothing", "empty"
};

static char *bytes_of(const char *name, const char *ending, size_t *length)
{
    char path[100];
    snprintf(path, sizeof path, "io/parquet/%s.%s", name, ending);
    return test_data_read(path, length);
}

static void files_of_others_are_read(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < CLV_LEN(forms); ++i) {
        size_t length, wanted_length;
        char *data = bytes_of(forms[i], "parquet", &length);
        char *wanted = bytes_of(forms[i], "csv", &wanted_length);
        clv_text text = { 0 };
        const clv_status status = read(data, length, &text);
        if (status && strstr(clv_error_message(), "built without")) {
            printf("SKIPPED: %s: %s\n", forms[i], clv_error_message());
        } else {
            if (status) fail_msg("%s: %s", forms[i], clv_error_message());
            if (text.length != wanted_length || memcmp(text.data, wanted, wanted_length) != 0)
                fail_msg("%s is read as\n%s\nexpected\n%s", forms[i], clv_text_get(&text), wanted);
        }
        clv_text_clear(&text);
        clv_free(data), clv_free(wanted);
    }
}

static void keep_line(clv_log_level level, const char *line, void *user)
{
    (void)level;
    snprintf(user, 200, "%s", line);
}

static void missing_texts_are_told(void **unused)
{
    (void)unused;
    static const char *const wanted[][2] = {
        { "none_1", "a.parquet: 15 missing texts in its columns are read as empty "
                    "texts" }, /* 6 and 9 in two columns */
        { "nothing", "a.parquet: 3 missing texts in its columns are read as empty texts" },
        { "pandas", "" },
    };
    for (size_t i = 0; i < CLV_LEN(wanted); ++i) {
        size_t length;
        char *data = bytes_of(wanted[i][0], "parquet", &length), line[200] = "";
        clv_text text = { 0 };
        clv_log_set(CLV_LOG_WARN, keep_line, line);
        EXPECT_OK(read(data, length, &text));
        clv_log_set(CLV_LOG_NONE, NULL, NULL);
        assert_string_equal(line, wanted[i][1]);
        clv_text_clear(&text), clv_free(data);
    }
}

static void forms_that_are_not_read_are_named(void **unused)
{
    (void)unused;
    static const char *const refused[][2] = { { "refused_list", "lists, or columns" },
                                              { "refused_brotli", "packed by something else" },
                                              { "refused_delta", "another encoding" } };
    for (size_t i = 0; i < CLV_LEN(refused); ++i) {
        size_t length;
        char *data = bytes_of(refused[i][0], "parquet", &length);
        clv_text text = { 0 };
        EXPECT_FAIL(CLV_E_FORMAT, refused[i][1], read(data, length, &text));
        clv_text_clear(&text);
        clv_free(data);
    }
}

/* Does the same as damage_is_refused for pages with levels, dictionaries and packed bytes. */
static void damage_of_others_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < CLV_LEN(forms); ++i) {
        size_t length, refused = 0;
        char *data = bytes_of(forms[i], "parquet", &length);
        for (size_t at = 0; at < length; at += 3) {
            clv_text text = { 0 };
            char *copy = clv_alloc(length, 1);
            memcpy(copy, data, length);
            copy[at] ^= (char)(1 << at % 8);
            const clv_status status = read(copy, length, &text);
            assert_true(!status || status == CLV_E_FORMAT || status == CLV_E_MEMORY);
            refused += status != CLV_OK;
            clv_free(copy), clv_text_clear(&text);
        }
        assert_true(refused > length / 100);
        clv_free(data);
    }
}

static void memory_may_run_out(void **unused)
{
    (void)unused;
    clv_status status;
    unsigned long k = 1;
    do {
        clv_text text = { 0 };
        clv_alloc_fail_at(k++);
        status = read(golden, sizeof golden, &text);
        clv_alloc_fail_at(0);
        if (!status && text.failed) status = CLV_E_MEMORY;
        assert_true(!status || status == CLV_E_MEMORY);
        clv_text_clear(&text);
    } while (status && k < 200);
    assert_int_equal(status, CLV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_the_golden_one),
        cmocka_unit_test(files_are_read_back),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(other_forms_are_named),
        cmocka_unit_test(files_of_others_are_read),
        cmocka_unit_test(missing_texts_are_told),
        cmocka_unit_test(forms_that_are_not_read_are_named),
        cmocka_unit_test(damage_of_others_is_refused),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(texts_of_blanks_are_rows),
        cmocka_unit_test(texts_differ_in_length),
        cmocka_unit_test(texts_with_nul_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
