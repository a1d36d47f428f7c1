/* SPDX-License-Identifier: Apache-2.0 */
/* Notes that are kept in a file, and notes for this process only. */
#include "runtime/record/notes.h"

#include "test.h"

#include <string.h>

static void open_notes(clv_notes *notes)
{
    clv_notes_open(notes, test_temp_dir(), "notes.txt", "notes of a test");
}

static void expect(clv_notes *notes, const char *key, const char *value)
{
    char got[40] = "";
    assert_int_equal(clv_notes_get(notes, key, got, sizeof got), value != NULL);
    assert_string_equal(got, value ? value : "");
}

static void notes_are_read_again(void **state)
{
    clv_notes notes;
    open_notes(&notes);
    clv_notes_set(&notes, "form of a product", "wide  # 2 ms");
    clv_notes_close(&notes);
    open_notes(&notes);
    expect(&notes, "form of a product", "wide  # 2 ms");
    expect(&notes, "form", NULL);
    clv_notes_close(&notes);
    (void)state;
}

/* A guess of this process neither reaches later processes nor replaces what the file says. */
static void a_note_for_this_process_is_not_written(void **state)
{
    clv_notes notes, other;
    open_notes(&notes);
    clv_notes_set_here(&notes, "timed meanwhile", "guess");
    clv_notes_set_here(&notes, "not timed", "guess");
    open_notes(&other);
    clv_notes_set(&other, "timed meanwhile", "narrow  # 1 ms");
    clv_notes_close(&other);
    clv_notes_set(&notes, "another", "value");
    clv_notes_save(&notes);
    expect(&notes, "timed meanwhile", "guess");
    clv_notes_close(&notes);

    open_notes(&notes);
    expect(&notes, "timed meanwhile", "narrow  # 1 ms");
    expect(&notes, "not timed", NULL);
    expect(&notes, "another", "value");
    clv_notes_close(&notes);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_read_again),
        cmocka_unit_test(a_note_for_this_process_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
