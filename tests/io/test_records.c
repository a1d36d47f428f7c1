/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/tables/any.c and any_records.c: tables in TrackMate's XML and in JSON; host/io/xml.c. */
#include "io_test.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/io/tables/any.h"
#include "host/io/xml.h"

#include <stdio.h>
#include <string.h>

/* Reads a table from a text, and expects it to be of a kind and to have the columns and rows `want`. */
static void expect_table(const char *text, const char *want_kind, const char *want)
{
    const char *kind;
    clv_csv_table *table;
    clv_text got = { 0 };
    size_t length;
    EXPECT_OK(clv_table_read(io_make("table", text, strlen(text)), 0, &table, &kind));
    assert_string_equal(kind, want_kind);
    const char *header = clv_csv_header(table, &length);
    clv_text_add(&got, "%.*s", (int)length, header);
    for (size_t row = 0; row < clv_csv_rows(table); ++row) {
        const char *fields = clv_csv_row(table, row, &length);
        clv_text_add(&got, "|%.*s", (int)length, fields);
    }
    assert_string_equal(clv_text_get(&got), want);
    clv_text_clear(&got);
    clv_csv_free(table);
}

static void expect_refused(const char *text, const char *part)
{
    const char *kind;
    clv_csv_table *table;
    EXPECT_FAIL(CLV_E_FORMAT, part,
                clv_table_read(io_make("table", text, strlen(text)), 0, &table, &kind));
    assert_null(table);
}

static void comments_are_no_spots(void **state)
{
    (void)state;
    expect_table("<?xml version=\"1.0\"?><a><Spot X=\"1\"/><!-- <Spot X=\"2\"/> -->"
                 "<![CDATA[<Spot X=\"3\"/>]]><Spot X=\"4\"/><!-- <Spot X=\"5\"/>",
                 "TrackMate XML", "X|1|4");
    expect_table("\xEF\xBB\xBF<a><Spot X=\"1\"/></a>", "TrackMate XML", "X|1");
    expect_refused("<a><!--\n\n--><Spot X=1/>",
                   "line 3: found \"1/>\", expected a value in quotes");
}

static void texts_of_xml_are_prepared(void **state)
{
    (void)state;
    static const char *const blanked[][2] = {
        { "a<!--b\nc-->d", "a     \n    d" }, { "<![CDATA[<!--]]>-->", "                -->" },
        { "<!---->e<!", "       e<!" },       { "f<!--g--", "f       " },
        { "<![CDATA[]]", "           " },     { "", "" },
    };
    for (size_t i = 0; i < CLV_LEN(blanked); ++i) {
        char text[100];
        snprintf(text, sizeof text, "%s", blanked[i][0]);
        clv_xml_blank(text, strlen(text));
        assert_string_equal(text, blanked[i][1]);
    }
    static const char *const decoded[][2] = {
        { "&#50;0&#x2e;2&#x2E;", "20.2." },
        { "&lt;&amp;amp;&quot;&apos;&gt;", "<&amp;\"'>" },
        { "&#181;m&#x1F600;", "\xC2\xB5m\xF0\x9F\x98\x80" },
        { "&#0;&#;&#x;&#xD800;&#x110000;&#99999999999;&#5",
          "&#0;&#;&#x;&#xD800;&#x110000;&#99999999999;&#5" },
        { "&#5x;&#a;&other;&", "&#5x;&#a;&other;&" },
    };
    for (size_t i = 0; i < CLV_LEN(decoded); ++i) {
        clv_text text = { 0 };
        clv_xml_decode(decoded[i][0], strlen(decoded[i][0]), &text);
        assert_string_equal(clv_text_get(&text), decoded[i][1]);
        clv_text_clear(&text);
    }
    expect_table("<Spot X=\"&#50;0.25\"/>", "TrackMate XML", "X|20.25");
}

static void json_is_read_in_every_form(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "[{\"a\":1,\"b\":\"x\\\"y\"},{\"a\":null,\"b\":true}]",
        "\xEF\xBB\xBF \n[{\"a\":1,\"b\":\"x\\\"y\"},{\"b\":true}]",
        "{\"a\":1,\"b\":\"x\\\"y\"}\n{\"b\":true}\n",
        "\xEF\xBB\xBF{\"a\":1,\"b\":\"x\\\"y\"} {\"a\":null,\"b\":true}",
        "{\"a\":{\"0\":1,\"1\":null},\"b\":{\"0\":\"x\\\"y\",\"1\":true}}",
        "{\"a\": [1, null], \"b\": [\"x\\\"y\", true]}\n",
        "\r\n{\"a\":[1,null],\"b\":[\"x\\\"y\",true]}",
        "{\"0\":{\"a\":1,\"b\":\"x\\\"y\"},\"1\":{\"a\":null,\"b\":true}}",
        "\n{ \"7\" : {\"a\":1,\"b\":\"x\\\"y\"},\n\"12\":{\"b\":true} }\n",
    };
    for (size_t i = 0; i < CLV_LEN(forms); ++i)
        expect_table(forms[i], "JSON", "a,b|1,\"x\"\"y\"|,true");
    expect_table("{\"a\":7}", "JSON", "a|7");
    expect_table("{\"0\":{\"0\":1,\"1\":2}}", "JSON", "0|1|2");
    expect_table("[{\"a\":\"\\\\u0000\"}]", "JSON", "a|\\u0000");
    expect_table(
        "[{\"fr\\u0061me\":1,\"a\\\"b\":2,\"\\u00b5m\":3,\"s\\/t\":4,\"t\\nu\":5},{\"s\\/t\":6}]",
        "JSON", "frame,\"a\"\"b\",\xC2\xB5m,s/t,\"t\nu\"|1,2,3,4,5|,,,6,");
    expect_table("{\"a\\tb\":{\"0\":1},\"\\u00b5\":{\"0\":2}}", "JSON", "a\tb,\xC2\xB5|1,2");
}

static void json_that_is_no_table_is_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        { "{}", "the table has no rows" },
        { "{\"a\":[]}", "the table has no rows" },
        { "{\"a\":[1],\"b\":[1,2]}", "the columns 'a' and 'b' differ in their rows; expected" },
        { "{\"a\":[1,2],\"b\":[1]}", "the columns 'a' and 'b' differ in their rows; expected" },
        { "{\"a\":{\"0\":1},\"b\":{\"1\":1}}", "the columns 'a' and 'b' differ in their rows" },
        { "{\"a\":{\"0\":1},\"b\":[1]}", "the columns 'a' and 'b' differ in their rows" },
        { "{\"a\":[1],\"a\":[1]}", "the key 'a' occurs twice" },
        { "{\"a\":[1],\"b\":1}", "expected [ or { before the values of a column" },
        { "{\"a\":[1]", "found \"\", expected , or }" },
        { "{\"a\":[1]} 5", "found \"5\", expected the end of the file" },
        { "{\"columns\":[\"a\"],\"data\":[[1]]}",
          "found \"[1]]}\", expected a number, a text, true, false or null (a table in JSON is a "
          "list of records" },
        { "{\"0\":{\"a\":1},\"1\":5}", "found \"5}\", expected an object, { ... }, for each row" },
        { "{\"0\":{\"a\":1}} 5", "found \"5\", expected the end of the file" },
        { "{\"0\":{\"a\":1}", "found \"\", expected , or }" },
        { "{\"0\":{\"a\":1,\"a\":2}}", "the key 'a' occurs twice" },
        { "{\"a\":1}\n5", "line 2: found \"5\", expected an object" },
        { "{\"a\":1,\"b\":{}}",
          "a list of records, records one after the other, or an object of columns or of rows)" },
        { "[{\"a\":\"b\\u0000c\"}]", "expected a text without the character NUL (\\u0000)" },
        { "[{\"b\\qc\":1}]", "invalid escape" },
        { "[{\"b\\u0000c\":1}]", "expected a text without the character NUL (\\u0000)" },
    };
    for (size_t i = 0; i < CLV_LEN(refused); ++i)
        expect_refused(refused[i][0], refused[i][1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_are_no_spots),
        cmocka_unit_test(texts_of_xml_are_prepared),
        cmocka_unit_test(json_is_read_in_every_form),
        cmocka_unit_test(json_that_is_no_table_is_refused),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
