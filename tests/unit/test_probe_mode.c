/* SPDX-License-Identifier: Apache-2.0 */
/* probe/judge/mode.c, select.c, duplicates.c: decisions about machines that are made up here. */
#include "test.h"

#include "base/alloc.h"
#include "probe/judge/decide.h"
#include "probe/judge/mode.h"
#include "probe/judge/select.h"

#include <stdio.h>
#include <string.h>

static const uint64_t GB = 1000000000;

/* A machine with GPUs and CPUs, each on a platform of its own. */
static clv_machine *machine(void)
{
    clv_machine *m = clv_machine_create();
    assert_non_null(m);
    m->report.host.memory_available_bytes = 16 * GB;
    return m;
}

static clv_probe_device *add(clv_machine *m, const char *platform, const char *type,
                             const char *name, uint64_t bytes)
{
    clv_probe_platform *p = clv_machine_add_platform(m);
    p->name = platform;
    clv_probe_device *d = clv_machine_add_device(m);
    d->platform = m->report.platform_count - 1;
    d->type = type, d->name = name, d->vendor = platform, d->version = "OpenCL 3.0 x";
    d->global_bytes = bytes, d->max_alloc_bytes = bytes;
    return d;
}

static clv_probe_device *add_gpu(clv_machine *m, const char *name, uint64_t bytes)
{
    return add(m, "NVIDIA CUDA", "GPU", name, bytes);
}

static void add_pocl(clv_machine *m)
{
    add(m, "Portable Computing Language", "CPU", "pthread-x-A Chip", 10 * GB);
}

static clv_probe_mode decide(clv_machine *m, clv_orders orders)
{
    if (orders.devices) orders.devices_by = "--device";
    if (orders.mode) orders.mode_by = "--mode";
    EXPECT_OK(clv_decide(m, &orders));
    return m->report.mode;
}

static void expect(clv_machine *m, const char *rule, clv_mode mode, const char *part)
{
    const clv_probe_mode got = decide(m, (clv_orders){ 0 });
    assert_string_equal(got.rule, rule);
    assert_int_equal(got.recommended, mode);
    if (!strstr(got.reason, part)) fail_msg("\"%s\" has no \"%s\"", got.reason, part);
    clv_machine_free(m);
}

static void r1_no_gpu_means_cpu(void **state)
{
    (void)state;
    clv_machine *m = machine();
    expect(m, "R1", CLV_MODE_CPU, "no OpenCL device, so the built-in C code computes: cpu");
    m = machine();
    add_pocl(m);
    expect(m, "R1", CLV_MODE_CPU, "no GPU with OpenCL; A Chip computes through PoCL: cpu");
    m = machine();
    add_pocl(m);
    add_gpu(m, "Old", 8 * GB)->version = "OpenCL 1.1 CUDA";
    expect(m, "R1", CLV_MODE_CPU, "Old cannot be used (OpenCL 1.1, at least 1.2 needed)");
    m = machine();
    clv_probe_device *failed = add_gpu(m, "Liar", 8 * GB);
    failed->check.done = true;
    expect(m, "R1", CLV_MODE_CPU, "Liar cannot be used (failed its check");
}

static void the_thresholds_are_decimal(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *rule;
        clv_mode mode;
    } cases[] = {
        { UINT64_C(1999999999), "R2", CLV_MODE_CPU },
        { UINT64_C(2000000000), "R4", CLV_MODE_HYBRID },
        { UINT64_C(2127446016), "R4", CLV_MODE_HYBRID }, /* nominal 2 GB */
        { UINT64_C(3999999999), "R4", CLV_MODE_HYBRID },
        { UINT64_C(4000000000), "R5", CLV_MODE_GPU },
        { UINT64_C(4219469824), "R5", CLV_MODE_GPU }, /* nominal 4 GB */
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_machine *m = machine();
        add_gpu(m, "Card", cases[i].bytes);
        add_pocl(m);
        expect(m, cases[i].rule, cases[i].mode, "Card has ");
    }
    clv_machine *m = machine();
    add_gpu(m, "Card", CLV_UNKNOWN);
    expect(m, "R2", CLV_MODE_CPU, "does not tell how much memory it has");
}

static void room_is_what_is_free(void **state)
{
    (void)state;
    clv_machine *m = machine();
    add_pocl(m);
    add_gpu(m, "Card", 10 * GB)->free_bytes = 9 * GB + 1;
    expect(m, "R5", CLV_MODE_GPU, "Card has 10 GB (at least 4 GB): gpu");
    m = machine();
    add_pocl(m);
    add_gpu(m, "Card", 10 * GB)->free_bytes = 3 * GB;
    expect(m, "R4", CLV_MODE_HYBRID, "Card has 3 GB free of 10 GB (2 to 4 GB): hybrid");
    m = machine();
    add_gpu(m, "Card", 10 * GB)->free_bytes = 1 * GB;
    expect(m, "R2", CLV_MODE_CPU, "Card has 1 GB free of 10 GB (less than 2 GB): cpu");
}

static void r3_an_integrated_gpu_shares_the_hosts_memory(void **state)
{
    (void)state;
    clv_machine *m = machine();
    add_pocl(m);
    add_gpu(m, "Inside", 14 * GB)->unified = true;
    expect(m, "R3", CLV_MODE_HYBRID, "Inside may use 8 GB, half of the host's 16 GB available");
    m = machine();
    add_pocl(m);
    m->report.host.memory_available_bytes = 3 * GB;
    add_gpu(m, "Inside", 14 * GB)->unified = true;
    expect(m, "R2", CLV_MODE_CPU, "may use 1.5 GB");
}

static void r4_without_a_cpu_device_is_gpu_with_a_warning(void **state)
{
    (void)state;
    clv_machine *m = machine();
    add_gpu(m, "Card", 3 * GB);
    const clv_probe_mode mode = decide(m, (clv_orders){ 0 });
    assert_string_equal(mode.rule, "R4");
    assert_int_equal(mode.recommended, CLV_MODE_GPU);
    assert_int_equal(m->report.warning_count, 1);
    assert_string_equal(m->report.warnings[0].code, "no_cpu_device");
    clv_machine_free(m);
}

static void r6_a_fast_cpu_helps(void **state)
{
    (void)state;
    for (int fast = 0; fast < 2; ++fast) {
        clv_machine *m = machine();
        add_gpu(m, "Card", 8 * GB)->measured =
            (clv_probe_rates){ .fp32_gflops = 1000, .date = "d" };
        add_pocl(m);
        m->devices[1].measured = (clv_probe_rates){ .fp32_gflops = fast ? 210 : 199, .date = "d" };
        if (fast)
            expect(m, "R6", CLV_MODE_HYBRID, "A Chip reaches 21 % of its measured rate");
        else
            expect(m, "R5", CLV_MODE_GPU, "Card has 8 GB");
    }
}

static void discrete_beats_integrated_whatever_the_memory(void **state)
{
    (void)state;
    clv_machine *m = machine();
    m->report.host.memory_available_bytes = 64 * GB;
    add_gpu(m, "Inside", 27 * GB)->unified = true;
    add_gpu(m, "Small card", 5 * GB);
    add_gpu(m, "Large card", 11 * GB);
    const clv_probe_mode mode = decide(m, (clv_orders){ 0 });
    assert_string_equal(m->devices[mode.primary_device].name, "Large card");
    clv_machine_free(m);
}

static void r0_orders_are_obeyed_or_refused(void **state)
{
    (void)state;
    clv_machine *m = machine();
    add_gpu(m, "Card", 8 * GB);
    clv_orders orders = { .mode = CLV_MODE_CPU, .mode_by = "--mode" };
    EXPECT_FAIL(CLV_E_NO_DEVICE, "mode \"cpu\" (set by --mode) needs an OpenCL CPU device",
                clv_decide(m, &orders));
    add_pocl(m);
    clv_probe_mode mode = decide(m, (clv_orders){ .mode = CLV_MODE_CPU });
    assert_int_equal(mode.recommended, CLV_MODE_CPU);
    assert_string_equal(mode.rule, "R0");
    assert_string_equal(mode.forced_by, "--mode");
    mode = decide(m, (clv_orders){ .devices = "cpu" });
    assert_int_equal(mode.recommended, CLV_MODE_CPU);
    assert_string_equal(mode.forced_by, "--device");
    mode = decide(m, (clv_orders){ .devices = "all" });
    assert_int_equal(mode.recommended, CLV_MODE_HYBRID);
    mode = decide(m, (clv_orders){ .mode = CLV_MODE_REFERENCE });
    assert_int_equal(mode.recommended, CLV_MODE_REFERENCE);
    orders = (clv_orders){
        .mode = CLV_MODE_GPU, .mode_by = "--mode", .devices = "cpu", .devices_by = "--device"
    };
    EXPECT_FAIL(CLV_E_NO_DEVICE, "needs a usable GPU among cpu", clv_decide(m, &orders));
    orders = (clv_orders){ .devices = "nonsense", .devices_by = "--device" };
    EXPECT_FAIL(CLV_E_ARGUMENT, "is not valid", clv_decide(m, &orders));
    clv_machine_free(m);
}

/* ---- selections ------------------------------------------------------------------------------ */

/* Which devices a selection means: "0 2", or the name of the failure. */
static const char *chosen(clv_machine *m, const char *selection)
{
    static char text[64];
    bool flags[16];
    const clv_status status = clv_select_devices(&m->report, selection, flags);
    text[0] = '\0';
    if (status) return clv_status_name(status);
    for (size_t i = 0; i < m->report.device_count; ++i)
        if (flags[i]) sprintf(text + strlen(text), "%s%zu", *text ? " " : "", i);
    return text;
}

static void the_grammar_means_what_it_says(void **state)
{
    (void)state;
    clv_machine *m = machine();
    clv_probe_device *card = add_gpu(m, "Radeon VII", 16 * GB);
    card->pci_address = "0000:0d:00.0";
    card->uuid = "04c88413-cbeb-4721-3976-7ec59802f5e9";
    card = add(m, "rusticl", "GPU", "Radeon VII (radeonsi, LLVM 15)", 16 * GB);
    card->pci_address = "0000:0d:00.0", card->profile = "EMBEDDED_PROFILE";
    card = add_gpu(m, "Old", 8 * GB);
    card->version = "OpenCL 1.1 x", card->pci_address = "0000:0e:00.0";
    add_pocl(m);
    add(m, "Intel(R) OpenCL", "CPU", "A Chip", 10 * GB);
    decide(m, (clv_orders){ 0 });
    /* 0 Radeon VII, 1 its rusticl twin, 2 Old (unusable), 3 PoCL, 4 Intel on the same cores */
    static const char *const cases[][2] = {
        { "gpu", "0" },
        { "cpu", "3" },
        { "all", "0 3" },
        { "GPU , Cpu", "0 3" },
        { "1", "1" },
        { "0,1", "0 1" },
        { "!gpu", "3" },
        { "all,!0", "1 3" }, /* the next best entry of the same card */
        { "!cpu", "0" },
        { "cpu,!name~portable", "4" },
        { "name~radeon", "0" },
        { "name~intel", "4" },
        { "pci=0000:0d:00.0", "0" },
        { "pci=0D:00.0", "0" },
        { "uuid=04C88413cbeb472139767ec59802f5e9", "0" },
        { "!name~nothing", "0 3" },
        { "2", "CLV_E_NO_DEVICE" },
        { "5", "CLV_E_NO_DEVICE" },
        { "gpu,!gpu", "CLV_E_NO_DEVICE" },
        { "name~Old", "CLV_E_NO_DEVICE" },
        { "9:0", "CLV_E_NO_DEVICE" },
        { "", "CLV_E_ARGUMENT" },
        { "gpu,", "CLV_E_ARGUMENT" },
        { "graphics", "CLV_E_ARGUMENT" },
        { "name~", "CLV_E_ARGUMENT" },
        { "1:", "CLV_E_ARGUMENT" },
        { "-1", "CLV_E_ARGUMENT" },
        { "!", "CLV_E_ARGUMENT" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i)
        if (strcmp(chosen(m, cases[i][0]), cases[i][1]) != 0)
            fail_msg("\"%s\" gave %s, expected %s (%s)", cases[i][0], chosen(m, cases[i][0]),
                     cases[i][1], clv_error_message());
    char place[16];
    snprintf(place, sizeof place, "%zu:0", m->devices[4].platform);
    assert_string_equal(chosen(m, place), "4");
    EXPECT_FAIL(CLV_E_NO_DEVICE, "0 discrete_gpu \"Radeon VII\", 1 discrete_gpu",
                clv_select_devices(&m->report, "7", (bool[16]){ 0 }));
    clv_machine_free(m);
}

static void nothing_can_be_selected_from_nothing(void **state)
{
    (void)state;
    clv_machine *m = machine();
    decide(m, (clv_orders){ 0 });
    EXPECT_FAIL(CLV_E_NO_DEVICE, "no OpenCL device at all",
                clv_select_devices(&m->report, "all", (bool[1]){ 0 }));
    clv_machine_free(m);
}

/* ---- duplicates ------------------------------------------------------------------------------ */

static size_t hardware_count(const clv_machine *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->report.device_count; ++i)
        count += m->devices[i].primary;
    return count;
}

static void one_platform_never_merges(void **state)
{
    (void)state;
    clv_machine *m = machine();
    for (unsigned i = 0; i < 4; ++i) {
        clv_probe_device *d = i ? clv_machine_add_device(m) : add_gpu(m, "MI300A", 128 * GB);
        if (i) *d = m->devices[0];
        d->ordinal = i;
        d->pci_address = "0000:02:00.0";
    }
    decide(m, (clv_orders){ 0 });
    assert_int_equal(hardware_count(m), 4);
    assert_string_equal(m->devices[0].id, "pci:0000:02:00.0");
    assert_string_equal(m->devices[3].id, "pci:0000:02:00.0#3");
    clv_machine_free(m);
}

static void equal_names_merge_only_in_equal_numbers(void **state)
{
    (void)state;
    for (int second = 0; second < 2; ++second) {
        clv_machine *m = machine();
        add_gpu(m, "Card", 8 * GB);
        add(m, "clvk", "GPU", "Card (a driver, LLVM)", 8 * GB);
        if (second) {
            clv_probe_device *d = clv_machine_add_device(m);
            *d = m->devices[1], d->ordinal = 1;
        }
        decide(m, (clv_orders){ 0 });
        assert_int_equal(hardware_count(m), second ? 3 : 1);
        clv_machine_free(m);
    }
}

static void other_addresses_never_merge(void **state)
{
    (void)state;
    clv_machine *m = machine();
    add_gpu(m, "Card", 8 * GB)->pci_address = "0000:01:00.0";
    add(m, "clvk", "GPU", "Card", 8 * GB)->pci_address = "0000:02:00.0";
    decide(m, (clv_orders){ 0 });
    assert_int_equal(hardware_count(m), 2);
    clv_machine_free(m);
}

static void uuids_count_within_one_driver_only(void **state)
{
    (void)state;
    for (int same_driver = 0; same_driver < 2; ++same_driver) {
        clv_machine *m = machine();
        clv_probe_device *a = add_gpu(m, "A", 8 * GB);
        a->uuid = "1", a->driver_uuid = "d";
        clv_probe_device *b = add(m, "clvk", "GPU", "B", 8 * GB);
        b->uuid = "1", b->driver_uuid = same_driver ? "d" : "e";
        decide(m, (clv_orders){ 0 });
        assert_int_equal(hardware_count(m), same_driver ? 1 : 2);
        clv_machine_free(m);
    }
}

static void one_library_in_two_files_counts_once(void **state)
{
    (void)state;
    clv_machine *m = machine();
    for (size_t i = 0; i < 2; ++i) {
        clv_machine_add_icd(m)->library_path = "/usr/lib/libdriver.so.1";
        add_gpu(m, "Card", 8 * GB);
        m->platforms[i].icd = i;
    }
    m->devices[1].global_bytes = 7 * GB; /* free memory makes some drivers report less */
    decide(m, (clv_orders){ 0 });
    assert_int_equal(hardware_count(m), 1);
    clv_machine_free(m);
}

static void cpus_are_one_pool_led_by_the_fastest(void **state)
{
    (void)state;
    for (int measured = 0; measured < 3; ++measured) {
        clv_machine *m = machine();
        add(m, "Intel(R) OpenCL", "CPU", "A Chip", 25 * GB)->fp16 = true;
        add_pocl(m);
        add(m, "rusticl", "CPU", "llvmpipe", 2 * GB);
        if (measured) { /* 5 % is noise, 50 % is not */
            m->devices[0].measured = (clv_probe_rates){ .fp32_gflops = measured > 1 ? 150 : 105 };
            m->devices[1].measured = (clv_probe_rates){ .fp32_gflops = 100 };
        }
        decide(m, (clv_orders){ 0 });
        assert_int_equal(hardware_count(m), 1);
        assert_string_equal(m->devices[0].id, measured > 1 ? "cpu:intel" : "cpu:pocl");
        assert_string_equal(m->devices[2].id, "cpu:rusticl");
        assert_int_equal(m->devices[2].duplicate_of, 0);
        clv_machine_free(m);
    }
}

static void the_order_does_not_depend_on_the_loader(void **state)
{
    (void)state;
    const char *ids[2][3] = { { NULL } };
    clv_machine *machines[2];
    for (int reversed = 0; reversed < 2; ++reversed) {
        clv_machine *m = machines[reversed] = machine();
        if (!reversed) add_pocl(m);
        add_gpu(m, "B", 8 * GB)->pci_address = "0000:09:00.0";
        add(m, "Another", "GPU", "A", 8 * GB)->pci_address = "0000:05:00.0";
        if (reversed) add_pocl(m);
        decide(m, (clv_orders){ 0 });
        for (size_t i = 0; i < 3; ++i)
            ids[reversed][i] = m->devices[i].id;
    }
    for (size_t i = 0; i < 3; ++i)
        assert_string_equal(ids[0][i], ids[1][i]);
    assert_string_equal(ids[0][0], "pci:0000:05:00.0");
    assert_string_equal(ids[0][2], "cpu:pocl");
    clv_machine_free(machines[0]), clv_machine_free(machines[1]);
}

static void gpus_on_the_bus_without_opencl_are_named(void **state)
{
    (void)state;
    clv_machine *m = machine();
    clv_probe_pci_gpu *gpu = clv_machine_add_pci_gpu(m);
    gpu->address = "0000:01:00.0", gpu->vendor_id = 0x10DE, gpu->pci_class = 0x030000;
    gpu = clv_machine_add_pci_gpu(m);
    gpu->address = "0000:02:00.0", gpu->vendor_id = 0x1234; /* an emulator's */
    gpu = clv_machine_add_pci_gpu(m);
    gpu->address = "0000:03:00.0", gpu->vendor_id = 0x1002;
    add(m, "AMD", "GPU", "Card", 8 * GB)->pci_address = "0000:03:00.0";
    decide(m, (clv_orders){ 0 });
    assert_false(m->pci_gpus[0].has_opencl);
    assert_true(m->pci_gpus[2].has_opencl);
    assert_int_equal(m->report.warning_count, 1);
    assert_string_equal(m->report.warnings[0].code, "gpu_without_opencl");
    assert_non_null(strstr(m->report.warnings[0].hint, "nvidia-opencl-icd"));
    clv_machine_free(m);
}

static void no_memory_is_an_error_at_every_allocation(void **state)
{
    (void)state;
    const clv_orders none = { 0 };
    for (unsigned long k = 1;; ++k) {
        clv_machine *m = machine();
        add_gpu(m, "Card", 8 * GB);
        add_pocl(m);
        clv_alloc_fail_at(k);
        const clv_status status = clv_decide(m, &none);
        const bool all_done = clv_alloc_calls() < k;
        clv_alloc_fail_at(0);
        clv_machine_free(m);
        if (all_done) {
            assert_int_equal(status, CLV_OK);
            assert_true(k > 10);
            break;
        }
        assert_int_equal(status, CLV_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r1_no_gpu_means_cpu),
        cmocka_unit_test(the_thresholds_are_decimal),
        cmocka_unit_test(room_is_what_is_free),
        cmocka_unit_test(r3_an_integrated_gpu_shares_the_hosts_memory),
        cmocka_unit_test(r4_without_a_cpu_device_is_gpu_with_a_warning),
        cmocka_unit_test(r6_a_fast_cpu_helps),
        cmocka_unit_test(discrete_beats_integrated_whatever_the_memory),
        cmocka_unit_test(r0_orders_are_obeyed_or_refused),
        cmocka_unit_test(the_grammar_means_what_it_says),
        cmocka_unit_test(nothing_can_be_selected_from_nothing),
        cmocka_unit_test(one_platform_never_merges),
        cmocka_unit_test(equal_names_merge_only_in_equal_numbers),
        cmocka_unit_test(other_addresses_never_merge),
        cmocka_unit_test(uuids_count_within_one_driver_only),
        cmocka_unit_test(one_library_in_two_files_counts_once),
        cmocka_unit_test(cpus_are_one_pool_led_by_the_fastest),
        cmocka_unit_test(the_order_does_not_depend_on_the_loader),
        cmocka_unit_test(gpus_on_the_bus_without_opencl_are_named),
        cmocka_unit_test(no_memory_is_an_error_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
