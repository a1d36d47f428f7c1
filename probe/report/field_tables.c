/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the members of schema "cleave.probe/1", in the order in which reports have them. */
#include "probe/report/fields.h"

#include "base/alloc.h"

/* A FACT is stored and read back; a JUDGED member is computed again by every reader. */
#define FACT(key, kind, member)                                      \
    {                                                                \
        GROUP, key, CLV_FIELD_##kind, true, offsetof(RECORD, member) \
    }
#define JUDGED(key, kind, member)                                     \
    {                                                                 \
        GROUP, key, CLV_FIELD_##kind, false, offsetof(RECORD, member) \
    }
#define TABLE(name, rows) const clv_fields name = { rows, CLV_LEN(rows) }

#define RECORD clv_probe_host
static const clv_field host[] = {
#define GROUP "os"
    FACT("name", TEXT, os_name),
    FACT("version", TEXT, os_version),
    FACT("kernel", TEXT, kernel),
    FACT("arch", TEXT, arch),
    FACT("container", MAYBE, container),
    FACT("hypervisor", TEXT, hypervisor),
#undef GROUP
#define GROUP "cpu"
    FACT("model", TEXT, cpu_model),
    FACT("vendor", TEXT, cpu_vendor),
    FACT("packages", COUNT, packages),
    FACT("cores", COUNT, cores),
    FACT("threads", COUNT, threads),
    FACT("threads_allowed", COUNT, threads_allowed),
    FACT("freq_max_mhz", REAL, freq_max_mhz),
    FACT("freq_source", TEXT, freq_source),
    FACT("isa", WORDS, isa),
    FACT("numa_nodes", COUNT, numa_nodes),
    FACT("source", TEXT, topology_source),
#undef GROUP
#define GROUP "memory"
    FACT("total_bytes", BYTES, memory_total_bytes),
    FACT("available_bytes", BYTES, memory_available_bytes),
    FACT("limit_bytes", BYTES, memory_limit_bytes),
    FACT("swap_total_bytes", BYTES, swap_total_bytes),
    FACT("source", TEXT, memory_source),
    FACT("hwloc_total_bytes", BYTES, hwloc_total_bytes),
#undef GROUP
#define GROUP NULL
    FACT("gpu_access", TEXT, gpu_access),
#undef GROUP
#define GROUP "lapack"
    FACT("found", MAYBE, lapack),
    FACT("library", TEXT, lapack_library),
#undef GROUP
#define GROUP NULL
};
TABLE(clv_host_fields, host);
#undef RECORD

#define RECORD clv_probe_cache
static const clv_field cache[] = {
    FACT("level", COUNT, level),           FACT("type", CACHE, type),
    FACT("bytes", BYTES, bytes),           FACT("count", COUNT, count),
    FACT("line_bytes", COUNT, line_bytes),
};
TABLE(clv_cache_fields, cache);
#undef RECORD

#define RECORD clv_probe_pci_gpu
static const clv_field pci_gpu[] = {
    FACT("pci", TEXT, address),
    FACT("vendor_id", UNSIGNED, vendor_id),
    FACT("device_id", UNSIGNED, device_id),
    FACT("class", UNSIGNED, pci_class),
    FACT("driver", TEXT, kernel_driver),
    FACT("name", TEXT, name),
    JUDGED("opencl", BOOL, has_opencl),
};
TABLE(clv_pci_gpu_fields, pci_gpu);
#undef RECORD

#define RECORD clv_probe_icd
static const clv_field icd[] = {
    FACT("file", TEXT, file),
    FACT("library", TEXT, library),
    FACT("library_path", TEXT, library_path),
    FACT("status", TEXT, status),
    FACT("signal", INT, signal),
    FACT("duration_s", REAL, duration_s),
    FACT("message", TEXT, message),
    FACT("driver_output", TEXT, driver_output),
};
TABLE(clv_icd_fields, icd);
#undef RECORD

#define RECORD clv_probe_platform
static const clv_field platform[] = {
    FACT("icd", INDEX, icd),
    FACT("ordinal", UNSIGNED, ordinal),
    FACT("name", TEXT, name),
    FACT("vendor", TEXT, vendor),
    JUDGED("vendor_norm", VENDOR, vendor_norm),
    FACT("version", TEXT, version),
    FACT("numeric_version", TEXT, numeric_version),
    FACT("profile", TEXT, profile),
    FACT("extensions", WORDS, extensions),
    FACT("message", TEXT, message),
};
TABLE(clv_platform_fields, platform);
#undef RECORD

#define RECORD clv_probe_device
static const clv_field device[] = {
    FACT("platform", INDEX, platform),
    FACT("ordinal", UNSIGNED, ordinal),
    JUDGED("id", TEXT, id),
    FACT("name", TEXT, name),
    JUDGED("name_clean", TEXT, name_clean),
    FACT("board_name", TEXT, board_name),
    FACT("vendor", TEXT, vendor),
    JUDGED("vendor_norm", VENDOR, vendor_norm),
    FACT("vendor_id", UNSIGNED, vendor_id),
    FACT("type", TYPES, type),
    JUDGED("class", CLASS, device_class),
    JUDGED("class_reason", TEXT, class_reason),
    FACT("integrated", MAYBE, integrated),
    FACT("integrated_source", TEXT, integrated_source),
    JUDGED("duplicate_of", INDEX, duplicate_of),
    JUDGED("primary", BOOL, primary),
#undef GROUP
#define GROUP "pci"
    FACT("address", TEXT, pci_address),
    FACT("source", TEXT, pci_source),
#undef GROUP
#define GROUP "pci.link"
    FACT("gen", BYTES, pci_link_gen),
    FACT("width", BYTES, pci_link_width),
#undef GROUP
#define GROUP NULL
    FACT("uuid", TEXT, uuid),
    FACT("driver_uuid", TEXT, driver_uuid),
    FACT("pci_device_id", BYTES, pci_device_id),
    FACT("numa_node", BYTES, numa_node),
    FACT("cpuset", TEXT, cpuset),
    FACT("version", TEXT, version),
    FACT("numeric_version", TEXT, numeric_version),
    FACT("c_version", TEXT, c_version),
    FACT("profile", TEXT, profile),
    FACT("driver_version", TEXT, driver_version),
    FACT("available", BOOL, available),
    FACT("compiler_available", BOOL, compiler_available),
#undef GROUP
#define GROUP "compute"
    FACT("units", COUNT, compute_units),
    JUDGED("units_kind", TEXT, units_kind),
    FACT("clock_mhz", REAL, clock_mhz),
    FACT("wavefront", BYTES, wavefront),
    FACT("subgroup_sizes", NUMBERS, subgroup_sizes),
    FACT("max_work_group", SIZE, max_work_group),
    FACT("max_work_item_sizes", SIZES3, max_work_item_sizes),
    FACT("preferred_multiple", SIZE, preferred_multiple),
    FACT("arch", TEXT, arch),
    FACT("address_bits", COUNT, address_bits),
    FACT("partition_max", UNSIGNED, partition_max),
    FACT("partition_by_counts", BOOL, partition_by_counts),
#undef GROUP
#define GROUP "memory"
    FACT("global_bytes", BYTES, global_bytes),
    FACT("free_bytes", BYTES, free_bytes),
    FACT("free_source", TEXT, free_source),
    FACT("free_time_of_query", TEXT, free_time),
    FACT("own_bytes", BYTES, own_bytes),
    FACT("max_alloc_bytes", BYTES, max_alloc_bytes),
    FACT("local_bytes", BYTES, local_bytes),
    FACT("local_type", LOCAL, local_is_global),
    FACT("constant_bytes", BYTES, constant_bytes),
    FACT("unified", BOOL, unified),
    FACT("cache_bytes", BYTES, cache_bytes),
    FACT("ecc", MAYBE, ecc),
    FACT("base_align_bits", COUNT, base_align_bits),
    FACT("vram_bytes", BYTES, vram_bytes),
    FACT("vram_source", TEXT, vram_source),
#undef GROUP
#define GROUP "features"
    FACT("fp16", BOOL, fp16),
    FACT("fp64", BOOL, fp64),
    FACT("fp64_emulated", MAYBE, fp64_emulated),
    FACT("fma", BOOL, fma),
    FACT("denorms_fp32", BOOL, denorms_fp32),
    FACT("correctly_rounded_div", BOOL, correctly_rounded_div),
    FACT("int64_atomics", BOOL, int64_atomics),
    FACT("float_atomics", MAYBE, float_atomics),
    FACT("dot8", MAYBE, dot8),
    FACT("images", BOOL, images),
    FACT("svm", WORDS, svm),
    FACT("subgroups", BOOL, subgroups),
    FACT("il_spirv", WORDS, il_versions),
    FACT("printf_bytes", BYTES, printf_bytes),
    FACT("out_of_order", BOOL, out_of_order),
    FACT("profiling", BOOL, profiling),
    FACT("timer_resolution_ns", BYTES, timer_resolution_ns),
    FACT("kernel_timeout", MAYBE, kernel_timeout),
#undef GROUP
#define GROUP NULL
    FACT("utilisation_percent", REAL, utilisation_percent),
    FACT("utilisation_source", TEXT, utilisation_source),
    FACT("extensions", WORDS, extensions),
    JUDGED("quirks", WORDS, quirks),
#undef GROUP
#define GROUP "flags"
    JUDGED("no_sub_devices", BOOL, flags.no_sub_devices),
    JUDGED("sub_devices_no_gain", BOOL, flags.sub_devices_no_gain),
    JUDGED("finish_does_not_wait", BOOL, flags.finish_does_not_wait),
    JUDGED("no_event_times", BOOL, flags.no_event_times),
    JUDGED("no_quoted_options", BOOL, flags.no_quoted_options),
    JUDGED("binaries_must_be_whole", BOOL, flags.binaries_must_be_whole),
    JUDGED("local_memory_must_fit", BOOL, flags.local_memory_must_fit),
    JUDGED("slow_barriers", BOOL, flags.slow_barriers),
    JUDGED("slow_first_launch", BOOL, flags.slow_first_launch),
    JUDGED("costly_binaries", BOOL, flags.costly_binaries),
    JUDGED("no_device_memory", BOOL, flags.no_device_memory),
    JUDGED("loop_limit", LIMIT, flags.loop_limit),
    JUDGED("few_registers", BOOL, flags.few_registers),
    JUDGED("slow_fp64", BOOL, flags.slow_fp64),
    JUDGED("short_launches", BOOL, flags.short_launches),
#undef GROUP
#define GROUP NULL
    JUDGED("usable", BOOL, usable),
    JUDGED("unusable_reason", TEXT, unusable_reason),
};
TABLE(clv_device_fields, device);
#undef RECORD

#define RECORD clv_probe_check
static const clv_field check[] = {
    FACT("ok", BOOL, ok),
    FACT("crashed", BOOL, crashed),
    FACT("build_s", REAL, build_s),
    FACT("run_s", REAL, run_s),
    FACT("max_error", REAL, max_error),
    FACT("loop_limit", BYTES, loop_limit),
    FACT("finish_waits", MAYBE, finish_waits),
    FACT("event_times", MAYBE, event_times),
    FACT("message", TEXT, message),
};
TABLE(clv_check_fields, check);
#undef RECORD

#define RECORD clv_probe_rates
static const clv_field rates[] = {
    FACT("fp32_gflops", REAL, fp32_gflops),
    FACT("fp64_gflops", REAL, fp64_gflops),
    FACT("fp16_gflops", REAL, fp16_gflops),
    FACT("int8_gops", REAL, int8_gops),
    FACT("global_gb_s", REAL, global_gb_s),
    FACT("h2d_gb_s", REAL, h2d_gb_s),
    FACT("d2h_gb_s", REAL, d2h_gb_s),
    FACT("launch_us", REAL, launch_us),
    FACT("date", TEXT, date),
    FACT("protocol", TEXT, protocol),
};
TABLE(clv_rate_fields, rates);
#undef RECORD

#define RECORD clv_probe_mode
static const clv_field mode[] = {
    JUDGED("recommended", MODE, recommended),
    JUDGED("reason", TEXT, reason),
    JUDGED("rule", TEXT, rule),
    JUDGED("primary_device", INDEX, primary_device),
    JUDGED("cpu_device", INDEX, cpu_device),
#undef GROUP
#define GROUP "thresholds"
    JUDGED("hybrid_bytes", BYTES, hybrid_bytes),
    JUDGED("gpu_bytes", BYTES, gpu_bytes),
#undef GROUP
#define GROUP NULL
    JUDGED("forced_by", TEXT, forced_by),
};
TABLE(clv_mode_fields, mode);
#undef RECORD

#define RECORD clv_probe_warning
static const clv_field warning[] = {
    JUDGED("code", TEXT, code),
    JUDGED("message", TEXT, message),
    JUDGED("hint", TEXT, hint),
};
TABLE(clv_warning_fields, warning);
