/* SPDX-License-Identifier: Apache-2.0 */
/* Tests host/io/lines.c, output.c and npy_stream.c: reading texts and writing rows, byte by byte. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/io/formats/npy.h"
#include "host/io/formats/npy_stream.h"
#include "host/io/lines.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char sample[] = "\xEF\xBB\xBFone\n\ntwo\r\nthree\xE2\x80\xA8same\n\0nul\n   \nlast";
static const struct {
    const char *text;
    size_t length;
} wanted[] = { { "one", 3 },   { "", 0 },    { "two", 3 }, { "three\xE2\x80\xA8same", 12 },
               { "\0nul", 4 }, { "   ", 3 }, { "last", 4 } };

static void lines_do_not_depend_on_the_chunk(void **state)
{
    (void)state;
    const char *path = io_make("sample.txt", sample, sizeof sample - 1);
    for (size_t lines = 1; lines < 9; ++lines)
        for (size_t bytes = 1; bytes < 40; bytes += 3) {
            clv_lines l;
            size_t seen = 0;
            EXPECT_OK(clv_lines_open(&l, path));
            for (;;) {
                EXPECT_OK(clv_lines_next(&l, lines, bytes));
                if (!l.count) break;
                assert_int_equal(l.first, seen + 1);
                assert_true(l.count <= lines);
                for (size_t i = 0; i < l.count; ++i, ++seen) {
                    assert_true(seen < CLV_LEN(wanted));
                    assert_int_equal(l.lengths[i], wanted[seen].length);
                    assert_memory_equal(l.texts[i], wanted[seen].text, wanted[seen].length);
                }
            }
            assert_int_equal(seen, CLV_LEN(wanted));
            clv_lines_close(&l);
        }
}

static void many_lines_are_whole(void **state)
{
    (void)state;
    enum { LINES = 300000 };
    static const size_t chunks[] = { 1000, 1 << 18, 500000 }; /* the second is a read's size */
    const char *path = io_temp("many.txt");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < LINES; ++i)
        fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
    for (size_t c = 0; c < CLV_LEN(chunks); ++c) {
        const size_t bytes = chunks[c];
        clv_lines l;
        size_t seen = 0;
        EXPECT_OK(clv_lines_open(&l, path));
        for (;;) {
            EXPECT_OK(clv_lines_next(&l, SIZE_MAX, bytes));
            if (!l.count) break;
            for (size_t i = 0; i < l.count; ++i, ++seen) {
                char text[16];
                snprintf(text, sizeof text, "%zu", seen);
                assert_int_equal(l.lengths[i], strlen(text));
                assert_memory_equal(l.texts[i], text, l.lengths[i]);
            }
        }
        assert_int_equal(seen, LINES);
        assert_true(l.room <= 2 * (bytes + (1 << 18))); /* no more than a chunk is kept */
        clv_lines_close(&l);
    }
}

static void columns_are_picked(void **state)
{
    (void)state;
    static const char table[] = "a\tb c\td\n\t\t\nx\ty\n";
    static const char *const want[3][3] = { { "a", "", "x" },
                                            { "b c", "", "y" },
                                            { "d", "", NULL } };
    const char *path = io_make("table.tsv", table, sizeof table - 1);
    for (size_t column = 1; column <= 3; ++column) {
        clv_lines l;
        EXPECT_OK(clv_lines_open(&l, path));
        l.column = column;
        for (size_t i = 0; i < 3; ++i) {
            if (!want[column - 1][i]) {
                EXPECT_FAIL(CLV_E_FORMAT, "line 3 has no column 3", clv_lines_next(&l, 1, 100));
                break;
            }
            EXPECT_OK(clv_lines_next(&l, 1, 100));
            assert_int_equal(l.count, 1);
            assert_int_equal(l.lengths[0], strlen(want[column - 1][i]));
            assert_memory_equal(l.texts[0], want[column - 1][i], l.lengths[0]);
        }
        clv_lines_close(&l);
    }
}

static void nothing_and_what_is_no_file(void **state)
{
    (void)state;
    clv_lines l;
    EXPECT_OK(clv_lines_open(&l, io_make("empty.txt", "", 0)));
    EXPECT_OK(clv_lines_next(&l, 10, 10));
    assert_int_equal(l.count, 0);
    EXPECT_OK(clv_lines_next(&l, 10, 10));
    assert_int_equal(l.count, 0);
    clv_lines_close(&l);
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_lines_open(&l, io_temp("none.txt")));
    EXPECT_FAIL(CLV_E_IO, "is a directory", clv_lines_open(&l, test_temp_dir()));
}

static void *stop_soon(void *stop)
{
    clv_sleep(0.02);
    *(atomic_bool *)stop = true;
    return NULL;
}

static void a_wait_for_a_pipe_can_be_stopped(void **state)
{
    (void)state;
    clv_lines l;
    pthread_t thread;
    atomic_bool stop = false;
    const char *path = io_temp("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    FILE *writer = fopen(path, "r+"); /* so that neither end waits for the other */
    assert_non_null(writer);
    EXPECT_OK(clv_lines_open(&l, path));
    l.stop = &stop;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stop), 0);
    EXPECT_FAIL(CLV_E_CANCELLED, "interrupted", clv_lines_next(&l, 10, 10));
    pthread_join(thread, NULL);
    clv_lines_close(&l);
    fclose(writer);
}

static void long_lines_are_whole_or_errors(void **state)
{
    (void)state;
    const size_t length = 3 << 20;
    char *text = malloc(length + 3);
    memset(text, 'x', length);
    memcpy(text + length, "\ny", 2);
    clv_lines l;
    EXPECT_OK(clv_lines_open(&l, io_make("long.txt", text, length + 2)));
    EXPECT_OK(clv_lines_next(&l, 10, 1000));
    assert_int_equal(l.count, 1); /* beyond the bytes of a chunk: alone */
    assert_int_equal(l.lengths[0], length);
    EXPECT_OK(clv_lines_next(&l, 10, 1000));
    assert_int_equal(l.count, 1);
    assert_int_equal(l.first, 2);
    assert_int_equal(l.texts[0][0], 'y');
    clv_lines_close(&l);
    free(text);

    const char *huge = io_make("huge.txt", "x", 1); /* a hole: no disk is filled */
    assert_int_equal(truncate(huge, CLV_LINE_MAX + 2), 0);
    EXPECT_OK(clv_lines_open(&l, huge));
    EXPECT_FAIL(CLV_E_FORMAT, "line 1 is longer than", clv_lines_next(&l, 10, 1000));
    clv_lines_close(&l);
}

enum { WIDTH = 5, ROWS = 11 };

static clv_status write_matrix(const char *path)
{
    clv_npy_stream s = { 0 };
    float row[WIDTH];
    CLV_TRY(clv_npy_stream_open(&s, path, WIDTH));
    clv_status status = CLV_OK;
    for (size_t i = 0; i < ROWS && !status; ++i) {
        for (size_t k = 0; k < WIDTH; ++k)
            row[k] = (float)(i * WIDTH + k) / 7;
        status = clv_npy_stream_add(&s, row, 1);
    }
    if (!status) return clv_npy_stream_finish(&s);
    clv_npy_stream_abandon(&s);
    return status;
}

static void expect_matrix(const char *path)
{
    clv_file_array array;
    EXPECT_OK(clv_npy_read(path, &array));
    assert_true(array.type == CLV_F32 && array.rank == 2);
    assert_true(array.shape[0] == ROWS && array.shape[1] == WIDTH);
    for (size_t i = 0; i < ROWS * WIDTH; ++i)
        assert_true(((const float *)array.data)[i] == (float)i / 7);
    clv_file_array_clear(&array);
}

static void a_matrix_is_written_row_by_row(void **state)
{
    (void)state;
    const char *path = io_temp("matrix.npy");
    EXPECT_OK(write_matrix(path));
    expect_matrix(path);
    clv_npy_stream s = { 0 }; /* not a row: still a file */
    EXPECT_OK(clv_npy_stream_open(&s, path, 3));
    EXPECT_OK(clv_npy_stream_finish(&s));
    clv_file_array array;
    EXPECT_OK(clv_npy_read(path, &array));
    assert_true(array.rank == 2 && array.shape[0] == 0 && array.shape[1] == 3);
    clv_file_array_clear(&array);
    EXPECT_OK(clv_npy_stream_open(&s, path, 3)); /* what was there stays */
    clv_npy_stream_abandon(&s);
    EXPECT_OK(clv_npy_read(path, &array));
    clv_file_array_clear(&array);
}

static void standard_output_and_links_are_written(void **state)
{
    (void)state;
    const char *target = io_temp("target.npy"), *link = io_temp("link.npy");
    const char *caught = io_temp("caught.npy");
    EXPECT_OK(write_matrix(target));
    assert_int_equal(symlink(target, link), 0);
    EXPECT_OK(write_matrix(link));
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    expect_matrix(target);

    fflush(stdout); /* what the tests say must not end in the file */
    const int kept = dup(STDOUT_FILENO);
    assert_non_null(freopen(caught, "wb", stdout));
    const clv_status status = write_matrix("-");
    fflush(stdout);
    assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
    close(kept);
    EXPECT_OK(status);
    expect_matrix(caught);
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    const char *folder = io_temp("full");
    assert_int_equal(mkdir(folder, 0700), 0);
    char path[700];
    snprintf(path, sizeof path, "%s/matrix.npy", folder);
    io_limit_files(200);
    const clv_status status = write_matrix(path);
    io_limit_files(0);
    assert_int_equal(status, CLV_E_IO);
    assert_int_equal(io_files_in(folder), 0);
    EXPECT_FAIL(CLV_E_IO, "is a directory", write_matrix(folder));
    snprintf(path, sizeof path, "%s/none/matrix.npy", folder);
    EXPECT_FAIL(CLV_E_IO, "cannot create", write_matrix(path));
    EXPECT_FAIL(CLV_E_IO, "cannot write", write_matrix("/dev/full"));
}

static clv_status read_and_write(void)
{
    clv_lines l;
    CLV_TRY(clv_lines_open(&l, io_temp("sample.txt")));
    clv_status status = clv_lines_next(&l, 3, 10);
    clv_lines_close(&l);
    return status ? status : write_matrix(io_temp("memory.npy"));
}

static int nothing_left(void)
{
    return 1;
}

static void a_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(io_without_memory(read_and_write, nothing_left) >= 4);
}

/* Texts of `path` read as `kind` in chunks of so many lines, each followed by '|'. */
static char *texts_as(const char *path, clv_lines_kind kind, const char *name, size_t column,
                      size_t lines, size_t bytes, const char *chosen)
{
    static char all[4096];
    size_t used = 0;
    const char *found;
    clv_lines l;
    EXPECT_OK(clv_lines_open(&l, path));
    l.prefix = lines % 2 ? "> " : NULL;
    EXPECT_OK(clv_lines_choose(&l, kind, name, column, &found));
    assert_string_equal(found, chosen);
    for (;;) {
        EXPECT_OK(clv_lines_next(&l, lines, bytes));
        if (!l.count) break;
        for (size_t i = 0; i < l.count; ++i) {
            const size_t skip = lines % 2 ? 2 : 0;
            if (skip) assert_memory_equal(l.texts[i], "> ", 2);
            assert_true(used + l.lengths[i] + 2 < sizeof all);
            memcpy(all + used, l.texts[i] + skip, l.lengths[i] - skip);
            used += l.lengths[i] - skip;
            all[used++] = '|';
        }
    }
    all[used] = '\0';
    clv_lines_close(&l);
    return all;
}

static void tables_and_json_lines(void **state)
{
    static const char table[] =
        "\xEF\xBB\xBFid,\"the \"\"name\"\"\",text\r\n"
        "1,a,\"one, \"\"two\"\"\nthree\"\r\n\r\n2,5\" pipe,\"\"\n3,\"c\nd\"e\"f,last";
    static const char json[] =
        "\n{\"id\": 1, \"title\": \"a\", \"text\": \"one\\n\\u00e9\"}\n  \n"
        "{\"text\": \"\", \"title\": \"b\"}\r\n{\"title\": \"c\", \"text\": \"last\"}";
    (void)state;
    char tabs[sizeof table];
    memcpy(tabs, table, sizeof table);
    for (size_t i = 0; i < sizeof tabs; ++i)
        if (tabs[i] == ',') tabs[i] = '\t';
    const char *csv = io_make("table.csv", table, sizeof table - 1),
               *lines = io_temp("lines.jsonl");
    const char *tsv = io_temp("table.tsv");
    io_make("lines.jsonl", json, sizeof json - 1);
    io_make("table.tsv", tabs, sizeof tabs - 1);
    for (size_t most = 1; most < 5; ++most)
        for (size_t bytes = 1; bytes < 90; bytes += 7) {
            assert_string_equal(texts_as(csv, CLV_LINES_CSV, NULL, 0, most, bytes, "text"),
                                "one, \"two\"\nthree||last|");
            assert_string_equal(
                texts_as(csv, CLV_LINES_CSV, "the \"name\"", 0, most, bytes, "the \"name\""),
                "a|5\" pipe|c\nde\"f|");
            assert_string_equal(texts_as(csv, CLV_LINES_CSV, NULL, 1, most, bytes, "id"),
                                "id|1|2|3|");
            assert_string_equal(texts_as(tsv, CLV_LINES_TSV, NULL, 0, most, bytes, "text"),
                                "one\t \"two\"\nthree||last|");
            assert_string_equal(texts_as(lines, CLV_LINES_JSON, NULL, 0, most, bytes, "text"),
                                "one\n\xC3\xA9||last|");
            assert_string_equal(texts_as(lines, CLV_LINES_JSON, "title", 0, most, bytes, "title"),
                                "a|b|c|");
        }
    static const char odd[] = "n;text\n1;a\n"; /* accepted if the caller names the column */
    assert_string_equal(texts_as(io_make("odd.csv", odd, sizeof odd - 1), CLV_LINES_CSV, "n;text",
                                 0, 2, 90, "n;text"),
                        "1;a|");
}

static void missing_texts_are_empty(void **state)
{
    static const char json[] = "{\"id\": \"a\", \"text\": null}\n{\"id\": \"b\", \"text\": \"c\"}\n"
                               "{\"id\": \"d\", \"text\": null}\n";
    (void)state;
    const char *path = io_make("missing.jsonl", json, sizeof json - 1);
    assert_string_equal(texts_as(path, CLV_LINES_JSON, NULL, 0, 2, 90, "text"), "|c||");
    assert_string_equal(texts_as(path, CLV_LINES_JSON, "text", 0, 2, 90, "text"), "|c||");
}

static void utf_16_is_named(void **state)
{
    static const char little[] = "\xFF\xFEh\0i\0\n", big[] = "\xFE\xFF\0h\0i\0\n";
    static const clv_lines_kind kinds[] = { CLV_LINES_PLAIN, CLV_LINES_CSV, CLV_LINES_JSON };
    (void)state;
    for (size_t i = 0; i < 2 * CLV_LEN(kinds); ++i) {
        const char *found, *path = i % 2 ? io_make("big.txt", big, sizeof big - 1)
                                         : io_make("little.txt", little, sizeof little);
        clv_lines l;
        EXPECT_OK(clv_lines_open(&l, path));
        clv_status status = clv_lines_choose(&l, kinds[i / 2], NULL, 0, &found);
        if (!status) status = clv_lines_next(&l, 10, 100);
        EXPECT_FAIL(CLV_E_FORMAT, "the text is UTF-16, expected UTF-8", status);
        clv_lines_close(&l);
    }
}

static void broken_tables_and_json_lines(void **state)
{
    static const struct {
        clv_lines_kind kind;
        const char *text, *name;
        size_t column;
        const char *why;
    } cases[] = {
        { CLV_LINES_CSV, "a,b\n1,2\n", NULL, 0,
          "which column holds the texts; there are \"a\", \"b\"" },
        { CLV_LINES_CSV, "a,b\n1,2\n", "c", 0, "column \"c\" is missing; there are \"a\", \"b\"" },
        { CLV_LINES_CSV, "a,a\n1,2\n", "a", 0, "there more than once" },
        { CLV_LINES_CSV, "a,text\n1,2\n3\n", NULL, 0, "row 3 has no column 2" },
        { CLV_LINES_CSV, "a,text\n1,2\n3,\"4\n", NULL, 0,
          "row 3: a quoted field has no closing quote" },
        { CLV_LINES_CSV, "a\n", NULL, 2, "row 1 has no column 2" },
        { CLV_LINES_CSV, "text\n\"a, b\"\na, b\n", NULL, 0,
          "row 3 has 2 fields, but the header has 1" },
        { CLV_LINES_TSV, "n\ttext\n1\ta\tb\n", NULL, 0, "texts that contain a tab must be" },
        { CLV_LINES_CSV, "text,n,text\n1,2,3\n", NULL, 0, "\"text\" is there more than once" },
        { CLV_LINES_CSV, "n;text\n1;a\n", NULL, 0, "separated by something other than commas" },
        { CLV_LINES_TSV, "n,text\n1,a\n", NULL, 0, "separated by something other than tabs" },
        { CLV_LINES_CSV, "text\rx\ry\r", NULL, 0, "line 1 has a CR without an LF" },
        { CLV_LINES_TSV, "n\ttext\r1\ta\r", "text", 0, "line 1 has a CR without an LF" },
        { CLV_LINES_JSON, "{\"a\": \"x\", \"b\": \"y\"}\n", NULL, 0,
          "which member holds the texts; there are" },
        { CLV_LINES_JSON, "{\"text\": \"x\"}\n{\"a\": \"y\"}\n", NULL, 0,
          "line 2: the member \"text\" is missing" },
        { CLV_LINES_JSON, "{\"text\": \"x\"}\n{\"text\": 4}\n", NULL, 0,
          "is a whole number, expected a string" },
        { CLV_LINES_JSON, "{\"text\": \"x\"}\nplain\n", NULL, 0, "line 2 is not valid JSON" },
        { CLV_LINES_JSON, "\n{\"text\": \"x\"}\n \nplain\n", NULL, 0, "line 4 is not valid JSON" },
        { CLV_LINES_JSON, "[1]\n", NULL, 0, "line 1: not a JSON object" },
    };
    (void)state;
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        const char *found;
        clv_lines l;
        EXPECT_OK(clv_lines_open(&l, io_make("broken.txt", cases[i].text, strlen(cases[i].text))));
        clv_status status =
            clv_lines_choose(&l, cases[i].kind, cases[i].name, cases[i].column, &found);
        while (!status && !(status = clv_lines_next(&l, 10, 100)))
            if (!l.count) fail_msg("case %zu: nothing is wrong with it", i);
        EXPECT_FAIL(CLV_E_FORMAT, cases[i].why, status);
        clv_lines_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_do_not_depend_on_the_chunk),
        cmocka_unit_test(tables_and_json_lines),
        cmocka_unit_test(missing_texts_are_empty),
        cmocka_unit_test(utf_16_is_named),
        cmocka_unit_test(broken_tables_and_json_lines),
        cmocka_unit_test(many_lines_are_whole),
        cmocka_unit_test(columns_are_picked),
        cmocka_unit_test(nothing_and_what_is_no_file),
        cmocka_unit_test(a_wait_for_a_pipe_can_be_stopped),
        cmocka_unit_test(long_lines_are_whole_or_errors),
        cmocka_unit_test(a_matrix_is_written_row_by_row),
        cmocka_unit_test(standard_output_and_links_are_written),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
