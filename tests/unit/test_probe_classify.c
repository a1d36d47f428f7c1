/* SPDX-License-Identifier: Apache-2.0 */
/* probe/judge/classify.c, quirks.c and matrix.c: whose device it is, what kind, what is known about it. */
#include "test.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/judge/matrix.h"
#include "probe/judge/quirks.h"

#include <string.h>

static void vendors_come_from_texts(void **state)
{
    (void)state;
    static const struct {
        const char *platform, *vendor, *type;
        clv_vendor want;
    } cases[] = {
        { "NVIDIA CUDA", "NVIDIA Corporation", "GPU", CLV_VENDOR_NVIDIA },
        { "AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "GPU",
          CLV_VENDOR_AMD },
        { "rusticl", "AMD", "GPU", CLV_VENDOR_AMD },
        { "Intel(R) OpenCL", "Intel(R) Corporation", "CPU", CLV_VENDOR_INTEL },
        { "clvk", "Intel Corporation", "GPU", CLV_VENDOR_INTEL },
        { "Portable Computing Language", "AuthenticAMD", "CPU", CLV_VENDOR_POCL },
        { "Portable Computing Language", "GenuineIntel", "CPU", CLV_VENDOR_POCL },
        { "Portable Computing Language", "NVIDIA Corporation", "GPU", CLV_VENDOR_NVIDIA },
        { "rusticl", "Mesa/X.org", "CPU", CLV_VENDOR_MESA },
        { "rusticl", NULL, "CPU", CLV_VENDOR_MESA },
        { "ARM Platform", "ARM", "GPU", CLV_VENDOR_ARM },
        { "QUALCOMM Snapdragon(TM)", "QUALCOMM", "GPU", CLV_VENDOR_QUALCOMM },
        { "Some", "Harmony Ltd", "GPU", CLV_VENDOR_OTHER }, /* "arm" inside is not ARM */
        { NULL, NULL, NULL, CLV_VENDOR_OTHER },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        assert_int_equal(clv_vendor_of(cases[i].platform, cases[i].vendor, cases[i].type),
                         cases[i].want);
}

static void names_lose_what_is_not_the_chip(void **state)
{
    (void)state;
    static const struct {
        const char *name, *board, *want;
    } cases[] = {
        { "AMD Radeon RX 6700 XT (radeonsi, navi22, LLVM 21.1.5, DRM 3.64, 6.17.9-2-cachyos)", NULL,
          "AMD Radeon RX 6700 XT" },
        { "llvmpipe (LLVM 15.0.6, 256 bits)", NULL, "llvmpipe" },
        { "pthread-skylake-avx512-AMD EPYC", NULL, "AMD EPYC" },
        { "pthread-cortex-a55", NULL, "cortex-a55" },
        { "cpu-haswell-Intel(R) Core(TM) i5-10300H CPU @ 2.50GHz", NULL, "Intel Core i5-10300H" },
        { "pthread-Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", NULL, "Intel Core i7-9750H" },
        { "gfx1030", "AMD Radeon RX 6800 XT", "AMD Radeon RX 6800 XT" },
        { "gfx1031", "Device 73df", "gfx1031" },
        { "Ellesmere", "AMD Radeon (TM) RX 480 Graphics", "AMD Radeon RX 480 Graphics" },
        { "Intel(R) Graphics [0x56a0]", NULL, "Intel Graphics [0x56a0]" },
        { "(not named in source)", NULL, "(not named in source)" },
        { NULL, NULL, "unnamed device" },
        { "", "", "unnamed device" },
    };
    char out[256];
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_clean_name(cases[i].name, cases[i].board, out, sizeof out);
        assert_string_equal(out, cases[i].want);
    }
    clv_clean_name("a name that is longer than its field", NULL, out, 8);
    assert_string_equal(out, "a name");
}

static void versions_of_all_kinds_are_read(void **state)
{
    (void)state;
    assert_int_equal(clv_opencl_version("OpenCL 1.2 NEO"), 102);
    assert_int_equal(clv_opencl_version("OpenCL 3.1 (Build 0)"), 301);
    assert_int_equal(clv_opencl_version("OpenCL 3.0"), 300);
    assert_int_equal(clv_opencl_version("OpenCL 1.x"), 0);
    assert_int_equal(clv_opencl_version("OpenCL C 1.2"), 0);
    assert_int_equal(clv_opencl_version(""), 0);
    assert_int_equal(clv_opencl_version(NULL), 0);
    assert_true(clv_opencl_version("OpenCL 99999999999999.99999999999") > 300);
}

static clv_device_class class_of(clv_machine *m, const char *platform, clv_probe_device device)
{
    clv_probe_platform p = { .name = platform };
    clv_classify_platform(&p);
    clv_classify_device(m, &p, &device);
    assert_non_null(device.class_reason);
    assert_non_null(device.name_clean);
    return device.device_class;
}

static void classes_follow_the_evidence(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device d = clv_device_unknown();
    d.name = "SwiftShader Device", d.type = "GPU";
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_SOFTWARE);
    d.name = "n", d.type = "CPU", d.vendor = "Intel(R) Corporation";
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_CPU);
    d.type = "GPU";
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_DISCRETE_GPU);
    d.pci_address = "0000:00:02.0";
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_INTEGRATED_GPU);
    d.pci_address = "0000:03:00.0", d.unified = true;
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_INTEGRATED_GPU);
    d.integrated = CLV_NO, d.integrated_source = "test"; /* the vendor's own word counts more */
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_DISCRETE_GPU);
    d = clv_device_unknown();
    d.type = "ACCELERATOR";
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_ACCELERATOR);
    d.type = NULL;
    assert_int_equal(class_of(m, "x", d), CLV_CLASS_ACCELERATOR);
    clv_machine_free(m);
}

static void an_apu_shows_by_its_video_memory(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device d = clv_device_unknown();
    d.type = "GPU", d.vendor = "Advanced Micro Devices, Inc.";
    d.global_bytes = UINT64_C(14599004160), d.vram_bytes = UINT64_C(4294967296);
    assert_int_equal(class_of(m, "AMD", d), CLV_CLASS_INTEGRATED_GPU);
    d.vram_bytes = UINT64_C(17163091968), d.global_bytes = UINT64_C(17163091968);
    d.unified = true; /* what the kernel says stands above it */
    assert_int_equal(class_of(m, "AMD", d), CLV_CLASS_DISCRETE_GPU);
    d.vram_bytes = d.global_bytes = 268435456;
    assert_int_equal(class_of(m, "AMD", d), CLV_CLASS_INTEGRATED_GPU);
    clv_machine_free(m);
}

static void unusable_devices_say_why(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device d = clv_device_unknown();
    clv_judge_usable(m, &d);
    assert_true(d.usable); /* what a driver does not tell is no reason */
    d.version = "OpenCL 1.1 CUDA";
    clv_judge_usable(m, &d);
    assert_string_equal(d.unusable_reason, "OpenCL 1.1, at least 1.2 needed");
    d.compiler_available = false;
    clv_judge_usable(m, &d);
    assert_string_equal(d.unusable_reason, "its driver has no compiler");
    d = clv_device_unknown();
    d.check.done = true, d.check.message = "item 3 is 4";
    clv_judge_usable(m, &d);
    assert_string_equal(d.unusable_reason, "failed its check: item 3 is 4");
    clv_machine_free(m);
}

static clv_probe_device with_quirks(clv_machine *m, const char *platform, clv_probe_device device)
{
    clv_probe_platform p = { .name = platform };
    clv_classify_device(m, &p, &device);
    clv_apply_quirks(m, &p, &device);
    return device;
}

static void quirks_become_flags(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device d = clv_device_unknown();
    d.name = "llvmpipe (LLVM 15)", d.type = "CPU", d.driver_version = "22.3.6";
    d.partition_by_counts = true, d.partition_max = 8, d.profiling = true;
    d.timer_resolution_ns = 0;
    d = with_quirks(m, "rusticl", d);
    assert_true(d.flags.finish_does_not_wait && d.flags.no_sub_devices && d.flags.no_event_times);
    assert_int_equal(d.flags.loop_limit, 65535);
    assert_true(clv_probe_has_word(d.quirks, "loop_limit_65535"));
    assert_false(clv_probe_has_word(d.quirks, "loop_limit"));
    d.driver_version = "24.0.1"; /* what later drivers mended */
    d = with_quirks(m, "rusticl", d);
    assert_false(d.flags.no_sub_devices);
    assert_int_equal(d.flags.loop_limit, 65535);

    clv_probe_device pocl = clv_device_unknown();
    pocl.type = "CPU", pocl.name = "pthread-x", pocl.profiling = true;
    pocl.partition_by_counts = true, pocl.partition_max = 2, pocl.timer_resolution_ns = 1;
    pocl = with_quirks(m, "Portable Computing Language", pocl);
    assert_true(pocl.flags.slow_barriers && pocl.flags.binaries_must_be_whole);
    assert_false(pocl.flags.no_sub_devices || pocl.flags.no_event_times || pocl.flags.loop_limit);
    clv_machine_free(m);
}

/* A device of a vendor and an instruction set, with double precision. */
static clv_probe_device card_of(clv_machine *m, const char *vendor, const char *arch)
{
    clv_probe_device d = clv_device_unknown();
    d.type = "GPU", d.vendor = vendor, d.name = "a card", d.arch = arch, d.fp64 = true;
    return with_quirks(m, "a platform", d);
}

static void chips_tell_their_registers_and_rates(void **state)
{
    (void)state;
    static const struct {
        const char *vendor, *arch;
        bool few_registers, slow_fp64;
    } cards[] = {
        { "NVIDIA Corporation", "sm_86", false, true },
        { "NVIDIA Corporation", "sm_80", false, false },
        { "NVIDIA Corporation", "sm_100", false, false },
        { "Advanced Micro Devices, Inc.", "gfx1030", false, true },
        { "Advanced Micro Devices, Inc.", "gfx906", true, false },
        { "Advanced Micro Devices, Inc.", "gfx900", true, true },
        { "Advanced Micro Devices, Inc.", "gfx90a", false, false },
        { "Intel(R) Corporation", NULL, true, true },
        { "Somebody else", NULL, false, false },
    };
    clv_machine *m = clv_machine_create();
    for (size_t i = 0; i < CLV_LEN(cards); ++i) {
        const clv_probe_device d = card_of(m, cards[i].vendor, cards[i].arch);
        assert_int_equal(d.flags.few_registers, cards[i].few_registers);
        assert_int_equal(d.flags.slow_fp64, cards[i].slow_fp64);
    }
    clv_probe_device cpu = clv_device_unknown();
    cpu.type = "CPU", cpu.vendor = "Intel(R) Corporation", cpu.fp64 = true;
    cpu = with_quirks(m, "Intel(R) OpenCL", cpu);
    assert_false(cpu.flags.few_registers || cpu.flags.slow_fp64);
    clv_machine_free(m);
}

static void a_watchdog_wants_short_launches(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    static const clv_tristate answers[] = { CLV_YES, CLV_NO, CLV_MAYBE };
    for (size_t i = 0; i < CLV_LEN(answers); ++i) {
        clv_probe_device d = clv_device_unknown();
        d.type = "GPU", d.vendor = "NVIDIA Corporation", d.name = "a card";
        d.kernel_timeout = answers[i];
        d = with_quirks(m, "NVIDIA CUDA", d);
        assert_int_equal(d.flags.short_launches, answers[i] == CLV_YES);
        assert_int_equal(strstr(d.quirks, "watchdog") != NULL, answers[i] == CLV_YES);
    }
    clv_machine_free(m);
}

static void matrix_units_need_what_kernels_need(void **state)
{
    (void)state;
    static const char units[] = "cl_intel_subgroup_matrix_multiply_accumulate";
    static const char both[] =
        "cl_intel_required_subgroup_size cl_intel_subgroup_matrix_multiply_accumulate";
    static const struct {
        const char *extensions, *sizes;
        unsigned lanes;
    } cards[] = {
        { both, "8 16 32", 8 },
        { both, "16 32", 16 },
        { both, "32", 0 },
        { both, "", 0 },
        { both, NULL, 0 },
        { units, "8 16", 0 },
        { NULL, "8 16", 0 },
        { both, "32 16 8", 8 },
        { "cl_intel_required_subgroup_size", "8 16 32", 0 },
        { "cl_intel_required_subgroup_size cl_intel_subgroup_matrix_multiply_accumulate_tf32", "16",
          0 },
    };
    for (size_t i = 0; i < CLV_LEN(cards); ++i) {
        clv_probe_device d = clv_device_unknown();
        d.extensions = cards[i].extensions, d.subgroup_sizes = cards[i].sizes;
        assert_int_equal(clv_matrix_lanes(&d), cards[i].lanes);
    }
}

static void a_check_stands_above_the_table(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device d = clv_device_unknown();
    d.name = "llvmpipe", d.type = "CPU";
    d.check = (clv_probe_check){ .done = true, .ok = true, .loop_limit = CLV_UNKNOWN };
    assert_int_equal(with_quirks(m, "rusticl", d).flags.loop_limit, 0);
    d.name = "something else", d.check.loop_limit = 1000, d.check.finish_waits = CLV_NO;
    d = with_quirks(m, "another", d);
    assert_int_equal(d.flags.loop_limit, 1000);
    assert_true(d.flags.finish_does_not_wait);
    clv_machine_free(m);
}

static void every_quirk_has_a_sentence_and_a_source(void **state)
{
    (void)state;
    assert_null(clv_quirk_find("no such quirk"));
    const clv_quirk *quirk = clv_quirk_find("max_alloc_quarter");
    assert_non_null(quirk);
    assert_true(strlen(quirk->reason) > 10 && strlen(quirk->source) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vendors_come_from_texts),
        cmocka_unit_test(names_lose_what_is_not_the_chip),
        cmocka_unit_test(versions_of_all_kinds_are_read),
        cmocka_unit_test(classes_follow_the_evidence),
        cmocka_unit_test(an_apu_shows_by_its_video_memory),
        cmocka_unit_test(unusable_devices_say_why),
        cmocka_unit_test(quirks_become_flags),
        cmocka_unit_test(chips_tell_their_registers_and_rates),
        cmocka_unit_test(a_watchdog_wants_short_launches),
        cmocka_unit_test(matrix_units_need_what_kernels_need),
        cmocka_unit_test(a_check_stands_above_the_table),
        cmocka_unit_test(every_quirk_has_a_sentence_and_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
