/* SPDX-License-Identifier: Apache-2.0 */
/* base/: numbers, sizes, messages, files. */
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void sizes_are_read_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = { { "0", 0 },
                 { "4096", 4096 },
                 { "256M", 256000000 },
                 { "1.5G", 1500000000 },
                 { "2GiB", 2147483648 },
                 { "800 MB", 800000000 },
                 { "1e3k", 1000000 } };
    for (size_t i = 0; i < CLV_LEN(good); ++i) {
        uint64_t got = 1;
        assert_true(clv_parse_bytes(good[i].text, &got));
        assert_int_equal(got, good[i].bytes);
    }
    static const char *const bad[] = { "",    "M",    "-1",   "1X",  "nan",
                                       "inf", "1e30", "0x10", "1 2", "5%" };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        uint64_t got = 77;
        assert_false(clv_parse_bytes(bad[i], &got));
        assert_int_equal(got, 77);
    }
    double f = 0;
    assert_true(clv_parse_percent("80%", &f) && fabs(f - 0.8) < 1e-15);
    assert_false(clv_parse_percent("0%", &f) || clv_parse_percent("101%", &f) ||
                 clv_parse_percent("80", &f));
    /* so little memory that it would count as no limit */
    assert_false(clv_parse_percent("1e-323%", &f) || clv_parse_percent("1e-13%", &f));
    assert_true(clv_parse_percent("1e-5%", &f) && f > 0);
}

static void numbers_are_read_strictly(void **state)
{
    (void)state;
    double d;
    uint64_t u;
    int64_t i;
    assert_true(clv_parse_double("-1.25e-3", &d) && d == -1.25e-3);
    assert_true(clv_parse_double(".5", &d) && d == 0.5);
    assert_false(clv_parse_double("1.5x", &d) || clv_parse_double("", &d) ||
                 clv_parse_double("0x1p3", &d) || clv_parse_double("1e999", &d));
    assert_true(clv_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    assert_false(clv_parse_u64("18446744073709551616", &u) || clv_parse_u64("-1", &u));
    assert_true(clv_parse_i64("-42", &i) && i == -42);
}

static void numbers_have_a_point_in_every_locale(void **state)
{
    (void)state;
    char seconds[24], bytes[16], number[16];
    double d;
    clv_text text = { 0 };
    test_comma();
    snprintf(number, sizeof number, "%.1f", 1.5);
    assert_string_equal(number, "1,5"); /* else this test would prove nothing */
    clv_text_add(&text, "%a %.1f", 1.5, 2.5);
    clv_format(number, sizeof number, "%g", 0.25);
    clv_format_seconds(1.25, seconds), clv_format_bytes(1250, bytes);
    const bool read = clv_parse_double("1.5", &d) && d == 1.5;
    EXPECT_FAIL(CLV_E_ARGUMENT, "is 1.5", clv_fail(CLV_E_ARGUMENT, "the factor is %g", 1.5));
    test_point();
    assert_string_equal(clv_text_get(&text), "0x1.8p+0 2.5");
    clv_text_clear(&text);
    assert_string_equal(number, "0.25");
    assert_string_equal(seconds, "1.25 s");
    assert_string_equal(bytes, "1.25 kB");
    assert_true(read);
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    size_t out = 5;
    assert_false(clv_size_mul(SIZE_MAX, 2, &out) || clv_size_add(SIZE_MAX, 1, &out));
    assert_int_equal(out, 5);
    assert_null(clv_alloc(SIZE_MAX, 2));
}

static void an_allocation_can_be_made_to_fail(void **state)
{
    (void)state;
    clv_alloc_fail_at(2);
    void *first = clv_alloc(1, 1), *second = clv_alloc(1, 1), *third = clv_alloc(1, 1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_int_equal(clv_alloc_calls(), 3);
    clv_alloc_fail_at(0);
    clv_free(first), clv_free(third);
}

static void figures_are_written_for_people(void **state)
{
    (void)state;
    char s[24];
    assert_string_equal(clv_format_bytes(512, s), "512 B");
    assert_string_equal(clv_format_bytes(1610612736, s), "1.61 GB");
    assert_string_equal(clv_format_bytes(999600, s), "1 MB");
    assert_string_equal(clv_format_seconds(0.01504, s), "15 ms");
    assert_string_equal(clv_format_seconds(125, s), "2 min 05 s");
}

static void strings_are_cut_between_characters(void **state)
{
    (void)state;
    char out[5];
    clv_copy_string(out, sizeof out, "abc\xc3\xa9");
    assert_string_equal(out, "abc");
    clv_copy_string(out, sizeof out, "abcd");
    assert_string_equal(out, "abcd");
}

/* Waits that end in time, or a little late, get no extra time; a stop of the process does. */
static void a_deadline_stands_still_while_nobody_runs(void **state)
{
    (void)state;
    double now = 1000, wait;
    clv_deadline deadline = clv_deadline_after(now, 10);
    for (size_t i = 0; (wait = clv_deadline_wait(&deadline, now)) > 0; ++i) {
        assert_true(wait <= 0.1);
        now += wait + (i % 3 ? 0 : 0.05);
    }
    assert_true(now >= 1010 && now < 1010.2);

    deadline = clv_deadline_after(now = 50, 10);
    now += clv_deadline_wait(&deadline, now);
    now += clv_deadline_wait(&deadline, now) + 3600; /* Ctrl-Z, fg */
    while ((wait = clv_deadline_wait(&deadline, now)) > 0)
        now += wait;
    assert_true(now >= 3660 && now < 3660.2);

    deadline = clv_deadline_after(now, 0);
    assert_true(clv_deadline_wait(&deadline, now) <= 0);
    deadline = clv_deadline_after(now, INFINITY);
    assert_true(clv_deadline_wait(&deadline, now) > 0);
    assert_true(clv_deadline_wait(&deadline, now + 1e9) > 0);
}

static void an_error_travels_between_threads(void **state)
{
    (void)state;
    clv_error error = { 0 };
    clv_error_take(&error, clv_fail_detail(CLV_E_BUILD, "line 1\nline 2", "kernel %s", "k"));
    (void)clv_fail(CLV_E_IO, "something else");
    assert_string_equal(clv_error_detail(), "");
    assert_int_equal(clv_error_give(&error), CLV_E_BUILD);
    assert_string_equal(clv_error_message(), "kernel k");
    assert_string_equal(clv_error_detail(), "line 1\nline 2");
    clv_error_clear(&error);
}

static void a_long_message_keeps_its_reason(void **state)
{
    (void)state;
    static const char *const fills[] = { "a", "\xC3\xA4", "\x01", "\xF0\x9F\x98\x80" };
    for (size_t i = 0; i < CLV_LEN(fills); ++i)
        for (size_t count = 80; count < 1500; count += 7) {
            clv_text name = { 0 };
            while (name.length < count)
                clv_text_add(&name, "%s", fills[i]);
            EXPECT_FAIL(CLV_E_IO, ": cannot open: no such file",
                        clv_fail(CLV_E_IO, "%s: cannot open: no such file", clv_text_get(&name)));
            const char *said = clv_error_message();
            assert_true(clv_is_visible(said, strlen(said)));
            assert_memory_equal(said, i == 2 ? "\\x01" : fills[i], strlen(fills[i]));
            assert_string_equal(said + strlen(said) - 8, "uch file");
            if (i == 0) assert_int_equal(strlen(said), CLV_MIN(name.length + 27, (size_t)511));
            clv_text_clear(&name);
        }
}

static void sha256_is_sha256(void **state)
{
    (void)state;
    char hex[65];
    const clv_digest digest = clv_sha256("abc", 3); /* FIPS 180-2, appendix B.1 */
    clv_digest_hex(&digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void files_are_complete_or_absent(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/out.txt", test_temp_dir());
    EXPECT_OK(clv_file_write(path, "first", 5));
    char *temporary;
    EXPECT_OK(clv_file_begin(path, &temporary));
    clv_file_abandon(temporary);
    char *data;
    size_t length;
    EXPECT_OK(clv_file_read(path, 100, &data, &length));
    assert_int_equal(length, 5);
    assert_string_equal(data, "first");
    clv_free(data);
    EXPECT_FAIL(CLV_E_FORMAT, "larger than the 3 bytes", clv_file_read(path, 3, &data, &length));
    EXPECT_FAIL(CLV_E_IO, "No such file", clv_file_read("/nonexistent/x", 3, &data, &length));
    EXPECT_FAIL(CLV_E_IO, "/nonexistent/x", clv_file_write("/nonexistent/x", "a", 1));
}

/* What is written bit by bit goes where a link leads, and takes the place of files alone. */
static void links_and_devices_stay(void **state)
{
    (void)state;
    char path[300], link[300], pipe[300], *temporary, *data;
    size_t length;
    struct stat info;
    snprintf(path, sizeof path, "%s/target.txt", test_temp_dir());
    snprintf(link, sizeof link, "%s/to-target.txt", test_temp_dir());
    snprintf(pipe, sizeof pipe, "%s/pipe", test_temp_dir());
    EXPECT_OK(clv_file_write(path, "first", 5));
    assert_int_equal(symlink("target.txt", link), 0);
    EXPECT_OK(clv_file_begin(link, &temporary));
    EXPECT_OK(clv_file_write(temporary, "second", 6));
    EXPECT_OK(clv_file_publish(temporary, link));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    EXPECT_OK(clv_file_read(path, 100, &data, &length));
    assert_string_equal(data, "second");
    clv_free(data);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    EXPECT_FAIL(CLV_E_IO, "is a pipe or device", clv_file_begin(pipe, &temporary));
    EXPECT_FAIL(CLV_E_IO, "is a directory", clv_file_begin(test_temp_dir(), &temporary));
    assert_null(temporary);
}

static void a_private_directory_is_private(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/a/b", test_temp_dir());
    EXPECT_OK(clv_dir_make_private(path));
    EXPECT_OK(clv_dir_make_private(path));
    assert_int_equal(chmod(path, 0777), 0);
    EXPECT_FAIL(CLV_E_IO, "other users may write", clv_dir_make_private(path));
    char link[320];
    snprintf(link, sizeof link, "%s-link", path);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(symlink(path, link), 0);
    EXPECT_FAIL(CLV_E_IO, "a link", clv_dir_make_private(link));
}

static void json_keeps_order_and_types(void **state)
{
    (void)state;
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "z", "text");
    clv_json_add_number(root, "not finite", NAN);
    clv_json_add_bytes(root, "large", UINT64_MAX);
    clv_json *list = clv_json_add_array(root, "list");
    clv_json_add_int(list, NULL, 7);
    clv_json_add_bool(list, NULL, true);
    char *text = clv_json_text(root, true);
    assert_string_equal(text, "{\"z\":\"text\",\"not finite\":null,"
                              "\"large\":\"18446744073709551615\",\"list\":[7,true]}");
    clv_json *again;
    EXPECT_OK(clv_json_parse("test", text, strlen(text), &again));
    assert_int_equal(clv_json_int(clv_json_at(clv_json_get(again, "list"), 0), 0), 7);
    assert_int_equal(clv_json_int(clv_json_get(again, "nowhere"), -3), -3);
    clv_json_free(again);
    clv_json_text_free(text);
    clv_json_free(root);
    EXPECT_FAIL(CLV_E_FORMAT, "line 1", clv_json_parse("test", "{\"a\":1,\"a\":2}", 13, &again));
}

static bool no_memory; /* for jansson */

static void *may_fail(size_t bytes)
{
    if (!no_memory) return malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

/* Tells whether clv_json_text can write the value, and frees its text. */
static bool has_text(const clv_json *root)
{
    char *text = clv_json_text(root, true);
    clv_json_text_free(text);
    return text != NULL;
}

static clv_json *lacking_tree(void)
{
    clv_json *root = clv_json_object();
    clv_json *list = clv_json_add_array(root, "list");
    no_memory = true;
    clv_json_add_int(list, NULL, 1);
    no_memory = false;
    return root;
}

static void json_that_lacks_something_has_no_text(void **state)
{
    (void)state;
    json_set_alloc_funcs(may_fail, free);
    clv_json *whole = clv_json_object(), *lacking = lacking_tree(), *copies = clv_json_object();
    clv_json_add_int(clv_json_get(lacking, "list") ? whole : NULL, "one", 1);
    assert_true(has_text(whole));
    assert_false(has_text(lacking));
    assert_false(has_text(lacking)); /* for good */
    clv_json_add_copy(copies, "whole", whole);
    assert_true(has_text(copies));
    clv_json_add_copy(copies, "lacking", lacking);
    assert_false(has_text(copies));
    clv_json_free(copies);
    clv_json_add(whole, "lacking", lacking);
    assert_false(has_text(whole));
    clv_json_free(whole);
    clv_json *many[80]; /* more than it keeps in mind: no text at all, rather than one that lacks */
    for (size_t i = 0; i < CLV_LEN(many); ++i) {
        whole = clv_json_object();
        assert_true(has_text(whole) == (i <= 64));
        clv_json_free(whole);
        many[i] = lacking_tree();
        assert_false(has_text(many[i]));
    }
    for (size_t i = 0; i < CLV_LEN(many); ++i)
        clv_json_free(many[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_strictly),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(an_allocation_can_be_made_to_fail),
        cmocka_unit_test(figures_are_written_for_people),
        cmocka_unit_test(strings_are_cut_between_characters),
        cmocka_unit_test(a_deadline_stands_still_while_nobody_runs),
        cmocka_unit_test(an_error_travels_between_threads),
        cmocka_unit_test(a_long_message_keeps_its_reason),
        cmocka_unit_test(sha256_is_sha256),
        cmocka_unit_test(files_are_complete_or_absent),
        cmocka_unit_test(links_and_devices_stay),
        cmocka_unit_test(a_private_directory_is_private),
        cmocka_unit_test(json_keeps_order_and_types),
        cmocka_unit_test(json_that_lacks_something_has_no_text), /* the last: no text after it */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
