/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded machines: machines/NAME.json is what `cleave probe --save` wrote there, or what clinfo.py made of a
 * public report; NAME.expected is what must be decided about it, and with which kernels each device would begin. A
 * CPU's kernels are shown twice, as with AVX-512 and as with AVX2 alone, whatever CPU the test runs on. A bug report
 * becomes two files. With CLEAVE_UPDATE=1 the expected files are written anew: read the difference before keeping
 * it. */
#define _GNU_SOURCE
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "host/blob/blob_family.h"
#include "host/patch/paco_family.h"
#include "host/transformer/blocks.h"
#include "probe/judge/decide.h"
#include "probe/report/snapshot.h"
#include "runtime/blas/gemm.h"
#include "runtime/record/device.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The patches of PACO by groups, or what takes their place: "group" or "items" for each radius from 4 to 6. */
static void add_patches(clv_text *out, const clv_device *device)
{
    clv_paco_plan *plan = clv_zalloc(1, sizeof *plan);
    assert_non_null(plan);
    plan->shifted = true, plan->in.frames = 100, plan->in.width = 1024;
    plan->basis.vectors = 10, plan->basis.terms_a = CLV_PACO_TERMS_A;
    plan->basis.terms_b = CLV_PACO_TERMS_B;
    static const size_t pixels[] = { 49, 81, 113 }; /* radius 4, 5, 6 */
    clv_text_add(out, ", patches %s", clv_paco_variants(device)[0]);
    for (size_t i = 0; i < CLV_LEN(pixels); ++i) {
        plan->pixels = pixels[i];
        const clv_paco_family f = clv_paco_family_of(plan, device, 0);
        if (f.in_groups)
            clv_text_add(out, "%s%zux%zu+%zu", i ? "/" : " ", f.teams, 2 * f.side,
                         f.project_patches);
    }
    clv_free(plan);
}

/* Takes the place of clv_cpu_has_avx2_alone (linked with --wrap). */
static bool avx2_alone;
bool __wrap_clv_cpu_has_avx2_alone(void);
bool __wrap_clv_cpu_has_avx2_alone(void)
{
    return avx2_alone;
}

/* The kernels that a device is given first: family and tile of each operation. */
static void add_kernels(clv_text *out, const clv_probe_device *facts)
{
    const clv_device device = {
        .facts = facts,
        .loop_limit = facts->flags.loop_limit ? facts->flags.loop_limit : CLV_UNKNOWN,
    };
    if (!facts->max_work_group || facts->local_bytes == CLV_UNKNOWN) return; /* not in the report */
    const size_t forms = clv_gemm_form_count(&device);
    clv_text_add(out, avx2_alone ? "  with AVX2 alone: products" : "  products");
    for (size_t i = 0; i < forms; ++i) {
        const clv_gemm_form form = clv_gemm_form_of(&device, i);
        if (form.provider != CLV_GEMM_CLBLAST) /* where it happens to be installed */
            clv_text_add(out, " %s", form.name);
    }
    clv_text_add(out, ", attention");
    static const size_t widths[] = { 64, 128 };
    for (size_t i = 0; i < CLV_LEN(widths); ++i) {
        const clv_attention_call call = { .width = widths[i], .longest = 512 };
        const clv_attention_tile t = clv_attention_tile_of(&device, &call, false);
        if (t.fits)
            clv_text_add(out, " %zux%zu", t.rows, t.tx);
        else
            clv_text_add(out, " %s", clv_block_form_of(&device).lanes > 1 ? "rows" : "items");
    }
    clv_text_add(out, ", spots %s", clv_blob_variants(&device)[0]);
    add_patches(out, &device);
    clv_text_add(out, "\n");
}

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
        if (!d->usable || d->duplicate_of != SIZE_MAX) continue;
        add_kernels(&out, d);
        avx2_alone = true;
        if (d->device_class == CLV_CLASS_CPU) add_kernels(&out, d);
        avx2_alone = false;
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
    assert_true(count >= 25 + 4);
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
