/* SPDX-License-Identifier: Apache-2.0 */
/* probe/: readers of the texts under /proc, /sys and /etc, and of .icd files. */
#include "test.h"

#include "base/alloc.h"
#include "probe/host/kernel_text.h"
#include "probe/opencl/icd.h"

#include <string.h>

static void meminfo_gives_bytes(void **state)
{
    (void)state;
    const char *text = "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   24012984 kB\n"
                       "Bad: x kB\nHuge: 99999999999999999999 kB\n";
    assert_int_equal(clv_meminfo_bytes(text, "MemTotal"), UINT64_C(24684084) * 1024);
    assert_int_equal(clv_meminfo_bytes(text, "MemAvailable"), UINT64_C(24012984) * 1024);
    assert_int_equal(clv_meminfo_bytes(text, "Mem"), CLV_UNKNOWN);
    assert_int_equal(clv_meminfo_bytes(text, "Bad"), CLV_UNKNOWN);
    assert_int_equal(clv_meminfo_bytes(text, "Huge"), CLV_UNKNOWN);
    assert_int_equal(clv_meminfo_bytes("", "MemTotal"), CLV_UNKNOWN);
}

static void cpuinfo_gives_the_first_value(void **state)
{
    (void)state;
    char out[16];
    const char *text = "processor\t: 0\nmodel name\t: AMD EPYC 9000\ncpu MHz\t\t: 2596.1\n"
                       "model\t\t: 17\n\nprocessor\t: 1\nmodel name\t: other\n";
    assert_true(clv_cpuinfo_value(text, "model name", out, sizeof out));
    assert_string_equal(out, "AMD EPYC 9000");
    assert_true(clv_cpuinfo_value(text, "model", out, sizeof out));
    assert_string_equal(out, "17");
    assert_true(
        clv_cpuinfo_value("model name\t: AMD EPYC 9000 and more", "model name", out, sizeof out));
    assert_int_equal(strlen(out), sizeof out - 1);
    assert_false(clv_cpuinfo_value(text, "flags", out, sizeof out));
    assert_string_equal(out, "");
}

static void isa_keeps_what_matters(void **state)
{
    (void)state;
    clv_text isa = { 0 };
    clv_isa_text("fpu vme avx512f avx2 fma avx512_vnni notavx avxnot", &isa);
    assert_string_equal(clv_text_get(&isa), "avx2 fma avx512f avx512_vnni");
    clv_text_clear(&isa);
}

static void cgroup_paths_are_found(void **state)
{
    (void)state;
    const char *text = "9:name=systemd:/\n4:memory:/api/d1fd\n1:cpu,cpuacct:/c\n0::/user.slice/a\n";
    char out[64];
    assert_true(clv_cgroup_path(text, "", out, sizeof out));
    assert_string_equal(out, "/user.slice/a");
    assert_true(clv_cgroup_path(text, "memory", out, sizeof out));
    assert_string_equal(out, "/api/d1fd");
    assert_true(clv_cgroup_path(text, "cpuacct", out, sizeof out));
    assert_string_equal(out, "/c");
    assert_false(clv_cgroup_path(text, "mem", out, sizeof out));
    assert_false(clv_cgroup_path("0::/../../other\n", "", out, sizeof out));
    assert_false(clv_cgroup_path("no colon at all", "", out, sizeof out));
}

static void cgroup_limits_know_their_none(void **state)
{
    (void)state;
    assert_int_equal(clv_cgroup_bytes("4294967296\n"), UINT64_C(4294967296));
    assert_int_equal(clv_cgroup_bytes("max\n"), CLV_UNKNOWN);
    assert_int_equal(clv_cgroup_bytes("9223372036854771712\n"), CLV_UNKNOWN); /* v1 */
    assert_int_equal(clv_cgroup_threads("150000 100000"), 2);
    assert_int_equal(clv_cgroup_threads("100000 100000"), 1);
    assert_int_equal(clv_cgroup_threads("max 100000"), 0);
    assert_int_equal(clv_cgroup_threads("-1 100000"), 0);
    assert_int_equal(clv_cgroup_threads("5 0"), 0);
}

static void cpu_lists_are_counted(void **state)
{
    (void)state;
    assert_int_equal(clv_cpulist_count("0-3,8,10-11\n"), 7);
    assert_int_equal(clv_cpulist_count("0"), 1);
    assert_int_equal(clv_cpulist_count(""), 0);
    assert_int_equal(clv_cpulist_count("3-1"), 0);
    assert_int_equal(clv_cpulist_count("1-"), 0);
    assert_int_equal(clv_cpulist_count("0-99999999999999999999"), 0);
    assert_int_equal(clv_cpulist_count("1,x"), 0);
}

static void link_speeds_are_generations(void **state)
{
    (void)state;
    assert_int_equal(clv_pcie_generation("2.5 GT/s PCIe"), 1);
    assert_int_equal(clv_pcie_generation("8.0 GT/s PCIe"), 3);
    assert_int_equal(clv_pcie_generation("16.0 GT/s PCIe"), 4);
    assert_int_equal(clv_pcie_generation("32 GT/s"), 5);
    assert_int_equal(clv_pcie_generation("Unknown"), CLV_UNKNOWN);
    assert_int_equal(clv_pcie_generation("80.0 GT/s"), CLV_UNKNOWN);
}

static void os_release_loses_its_quotes(void **state)
{
    (void)state;
    char out[32];
    const char *text = "PRETTY_NAME=\"Debian 12\"\nNAME='Debian'\nVERSION_ID=12\nBAD=\"x\n";
    assert_true(clv_os_release_value(text, "NAME", out, sizeof out));
    assert_string_equal(out, "Debian");
    assert_true(clv_os_release_value(text, "VERSION_ID", out, sizeof out));
    assert_string_equal(out, "12");
    assert_true(clv_os_release_value(text, "BAD", out, sizeof out));
    assert_string_equal(out, "\"x");
    assert_false(clv_os_release_value(text, "ID", out, sizeof out));
}

static void pci_ids_name_devices(void **state)
{
    (void)state;
    char out[64];
    const char *text = "# comment\n1002  AMD\n\t731f  Navi 10\n\t\t1002 1 sub\n10de  NVIDIA\n"
                       "\t1e07  TU102 [GeForce RTX 2080 Ti]\n8086  Intel\n\t1e07  other\n";
    assert_true(clv_pci_ids_name(text, 0x10DE, 0x1E07, out, sizeof out));
    assert_string_equal(out, "TU102 [GeForce RTX 2080 Ti]");
    assert_false(clv_pci_ids_name(text, 0x10DE, 0x731F, out, sizeof out));
    assert_false(clv_pci_ids_name(text, 0x1234, 0x1E07, out, sizeof out));
}

static void fdinfo_counts_resident_memory(void **state)
{
    (void)state;
    char address[32];
    uint64_t client, bytes;
    assert_true(clv_fdinfo_parse("pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t12\n"
                                 "drm-pdev:\t0000:03:00.0\ndrm-resident-vram0:\t3 MiB\n"
                                 "drm-resident-vram1:\t5 KiB\ndrm-resident-system:\t9 MiB\n",
                                 address, sizeof address, &client, &bytes));
    assert_string_equal(address, "0000:03:00.0");
    assert_int_equal(client, 12);
    assert_int_equal(bytes, 3 * 1048576 + 5 * 1024);
    assert_false(
        clv_fdinfo_parse("pos:\t0\nflags:\t02\n", address, sizeof address, &client, &bytes));
    assert_false(clv_fdinfo_parse("drm-pdev:\ta\ndrm-client-id:\tx\n", address, sizeof address,
                                  &client, &bytes));
}

static void icd_files_hold_one_library(void **state)
{
    (void)state;
    static char library[CLV_ICD_NAME], longest[CLV_ICD_NAME + 1];
    const char *problem;
    assert_true(clv_icd_parse("  libpocl.so.2 \r\nsecond", 23, library, &problem));
    assert_string_equal(library, "libpocl.so.2");
    assert_true(clv_icd_parse("/a b/lib.so", 11, library, &problem));
    assert_string_equal(library, "/a b/lib.so");
    assert_false(clv_icd_parse("", 0, library, &problem));
    assert_string_equal(problem, "the file is empty");
    assert_false(clv_icd_parse("\n\n", 2, library, &problem));
    assert_false(clv_icd_parse("\x7f"
                               "ELF\2\1",
                               6, library, &problem));
    assert_false(clv_icd_parse("a\0b", 3, library, &problem));
    memset(longest, 'x', sizeof longest);
    assert_false(clv_icd_parse(longest, sizeof longest, library, &problem));
    assert_string_equal(problem, "the file holds no library name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meminfo_gives_bytes),
        cmocka_unit_test(cpuinfo_gives_the_first_value),
        cmocka_unit_test(isa_keeps_what_matters),
        cmocka_unit_test(cgroup_paths_are_found),
        cmocka_unit_test(cgroup_limits_know_their_none),
        cmocka_unit_test(cpu_lists_are_counted),
        cmocka_unit_test(link_speeds_are_generations),
        cmocka_unit_test(os_release_loses_its_quotes),
        cmocka_unit_test(pci_ids_name_devices),
        cmocka_unit_test(fdinfo_counts_resident_memory),
        cmocka_unit_test(icd_files_hold_one_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
