/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts about the operating system, the processor, the memory and the limits of both from the kernel's text
 * files. */
#define _GNU_SOURCE
#include "probe/host/host.h"

#include "base/alloc.h"
#include "probe/host/kernel_text.h"
#include "probe/host/small_file.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

static void read_system(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    char text[8192], value[256];
    struct utsname name;
    if (uname(&name) == 0) {
        host->kernel = clv_machine_text(machine, "%s %s", name.sysname, name.release);
        host->arch = clv_machine_keep(machine, name.machine);
    }
    if (!clv_small_read(root, text, sizeof text, "/etc/os-release")) return;
    if (clv_os_release_value(text, "NAME", value, sizeof value))
        host->os_name = clv_machine_foreign(machine, value, sizeof value);
    if (clv_os_release_value(text, "VERSION_ID", value, sizeof value))
        host->os_version = clv_machine_foreign(machine, value, sizeof value);
}

static void read_container(clv_machine *machine, const char *root)
{
    static const char *const marks[] = { "/.dockerenv", "/run/.containerenv", "/dev/.lxc" };
    clv_probe_host *host = &machine->report.host;
    char path[512], text[4096];
    for (size_t i = 0; i < CLV_LEN(marks); ++i) {
        snprintf(path, sizeof path, "%s%s", root, marks[i]);
        if (access(path, F_OK) == 0) host->container = CLV_YES;
    }
    if (host->container == CLV_MAYBE && clv_small_read(root, text, sizeof text, "/proc/1/cgroup") &&
        (strstr(text, "docker") || strstr(text, "kubepods") || strstr(text, "/lxc/")))
        host->container = CLV_YES;
    snprintf(path, sizeof path, "%s/run/systemd/system", root);
    if (host->container == CLV_MAYBE && access(path, F_OK) == 0) host->container = CLV_NO;
}

static void read_hypervisor(clv_machine *machine)
{
#if defined(__x86_64__) || defined(__i386__)
    static const struct {
        const char *signature, *name;
    } known[] = {
        { "KVMKVMKVM", "KVM" },           { "Microsoft Hv", "Hyper-V" },
        { "VMwareVMware", "VMware" },     { "XenVMMXenVMM", "Xen" },
        { "TCGTCGTCGTCG", "QEMU" },       { "bhyve bhyve ", "bhyve" },
        { "VBoxVBoxVBox", "VirtualBox" },
    };
    unsigned a, b, c, d;
    /* bit 31 is set under a hypervisor */
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31)) return;
    __cpuid(0x40000000, a, b, c, d);
    char signature[13] = { 0 };
    memcpy(signature, &b, 4), memcpy(signature + 4, &c, 4), memcpy(signature + 8, &d, 4);
    machine->report.host.hypervisor = clv_machine_foreign(machine, signature, sizeof signature);
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcmp(signature, known[i].signature) == 0)
            machine->report.host.hypervisor = known[i].name;
#else
    (void)machine;
#endif
}

/* Counts cores and packages without hwloc: distinct pairs (package, core) among the CPUs that are online. */
static void read_plain_topology(clv_machine *machine, const char *root)
{
    enum { MOST_CPUS = 4096 };
    clv_probe_host *host = &machine->report.host;
    char online[4096];
    if (!clv_small_read(root, online, sizeof online, "/sys/devices/system/cpu/online")) return;
    host->threads = clv_cpulist_count(online);
    unsigned firsts = 0, packages = 0; /* each core is counted at its first hardware thread */
    for (unsigned cpu = 0; cpu < MOST_CPUS; ++cpu) {
        char list[256];
        const char *folder = "/sys/devices/system/cpu/cpu";
        if (!clv_small_read(root, list, sizeof list, "%s%u/topology/thread_siblings_list", folder,
                            cpu))
            break;
        if ((unsigned)atoi(list) == cpu) ++firsts;
        if (clv_small_read(root, list, sizeof list, "%s%u/topology/core_siblings_list", folder,
                           cpu) &&
            (unsigned)atoi(list) == cpu)
            ++packages;
    }
    host->cores = firsts;
    host->packages = packages;
    host->topology_source = "/sys/devices/system/cpu";
}

static void read_cpu(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    char *text = clv_alloc(CLV_SMALL_FILE, 1), value[4096];
    if (!text) {
        machine->failed = true;
        return;
    }
    if (clv_small_read(root, text, CLV_SMALL_FILE, "/proc/cpuinfo")) {
        if (clv_cpuinfo_value(text, "model name", value, sizeof value))
            host->cpu_model = clv_machine_foreign(machine, value, sizeof value);
        if (clv_cpuinfo_value(text, "vendor_id", value, sizeof value))
            host->cpu_vendor = clv_machine_foreign(machine, value, sizeof value);
        clv_text isa = { 0 };
        if (clv_cpuinfo_value(text, "flags", value, sizeof value) ||
            clv_cpuinfo_value(text, "Features", value, sizeof value))
            clv_isa_text(value, &isa);
        host->isa = isa.length ? clv_machine_keep(machine, isa.data) : NULL;
        clv_text_clear(&isa);
        double mhz;
        if (clv_cpuinfo_value(text, "cpu MHz", value, sizeof value) &&
            clv_parse_double(value, &mhz) && mhz > 0) {
            host->freq_max_mhz = mhz;
            host->freq_source = "/proc/cpuinfo, the clock of the moment";
        }
    }
    clv_free(text);
    const uint64_t khz =
        clv_small_number(root, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (khz != CLV_UNKNOWN && khz) {
        host->freq_max_mhz = (double)khz / 1000;
        host->freq_source = "cpufreq";
    }
}

/* Returns the smallest limit of a cgroup and its ancestors. `v1` is the name of a hierarchy of cgroup v1; "" stands for
 * v2. */
static uint64_t smallest_limit(const char *root, const char *cgroup, const char *v1,
                               const char *file, uint64_t (*read)(const char *text))
{
    char path[512], text[128], mount[64];
    uint64_t least = CLV_UNKNOWN;
    if (!clv_cgroup_path(cgroup, v1, path, sizeof path)) return least;
    snprintf(mount, sizeof mount, "/sys/fs/cgroup%s%s", *v1 ? "/" : "", v1);
    for (char *end = path + strlen(path);;) {
        if (clv_small_read(root, text, sizeof text, "%s%s/%s", mount, path, file)) {
            const uint64_t limit = read(text);
            least = CLV_MIN(least, limit);
        }
        if (end == path) break;
        end = strrchr(path, '/');
        *end = '\0';
    }
    return least;
}

static uint64_t threads_of_quota(const char *text)
{
    const unsigned threads = clv_cgroup_threads(text);
    return threads ? threads : CLV_UNKNOWN;
}

/* Returns the thread limit from cgroup v1, which has quota and period in two files. */
static uint64_t threads_of_v1(const char *root, const char *cgroup)
{
    char path[512], quota[64], period[64], both[140];
    uint64_t least = CLV_UNKNOWN;
    if (!clv_cgroup_path(cgroup, "cpu", path, sizeof path)) return least;
    for (char *end = path + strlen(path);;) {
        if (clv_small_read(root, quota, sizeof quota, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us",
                           path) &&
            clv_small_read(root, period, sizeof period, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us",
                           path)) {
            snprintf(both, sizeof both, "%s %s", quota, period);
            least = CLV_MIN(least, threads_of_quota(both));
        }
        if (end == path) return least;
        end = strrchr(path, '/');
        *end = '\0';
    }
}

/* Returns the number of cores in the affinity mask, on machines of any size. */
static unsigned cores_of_affinity(void)
{
    enum { MOST = 1 << 16 };
    unsigned count = 0;
    for (int room = 1024; room <= MOST && !count; room *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        const size_t bytes = CPU_ALLOC_SIZE((size_t)room);
        if (set && sched_getaffinity(0, bytes, set) == 0) count = (unsigned)CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
    }
    const long online = count ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : CLV_MAX(count, 1u);
}

unsigned clv_host_threads(const char *root)
{
    char cgroup[8192];
    const unsigned cores = cores_of_affinity();
    if (!clv_small_read(root, cgroup, sizeof cgroup, "/proc/self/cgroup")) return cores;
    const uint64_t v2 = smallest_limit(root, cgroup, "", "cpu.max", threads_of_quota);
    const uint64_t quota = CLV_MIN(v2, threads_of_v1(root, cgroup));
    return quota < cores ? (unsigned)quota : cores;
}

static void read_limits(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    char cgroup[8192];
    host->threads_allowed = clv_host_threads(root);
    if (!clv_small_read(root, cgroup, sizeof cgroup, "/proc/self/cgroup")) return;
    uint64_t bytes = smallest_limit(root, cgroup, "", "memory.max", clv_cgroup_bytes);
    const uint64_t v1 =
        smallest_limit(root, cgroup, "memory", "memory.limit_in_bytes", clv_cgroup_bytes);
    bytes = CLV_MIN(bytes, v1);
    if (bytes < host->memory_total_bytes) host->memory_limit_bytes = bytes;
}

static void read_memory(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    char text[8192];
    if (!clv_small_read(root, text, sizeof text, "/proc/meminfo")) return;
    host->memory_total_bytes = clv_meminfo_bytes(text, "MemTotal");
    host->memory_available_bytes = clv_meminfo_bytes(text, "MemAvailable");
    host->swap_total_bytes = clv_meminfo_bytes(text, "SwapTotal");
    host->memory_source = "/proc/meminfo";
}

/* Caps the available memory at the remainder of the cgroup's limit: the limit minus the memory in use (page cache
 * included). */
static void cap_available(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    if (host->memory_limit_bytes == CLV_UNKNOWN) return;
    char cgroup[8192], path[512];
    uint64_t used = CLV_UNKNOWN;
    if (clv_small_read(root, cgroup, sizeof cgroup, "/proc/self/cgroup")) {
        if (clv_cgroup_path(cgroup, "", path, sizeof path))
            used = clv_small_number(root, "/sys/fs/cgroup%s/memory.current", path);
        if (used == CLV_UNKNOWN && clv_cgroup_path(cgroup, "memory", path, sizeof path))
            used = clv_small_number(root, "/sys/fs/cgroup/memory%s/memory.usage_in_bytes", path);
    }
    uint64_t left = host->memory_limit_bytes;
    if (used != CLV_UNKNOWN) left -= CLV_MIN(left, used);
    if (left < host->memory_available_bytes) host->memory_available_bytes = left;
}

void clv_host_facts(clv_machine *machine, const char *root)
{
    clv_probe_host *host = &machine->report.host;
    read_system(machine, root);
    read_container(machine, root);
    read_hypervisor(machine);
    read_cpu(machine, root);
    read_memory(machine, root);
    if (!*root) clv_topology_facts(machine);
    if (!host->threads) read_plain_topology(machine, root);
    read_limits(machine, root);
    cap_available(machine, root);
    clv_pci_facts(machine, root);
}
