/* SPDX-License-Identifier: Apache-2.0 */
/* probe/: free memory of GPUs, on trees of files and libraries that are made up here. */
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "probe/memory/free_memory.h"
#include "probe/host/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static clv_probe_device *add(clv_machine *m, const char *vendor, const char *address,
                             uint64_t bytes)
{
    clv_machine_add_platform(m);
    clv_probe_device *d = clv_machine_add_device(m);
    d->platform = m->report.platform_count - 1;
    d->type = "GPU", d->vendor = vendor, d->pci_address = address, d->global_bytes = bytes;
    return d;
}

/* A file of a PCI device in the tree ROOT. */
static void put(const char *root, const char *address, const char *name, const char *text)
{
    test_write(text, "%s/sys/bus/pci/devices/%s/%s", root, address, name);
}

static const char *tree(const char *root)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", test_temp_dir(), root);
    return path;
}

static void amds_card_is_read_from_sysfs(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    const char *at = "0000:0d:00.0";
    put("amd", at, "mem_info_vram_total", "17163091968\n");
    put("amd", at, "mem_info_vram_used", "1163091968\n");
    put("amd", at, "mem_info_gtt_total", "16000000000\n");
    put("amd", at, "mem_info_gtt_used", "0\n");
    put("amd", at, "numa_node", "1\n");
    put("amd", at, "local_cpulist", "0-15,32-47\n");
    put("amd", at, "max_link_speed", "16.0 GT/s PCIe\n");
    put("amd", at, "current_link_width", "16\n");
    put("amd", at, "gpu_busy_percent", "37\n");
    put("amd", at, "device", "0x73bf\n");
    clv_probe_device *d = add(m, "Advanced Micro Devices, Inc.", at, UINT64_C(17163091968));
    clv_free_memory_facts(m, 0, tree("amd"));
    assert_int_equal(d->free_bytes, UINT64_C(16000000000));
    assert_string_equal(d->free_source, "sysfs mem_info_vram");
    assert_non_null(d->free_time);
    assert_int_equal(d->vram_bytes, UINT64_C(17163091968));
    assert_int_equal(d->numa_node, 1);
    assert_string_equal(d->cpuset, "0-15,32-47");
    assert_int_equal(d->pci_link_gen, 4);
    assert_int_equal(d->pci_link_width, 16);
    assert_true(d->utilisation_percent == 37);
    assert_int_equal(d->pci_device_id, 0x73BF);
    clv_machine_free(m);
}

static void an_apu_counts_its_window_on_host_memory(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    const char *at = "0000:65:00.0";
    put("apu", at, "mem_info_vram_total", "4294967296\n");
    put("apu", at, "mem_info_vram_used", "294967296\n");
    put("apu", at, "mem_info_gtt_total", "12000000000\n");
    put("apu", at, "mem_info_gtt_used", "2000000000\n");
    clv_probe_device *d = add(m, "AMD", at, UINT64_C(14599004160));
    clv_free_memory_facts(m, 0, tree("apu"));
    assert_int_equal(d->free_bytes, UINT64_C(14000000000));
    assert_string_equal(d->free_source, "sysfs mem_info_vram and mem_info_gtt");
    clv_machine_free(m);
}

static void odd_files_mean_unknown(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "max\n", "-1\n", "99999999999999999999999\n",
                                         "12x\n" };
    for (size_t i = 0; i < CLV_LEN(texts); ++i) {
        clv_machine *m = clv_machine_create();
        const char *at = "0000:01:00.0";
        put("odd", at, "mem_info_vram_total", texts[i]);
        put("odd", at, "mem_info_vram_used", "5\n");
        put("odd", at, "numa_node", texts[i]);
        put("odd", at, "local_cpulist", texts[i]);
        put("odd", at, "current_link_width", texts[i]);
        put("odd", at, "gpu_busy_percent", texts[i]);
        clv_probe_device *d = add(m, "AMD", at, 1000);
        clv_free_memory_facts(m, 0, tree("odd"));
        assert_int_equal(d->free_bytes, CLV_UNKNOWN);
        assert_int_equal(d->vram_bytes, CLV_UNKNOWN);
        assert_int_equal(d->numa_node, CLV_UNKNOWN);
        assert_null(d->cpuset);
        assert_int_equal(d->pci_link_width, CLV_UNKNOWN);
        assert_true(d->utilisation_percent < 0);
        clv_machine_free(m);
    }
}

static void used_beyond_total_is_not_believed(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    put("more", "0000:01:00.0", "mem_info_vram_total", "100\n");
    put("more", "0000:01:00.0", "mem_info_vram_used", "101\n");
    clv_probe_device *d = add(m, "AMD", "0000:01:00.0", 100);
    clv_free_memory_facts(m, 0, tree("more"));
    assert_int_equal(d->free_bytes, CLV_UNKNOWN);
    clv_machine_free(m);
}

static void nvml_is_asked_by_address_or_uuid(void **state)
{
    (void)state;
    static const char *const libraries[] = { FAKE_NVML_1, FAKE_NVML_2 };
    static const uint64_t left[] = { UINT64_C(2500000000), UINT64_C(3000000000) };
    for (size_t i = 0; i < 2; ++i) {
        clv_machine *m = clv_machine_create();
        add(m, "NVIDIA Corporation", "0000:03:00.0", UINT64_C(11000000000)); /* not in NVML */
        add(m, "NVIDIA Corporation", "0000:1b:00.0", UINT64_C(11000000000));
        add(m, "NVIDIA Corporation", NULL, UINT64_C(11000000000))->uuid =
            "04c88413-cbeb-4721-3976-7ec59802f5e9";
        add(m, "AMD", "0000:1b:00.0", 100);
        assert_true(clv_nvml_facts(m, 0, libraries[i]));
        assert_int_equal(m->devices[0].free_bytes, CLV_UNKNOWN);
        assert_int_equal(m->devices[1].free_bytes, left[i]);
        assert_int_equal(m->devices[1].vram_bytes, UINT64_C(11000000000));
        assert_string_equal(m->devices[1].free_source, "NVML");
        assert_true(m->devices[1].utilisation_percent == 42);
        assert_int_equal(m->devices[2].free_bytes, left[i]);
        assert_int_equal(m->devices[3].free_bytes, CLV_UNKNOWN);
        clv_machine_free(m);
    }
}

static void a_missing_library_is_no_failure(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    add(m, "NVIDIA Corporation", "0000:1b:00.0", 100);
    assert_false(clv_nvml_facts(m, 0, "libthere-is-no-such-library.so.1"));
    assert_false(clv_nvml_facts(m, 0, FAKE_LEVEL_ZERO)); /* a library without NVML's functions */
    assert_false(clv_level_zero_facts(m, 0, FAKE_NVML_1));
    assert_int_equal(m->devices[0].free_bytes, CLV_UNKNOWN);
    clv_machine_free(m);
}

static void level_zero_sums_the_cards_memories(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device *d = add(m, "Intel(R) Corporation", "0000:03:00.0", UINT64_C(13000000000));
    assert_true(clv_level_zero_facts(m, 0, FAKE_LEVEL_ZERO));
    assert_int_equal(d->vram_bytes, UINT64_C(16000000000));
    assert_int_equal(d->free_bytes, UINT64_C(11000000000)); /* 3 + 8 of 16 GB */
    clv_machine_free(m);
}

static void all_free_without_privilege_means_unknown(void **state)
{
    (void)state;
    clv_machine *m = clv_machine_create();
    clv_probe_device *d = add(m, "Intel(R) Corporation", "0000:03:00.0", UINT64_C(13000000000));
    assert_true(clv_level_zero_facts(m, 0, FAKE_LEVEL_ZERO_ALL));
    assert_int_equal(d->vram_bytes, UINT64_C(16000000000));
    assert_int_equal(d->free_bytes, CLV_UNKNOWN);
    clv_machine_free(m);
}

static void fdinfo_counts_every_client_once(void **state)
{
    (void)state;
    const char *text = "drm-driver:\txe\ndrm-client-id:\t%d\ndrm-pdev:\t0000:03:00.0\n"
                       "drm-resident-vram0:\t1000 KiB\n";
    char file[256];
    snprintf(file, sizeof file, text, 1);
    test_write(file, "fd/proc/100/fdinfo/3");
    test_write(file, "fd/proc/100/fdinfo/4"); /* the same client through another file */
    snprintf(file, sizeof file, text, 2);
    test_write(file, "fd/proc/200/fdinfo/3");
    test_write("pos:\t0\n", "fd/proc/200/fdinfo/0");
    clv_machine *m = clv_machine_create();
    clv_probe_device *d = add(m, "Intel(R) Corporation", "0000:03:00.0", 10000000);
    add(m, "Intel(R) Corporation", "0000:04:00.0", 10000000);
    clv_fdinfo_facts(m, 0, tree("fd"));
    assert_int_equal(d->free_bytes, 10000000 - 2 * 1024000);
    assert_int_equal(m->devices[1].free_bytes, CLV_UNKNOWN);
    clv_machine_free(m);
}

static void gpus_on_the_bus_are_listed(void **state)
{
    (void)state;
    put("bus", "0000:01:00.0", "class", "0x030000\n");
    put("bus", "0000:01:00.0", "vendor", "0x10de\n");
    put("bus", "0000:01:00.0", "device", "0x1e07\n");
    put("bus", "0000:01:00.1", "class", "0x040300\n"); /* its sound device */
    put("bus", "0000:02:00.0", "class", "0x038000\n");
    put("bus", "0000:02:00.0", "vendor", "0x1002\n");
    put("bus", "0000:02:00.0", "device", "0x740f\n");
    test_write("10de  NVIDIA\n\t1e07  TU102\n", "bus/usr/share/misc/pci.ids");
    char link[500];
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/0000:01:00.0/driver", tree("bus"));
    assert_int_equal(symlink("../../../bus/pci/drivers/nvidia", link), 0);
    clv_machine *m = clv_machine_create();
    clv_pci_facts(m, tree("bus"));
    assert_int_equal(m->report.pci_gpu_count, 2);
    assert_string_equal(m->pci_gpus[0].address, "0000:01:00.0");
    assert_string_equal(m->pci_gpus[0].name, "TU102");
    assert_string_equal(m->pci_gpus[0].kernel_driver, "nvidia");
    assert_int_equal(m->pci_gpus[1].device_id, 0x740F);
    assert_null(m->pci_gpus[1].kernel_driver);
    clv_machine_free(m);
}

static void closed_gpu_nodes_are_noticed(void **state)
{
    (void)state;
    int status = -1;
    chmod(test_write("", "dev/dev/dri/renderD128"), 0);
    chmod(test_temp_dir(), 0711);
    const pid_t pid = fork();
    if (pid == 0) { /* nothing is closed to root: be somebody else */
        clv_text sentence = { 0 };
        if (geteuid() == 0 && setuid(65534)) _exit(2);
        const bool ok = clv_gpu_access_problem(tree("dev"), &sentence);
        _exit(!ok || !strstr(clv_text_get(&sentence), "/dev/dri/renderD128"));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void limits_of_a_container_are_found(void **state)
{
    (void)state;
    test_write("MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 0 kB\n",
               "box/proc/meminfo");
    test_write("0::/outer/inner\n", "box/proc/self/cgroup");
    test_write("max\n", "box/sys/fs/cgroup/outer/inner/memory.max");
    test_write("4096000000\n", "box/sys/fs/cgroup/outer/memory.max");
    test_write("96000000\n", "box/sys/fs/cgroup/outer/inner/memory.current");
    test_write("50000 100000\n", "box/sys/fs/cgroup/outer/inner/cpu.max");
    test_write("model name\t: Test Chip\nflags\t\t: avx2 fma\n", "box/proc/cpuinfo");
    test_write("0-3\n", "box/sys/devices/system/cpu/online");
    for (int cpu = 0; cpu < 4; ++cpu) {
        const char *base = "box/sys/devices/system/cpu/cpu";
        test_write(cpu < 2 ? "0-1\n" : "2-3\n", "%s%d/topology/thread_siblings_list", base, cpu);
        test_write("0-3\n", "%s%d/topology/core_siblings_list", base, cpu);
    }
    test_write("", "box/.dockerenv");
    clv_machine *m = clv_machine_create();
    clv_host_facts(m, tree("box"));
    const clv_probe_host *host = &m->report.host;
    assert_int_equal(host->memory_total_bytes, UINT64_C(16384000000));
    assert_int_equal(host->memory_limit_bytes, UINT64_C(4096000000));
    assert_int_equal(host->memory_available_bytes, UINT64_C(4000000000));
    assert_int_equal(host->threads_allowed, 1);
    assert_int_equal(host->cores, 2);
    assert_int_equal(host->threads, 4);
    assert_int_equal(host->packages, 1);
    assert_int_equal(host->container, CLV_YES);
    assert_string_equal(host->cpu_model, "Test Chip");
    assert_string_equal(host->isa, "avx2 fma");
    clv_machine_free(m);
}

/* A quota may stand above our own group, and where the name of ours means nothing: a container sees the host's
 * name in /proc/self/cgroup, but only its own files. */
static void quotas_of_old_cgroups_are_found(void **state)
{
    (void)state;
    const unsigned here = clv_host_threads("");
    assert_int_equal(clv_host_threads(tree("empty")), here);
    test_write("2:cpu,cpuacct:/docker/abc\n1:memory:/docker/abc\n", "old/proc/self/cgroup");
    assert_int_equal(clv_host_threads(tree("old")), here);
    test_write("-1\n", "old/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us");
    test_write("100000\n", "old/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us");
    assert_int_equal(clv_host_threads(tree("old")), here);
    test_write("100000\n", "old/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    test_write("100000\n", "old/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    assert_int_equal(clv_host_threads(tree("old")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_of_old_cgroups_are_found),
        cmocka_unit_test(amds_card_is_read_from_sysfs),
        cmocka_unit_test(an_apu_counts_its_window_on_host_memory),
        cmocka_unit_test(odd_files_mean_unknown),
        cmocka_unit_test(used_beyond_total_is_not_believed),
        cmocka_unit_test(nvml_is_asked_by_address_or_uuid),
        cmocka_unit_test(a_missing_library_is_no_failure),
        cmocka_unit_test(level_zero_sums_the_cards_memories),
        cmocka_unit_test(all_free_without_privilege_means_unknown),
        cmocka_unit_test(fdinfo_counts_every_client_once),
        cmocka_unit_test(gpus_on_the_bus_are_listed),
        cmocka_unit_test(closed_gpu_nodes_are_noticed),
        cmocka_unit_test(limits_of_a_container_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
