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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_are_no_spots),
        cmocka_unit_test(texts_of_xml_are_prepared),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
