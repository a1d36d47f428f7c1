/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs leave behind about a device's speed. */
#include "runtime/job/history.h"

#include "test.h"

static const clv_job job = { .size = sizeof(clv_job), .name = "sum", .signature = "10x10" };

static clv_job_speed after(clv_notes *notes, double units_per_s)
{
    clv_job_speed found;
    clv_history_put(notes, &job, "card", &(clv_job_speed){ units_per_s, 1e-3, 0.5 });
    assert_true(clv_history_get(notes, &job, "card", &found));
    return found;
}

static void near(double got, double expected)
{
    assert_true(got > 0.999 * expected && got < 1.001 * expected);
}

static void speeds_blend(void **state)
{
    clv_notes notes;
    clv_job_speed found;
    clv_notes_open(&notes, "", "speeds.txt", "");
    assert_false(clv_history_get(&notes, &job, "card", &found));
    near(after(&notes, 100).units_per_s, 100);
    near(after(&notes, 120).units_per_s, 110);
    near(after(&notes, 90).units_per_s, 100);
    assert_false(clv_history_get(&notes, &job, "another", &found));
    clv_notes_close(&notes);
    (void)state;
}

static void speeds_are_kept_in_every_locale(void **state)
{
    clv_notes notes;
    char text[160];
    clv_notes_open(&notes, "", "speeds.txt", "");
    test_comma();
    near(after(&notes, 12.5).units_per_s, 12.5);
    test_point();
    assert_true(clv_notes_get(&notes, "sum 10x10 on card", text, sizeof text));
    assert_string_equal(text, "units_per_s 12.5 chunk_s 0.001 setup_s 0.5");
    clv_notes_close(&notes);
    (void)state;
}

/* A device may have waited for a core; that it is quicker than ever is true. */
static void one_bad_job_is_not_believed(void **state)
{
    clv_notes notes;
    clv_notes_open(&notes, "", "speeds.txt", "");
    (void)after(&notes, 100);
    near(after(&notes, 1).units_per_s, 50);
    near(after(&notes, 1).units_per_s, 25);
    near(after(&notes, 100).units_per_s, 100);
    near(after(&notes, 400).units_per_s, 400);
    clv_notes_close(&notes);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_blend),
        cmocka_unit_test(speeds_are_kept_in_every_locale),
        cmocka_unit_test(one_bad_job_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
