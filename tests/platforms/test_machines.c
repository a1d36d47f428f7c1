/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded machines: machines/NAME.json is what `cleave probe --save` wrote there, NAME.expected
 * what must be decided about it. A bug report becomes two files. With CLEAVE_UPDATE=1 the expected
 * files are written anew: read the difference before keeping it. */
#define _GNU_SOURCE
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "probe/judge/decide.h"
#include "probe/report/snapshot.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decisions as lines: short enough to read, complete enough to catch a change. */
static char *decisions(const clv_probe_report *report)
{
    clv_text out = { 0 };
    clv_text_add(&out, "%s\nrule %s\n", report->mode.reason, report->mode.rule);
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *d = &report->devices[i];
        clv_text_add(&out, "device %zu: %s, \"%s\", %s, %s", i, d->id, d->name_clean,
                     clv_vendor_name(d->vendor_norm), clv_device_class_name(d->device_class));
        if (d->duplicate_of != SIZE_MAX) clv_text_add(&out, ", same as %zu", d->duplicate_of);
        if (!d->usable) clv_text_add(&out, ", unusable: %s", d->unusable_reason);
        if (*d->quirks) clv_text_add(&out, "; %s", d->quirks);
        clv_text_add(&out, "\n");
    }
    for (size_t i = 0; i < report->warning_count; ++i)
        clv_text_add(&out, "warning %s: %s\n", report->warnings[i].code,
                     report->warnings[i].message);
    assert_false(out.failed);
    return out.data;
}

static void replay(const char *path)
{
    const clv_orders none = { 0 };
    char expected_path[4096], *expected;
    size_t length;
    clv_machine *m = clv_machine_create();
    EXPECT_OK(clv_snapshot_load(m, path, NULL));
    EXPECT_OK(clv_decide(m, &none));
    char *got = decisions(&m->report);
    snprintf(expected_path, sizeof expected_path, "%.*s.expected",
             (int)(strlen(path) - strlen(".json")), path);
    if (getenv("CLEAVE_UPDATE")) EXPECT_OK(clv_file_write(expected_path, got, strlen(got)));
    EXPECT_OK(clv_file_read(expected_path, 1 << 20, &expected, &length));
    if (strcmp(got, expected) != 0) fail_msg("%s decides:\n%s\nexpected:\n%s", path, got, expected);
    clv_free(got), clv_free(expected);
    clv_machine_free(m);
}

static int is_json(const struct dirent *entry)
{
    return clv_ends_with(entry->d_name, ".json");
}

static void every_recorded_machine_decides_as_it_did(void **state)
{
    (void)state;
    struct dirent **entries;
    const int count = scandir(MACHINES, &entries, is_json, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", MACHINES, entries[i]->d_name);
        replay(path);
        free(entries[i]);
    }
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_machine_decides_as_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
