/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the table of known facts about drivers and chips, one row per fact. */
#include "probe/judge/quirks.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"

#include <ctype.h>
#include <string.h>

typedef bool condition(const clv_probe_device *device);

/* A row applies if all of its conditions that are set (not NULL or 0) hold. */
typedef struct row {
    clv_quirk quirk;
    const char *platform;      /* part of the platform's name */
    const char *device;        /* part of the device's name */
    const char *driver_before; /* first driver version without the quirk: "22.4" */
    condition *when;
    clv_probe_flags flags;
} row;

static bool quarter(const clv_probe_device *d)
{
    return d->max_alloc_bytes != CLV_UNKNOWN && d->global_bytes != CLV_UNKNOWN &&
           d->device_class != CLV_CLASS_CPU && d->max_alloc_bytes / 100 <= d->global_bytes / 390;
}

static bool embedded(const clv_probe_device *d)
{
    return d->profile && strcmp(d->profile, "EMBEDDED_PROFILE") == 0;
}

static bool two_gib(const clv_probe_device *d)
{
    return d->max_alloc_bytes == 0x7FFFFFFF && d->global_bytes != CLV_UNKNOWN &&
           d->global_bytes > 0x80000000u;
}

static bool no_timer(const clv_probe_device *d)
{
    return d->timer_resolution_ns == 0;
}

static bool no_event_times(const clv_probe_device *d)
{
    return no_timer(d) || !d->profiling;
}

static bool on_cpu(const clv_probe_device *d)
{
    return d->device_class == CLV_CLASS_CPU;
}

static bool amd_small_groups(const clv_probe_device *d)
{
    return clv_is_gpu(d) && d->vendor_norm == CLV_VENDOR_AMD && d->max_work_group == 256;
}

static bool shared_ram(const clv_probe_device *d)
{
    return d->device_class == CLV_CLASS_INTEGRATED_GPU;
}

static bool small_window(const clv_probe_device *d)
{
    return d->device_class == CLV_CLASS_DISCRETE_GPU && d->vendor_norm == CLV_VENDOR_INTEL &&
           d->global_bytes < 1000000000;
}

static bool intel_card(const clv_probe_device *d)
{
    return d->device_class == CLV_CLASS_DISCRETE_GPU && d->vendor_norm == CLV_VENDOR_INTEL &&
           !small_window(d);
}

static bool nvidia_3(const clv_probe_device *d)
{
    return d->vendor_norm == CLV_VENDOR_NVIDIA && clv_opencl_version(d->version) >= 300;
}

/* Returns whether registers are scarce. Intel's GPUs have 4 KiB of registers for 16 work-items. AMD's GPUs before RDNA
 * share 256 registers per lane among up to 10 waves; gfx90a and later have 512. */
static bool few_registers(const clv_probe_device *d)
{
    static const char *const more[] = { "gfx1", "gfx90a", "gfx94", "gfx95" };
    if (!clv_is_gpu(d)) return false;
    if (d->vendor_norm == CLV_VENDOR_INTEL) return true;
    if (d->vendor_norm != CLV_VENDOR_AMD || !d->arch) return false;
    for (size_t i = 0; i < CLV_LEN(more); ++i)
        if (clv_starts_with(d->arch, more[i])) return false;
    return clv_starts_with(d->arch, "gfx");
}

/* Returns true for all chips except those made for double precision, which compute it at 1/8 or more of the rate of
 * single precision: NVIDIA's compute capabilities x.0, 3.5 and 3.7, and AMD's gfx600, gfx701, gfx906 and Instinct
 * series. */
static bool slow_fp64(const clv_probe_device *d)
{
    static const char *const quick[] = { "sm_20",  "sm_35",  "sm_37",  "sm_60",  "sm_70",
                                         "sm_80",  "sm_90",  "sm_100", "gfx600", "gfx701",
                                         "gfx906", "gfx908", "gfx90a", "gfx94",  "gfx95" };
    if (!clv_is_gpu(d) || !d->fp64) return false;
    if (d->fp64_emulated == CLV_YES || d->vendor_norm == CLV_VENDOR_INTEL) return true;
    if ((d->vendor_norm != CLV_VENDOR_NVIDIA && d->vendor_norm != CLV_VENDOR_AMD) || !d->arch)
        return false;
    for (size_t i = 0; i < CLV_LEN(quick); ++i)
        if (clv_starts_with(d->arch, quick[i])) return false;
    return true;
}

static bool watchdog(const clv_probe_device *d)
{
    return d->kernel_timeout == CLV_YES;
}

static const row rows[] = {
    { .quirk = { "finish_returns_early", "clFinish returns before the kernels are done",
                 "measured: Mesa 22.3.6" },
      .platform = "rusticl",
      .driver_before = "23.1",
      .flags = { .finish_does_not_wait = true } },
    { .quirk = { "sub_devices_crash", "clCreateSubDevices crashes", "measured: Mesa 22.3.6" },
      .platform = "rusticl",
      .driver_before = "23.1",
      .flags = { .no_sub_devices = true } },
    { .quirk = { "quoted_options_crash", "a quoted space in build options crashes",
                 "measured: Mesa 22.3.6" },
      .platform = "rusticl",
      .driver_before = "23.1",
      .flags = { .no_quoted_options = true } },
    { .quirk = { "bad_binary_ends_process", "a damaged program binary ends the process",
                 "measured: Mesa 22.3.6" },
      .platform = "rusticl",
      .flags = { .binaries_must_be_whole = true } },
    { .quirk = { "loop_limit_65535",
                 "a work-item stops after 65,535 loop turns in total, without an error",
                 "measured: Mesa 22.3.6; LP_MAX_TGSI_LOOP_ITERATIONS in Mesa's source" },
      .device = "llvmpipe",
      .flags = { .loop_limit = 65535, .slow_barriers = true } },
    { .quirk = { "constants_of_the_renderer",
                 "compute units, clock and memory are constants, not this machine's",
                 "measured: Mesa 22.3.6" },
      .device = "llvmpipe" },
    { .quirk = { "no_event_times", "event times are missing or constant: the host's clock is used",
                 "measured: Mesa 22.3.6 reports timer resolution 0" },
      .platform = "rusticl",
      .when = no_event_times,
      .flags = { .no_event_times = true } },
    { .quirk = { "timer_resolution_0", "the profiling timer has no resolution", "OpenCL 1.2, 4.2" },
      .when = no_timer,
      .flags = { .no_event_times = true } },
    { .quirk = { "local_memory_aborts",
                 "more local memory than there is ends the process, not the launch",
                 "measured: PoCL 3.1" },
      .platform = "Portable Computing Language",
      .flags = { .local_memory_must_fit = true } },
    { .quirk = { "truncated_binary_aborts", "a truncated program binary ends the process",
                 "measured: PoCL 3.1" },
      .platform = "Portable Computing Language",
      .flags = { .binaries_must_be_whole = true } },
    { .quirk = { "needs_a_linker",
                 "ends the process at its first build where ld (Debian: binutils) is missing",
                 "measured: PoCL 3.1" },
      .platform = "Portable Computing Language" },
    { .quirk = { "compiles_at_launch",
                 "the first launch of every work-group size compiles the kernel, one at a time in "
                 "a "
                 "process, and asking for a program's binary compiles all its kernels once more",
                 "measured: PoCL 3.1, 8 s for 58 kernels, 10 s more for their binaries" },
      .platform = "Portable Computing Language",
      .flags = { .slow_first_launch = true, .costly_binaries = true } },
    { .quirk = { "slow_barriers", "loops over barriers are up to 50 times slower than without",
                 "measured: PoCL 3.1" },
      .platform = "Portable Computing Language",
      .when = on_cpu,
      .flags = { .slow_barriers = true } },
    { .quirk = { "sub_devices_serialise", "sub-devices run one after the other",
                 "measured: Intel's CPU runtime 2026.22" },
      .platform = "Intel(R) OpenCL",
      .when = on_cpu,
      .flags = { .sub_devices_no_gain = true } },
    { .quirk = { "placeholder_units", "compute units and clock are placeholders",
                 "seen: clvk reports 1 unit at 0 MHz" },
      .platform = "clvk" },
    { .quirk = { "max_alloc_quarter", "one buffer may hold a quarter of the memory at most",
                 "seen: NVIDIA's driver, AMD Radeon VII" },
      .when = quarter },
    { .quirk = { "max_alloc_2gib", "one buffer may hold 2 GiB - 1 at most",
                 "seen: rusticl, xmrig/xmrig issue 3768" },
      .when = two_gib },
    { .quirk = { "embedded_profile", "only the embedded profile is promised",
                 "seen: rusticl, xmrig/xmrig issue 3768" },
      .when = embedded },
    { .quirk = { "work_group_256", "work-groups of 256 although the hardware has more",
                 "seen: ROCm/ROCm issue 1779" },
      .when = amd_small_groups },
    { .quirk = { "memory_is_host_ram", "its memory is the host's: half of what is free may be used",
                 "seen: ROCm/ROCm issue 5616" },
      .when = shared_ram },
    { .quirk = { "no_resizable_bar", "without resizable BAR the driver shows a small window only",
                 "seen: intel/compute-runtime issue 624" },
      .when = small_window },
    { .quirk = { "shows_80_percent", "the driver shows about 80 % of the card's memory",
                 "seen: intel/compute-runtime issue 586" },
      .when = intel_card },
    { .quirk = { "queries_missing", "some OpenCL 3.0 queries and sub-groups are missing",
                 "seen: driver 470.63.01" },
      .when = nvidia_3 },
    { .quirk = { "watchdog", "the display's watchdog ends long kernels",
                 "CL_DEVICE_KERNEL_EXEC_TIMEOUT_NV" },
      .when = watchdog,
      .flags = { .short_launches = true } },
    { .quirk = { "few_registers", "kernels keep half as many sums in registers",
                 "GPU compilers: 64 sums per work-item spill on Arc and leave gfx906 2 waves of "
                 "10" },
      .when = few_registers,
      .flags = { .few_registers = true } },
    { .quirk = { "slow_fp64", "double precision runs at 1/16 of single precision or less",
                 "NVIDIA's and AMD's tables of throughput; Intel emulates it" },
      .when = slow_fp64,
      .flags = { .slow_fp64 = true } },
};

/* Returns whether a version is lower than the limit, comparing the numbers in the two texts one by one; all other
 * characters are separators. */
static bool version_before(const char *version, const char *limit)
{
    while (*version || *limit) {
        unsigned long a = 0, b = 0;
        while (*version && !isdigit((unsigned char)*version))
            ++version;
        while (*limit && !isdigit((unsigned char)*limit))
            ++limit;
        if (!*limit) return false;
        for (; isdigit((unsigned char)*version); ++version)
            if (a < 1000000000) a = a * 10 + (unsigned long)(*version - '0');
        for (; isdigit((unsigned char)*limit); ++limit)
            if (b < 1000000000) b = b * 10 + (unsigned long)(*limit - '0');
        if (a != b) return a < b;
    }
    return false;
}

static bool applies(const row *r, const clv_probe_platform *platform,
                    const clv_probe_device *device)
{
    if (r->platform && (!platform->name || !strstr(platform->name, r->platform))) return false;
    if (r->device && (!device->name || !strstr(device->name, r->device))) return false;
    if (r->driver_before &&
        (!device->driver_version || !version_before(device->driver_version, r->driver_before)))
        return false;
    return !r->when || r->when(device);
}

static void add_flags(clv_probe_flags *all, const clv_probe_flags *more)
{
    all->no_sub_devices |= more->no_sub_devices;
    all->sub_devices_no_gain |= more->sub_devices_no_gain;
    all->finish_does_not_wait |= more->finish_does_not_wait;
    all->no_event_times |= more->no_event_times;
    all->no_quoted_options |= more->no_quoted_options;
    all->binaries_must_be_whole |= more->binaries_must_be_whole;
    all->local_memory_must_fit |= more->local_memory_must_fit;
    all->slow_barriers |= more->slow_barriers;
    all->slow_first_launch |= more->slow_first_launch;
    all->costly_binaries |= more->costly_binaries;
    all->no_device_memory |= more->no_device_memory;
    all->few_registers |= more->few_registers;
    all->slow_fp64 |= more->slow_fp64;
    all->short_launches |= more->short_launches;
    if (more->loop_limit && (!all->loop_limit || more->loop_limit < all->loop_limit))
        all->loop_limit = more->loop_limit;
}

/* Applies findings about this very device, which override the table's general facts. */
void clv_quirk_findings(const clv_probe_check *check, clv_probe_flags *flags)
{
    if (!check->done || !check->ok) return;
    flags->loop_limit = check->loop_limit == CLV_UNKNOWN ? 0 : check->loop_limit;
    if (check->finish_waits != CLV_MAYBE)
        flags->finish_does_not_wait = check->finish_waits == CLV_NO;
    if (check->event_times == CLV_NO) flags->no_event_times = true;
}

void clv_apply_quirks(clv_machine *machine, const clv_probe_platform *platform,
                      clv_probe_device *device)
{
    clv_text names = { 0 };
    device->flags = (clv_probe_flags){
        .no_sub_devices = !device->partition_by_counts || device->partition_max < 2,
        .no_event_times = !device->profiling,
        .no_device_memory = device->device_class != CLV_CLASS_DISCRETE_GPU &&
                            device->device_class != CLV_CLASS_ACCELERATOR,
    };
    for (size_t i = 0; i < CLV_LEN(rows); ++i) {
        if (!applies(&rows[i], platform, device)) continue;
        clv_text_add(&names, "%s%s", names.length ? " " : "", rows[i].quirk.name);
        add_flags(&device->flags, &rows[i].flags);
    }
    clv_quirk_findings(&device->check, &device->flags);
    device->quirks = clv_machine_keep(machine, clv_text_get(&names));
    if (names.failed) machine->failed = true;
    clv_text_clear(&names);
}

const clv_quirk *clv_quirk_find(const char *name)
{
    for (size_t i = 0; i < CLV_LEN(rows); ++i)
        if (strcmp(rows[i].quirk.name, name) == 0) return &rows[i].quirk;
    return NULL;
}
