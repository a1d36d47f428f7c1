/* SPDX-License-Identifier: Apache-2.0 */
/* Examines the host's CPU and all OpenCL devices of this machine, recommends a mode, and reports the facts in plain
 * structs. */
#ifndef CLEAVE_PROBE_H
#define CLEAVE_PROBE_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/* A value that is not known is never 0: unknown counts and bytes are CLV_UNKNOWN, unknown texts are NULL, and unknown
 * rates and times are negative. */
#define CLV_UNKNOWN UINT64_MAX

typedef enum clv_tristate { CLV_MAYBE = 0, CLV_NO = 1, CLV_YES = 2 } clv_tristate;

typedef enum clv_device_class {
    CLV_CLASS_DISCRETE_GPU,
    CLV_CLASS_INTEGRATED_GPU,
    CLV_CLASS_CPU,
    CLV_CLASS_ACCELERATOR,
    CLV_CLASS_SOFTWARE, /**< a software rasteriser such as llvmpipe, whatever type it reports */
} clv_device_class;

typedef enum clv_vendor {
    CLV_VENDOR_OTHER,
    CLV_VENDOR_NVIDIA,
    CLV_VENDOR_AMD,
    CLV_VENDOR_INTEL,
    CLV_VENDOR_ARM,
    CLV_VENDOR_QUALCOMM,
    CLV_VENDOR_APPLE,
    CLV_VENDOR_POCL,
    CLV_VENDOR_MESA,
} clv_vendor;

typedef enum clv_mode {
    CLV_MODE_AUTO = 0,  /**< the probe's recommendation */
    CLV_MODE_CPU,       /**< OpenCL CPU devices */
    CLV_MODE_GPU,       /**< OpenCL GPU devices */
    CLV_MODE_HYBRID,    /**< OpenCL CPU and GPU devices */
    CLV_MODE_REFERENCE, /**< no OpenCL: every operation runs its plain C path */
} clv_mode;

/** One CPU cache level, as hwloc counts it. Frozen. */
typedef struct clv_probe_cache {
    unsigned level;
    char type; /**< 'd' data, 'i' instruction, 'u' unified */
    unsigned count, line_bytes;
    uint64_t bytes; /**< size of one such cache */
} clv_probe_cache;

typedef struct clv_probe_host {
    const char *os_name, *os_version, *kernel, *arch;
    clv_tristate container;
    const char *hypervisor;

    const char *cpu_model, *cpu_vendor;
    unsigned packages, cores, threads;
    unsigned threads_allowed; /**< threads that affinity and cgroup quota allow; at least 1 */
    unsigned numa_nodes;
    double freq_max_mhz;
    const char *freq_source;
    const char *isa; /**< the relevant extensions, separated by spaces: "avx2 fma avx512f" */
    const clv_probe_cache *caches;
    size_t cache_count;
    const char *topology_source; /**< "hwloc 2.9.0" */

    uint64_t memory_total_bytes, memory_available_bytes;
    uint64_t memory_limit_bytes; /**< cgroup; CLV_UNKNOWN = none */
    uint64_t swap_total_bytes, hwloc_total_bytes;
    const char *memory_source;

    const char *gpu_access; /**< GPU device nodes that this user may not open; NULL = none */

    /** Whether clv_eigvals finds a LAPACK. Only an isolated probe checks this, because loading one starts threads. */
    clv_tristate lapack;
    const char *lapack_library; /**< "liblapack.so.3"; NULL = none, or not checked */
} clv_probe_host;

/** A GPU on the PCI bus, whether or not OpenCL sees it. Frozen. */
typedef struct clv_probe_pci_gpu {
    const char *address; /**< "0000:03:00.0" */
    unsigned vendor_id, device_id, pci_class;
    const char *kernel_driver, *name;
    bool has_opencl;
} clv_probe_pci_gpu;

/** One installed OpenCL driver (an .icd file). */
typedef struct clv_probe_icd {
    const char *file;         /**< the .icd file; NULL: the loader found the driver by itself */
    const char *library;      /**< as written in the file */
    const char *library_path; /**< the file that was loaded, symbolic links resolved */
    const char *status; /**< ok missing no_platform crashed timeout hung_unkillable bad_output; in a
                             report made in-process: unchecked */
    int signal;         /**< 0 = none */
    double duration_s;
    const char *message, *driver_output;
} clv_probe_icd;

typedef struct clv_probe_platform {
    size_t icd;       /**< index into icds; SIZE_MAX if enumerated in-process */
    unsigned ordinal; /**< place in the loader's list, which differs from the report's order */
    const char *name, *vendor, *version, *numeric_version, *profile, *extensions;
    clv_vendor vendor_norm;
    const char *message; /**< why the platform shows no device, if the driver gave a reason */
} clv_probe_platform;

/** Rates that the probe's bench measured; negative = not measured. */
typedef struct clv_probe_rates {
    double fp32_gflops, fp64_gflops, fp16_gflops, int8_gops;
    double global_gb_s, h2d_gb_s, d2h_gb_s, launch_us;
    const char *date, *protocol;
} clv_probe_rates;

typedef struct clv_probe_check {
    bool done, ok;
    bool crashed; /**< the check's process crashed or hung: do not load its program binaries */
    double build_s, run_s, max_error;
    /** Largest number of loop iterations for which a work-item's result is right; CLV_UNKNOWN = no limit found. */
    uint64_t loop_limit;
    clv_tristate finish_waits; /**< clFinish returns only when the kernels are done */
    clv_tristate event_times;  /**< profiling times agree with the host's clock */
    const char *message;
} clv_probe_check;

/** What a program must do differently on this device. The probe derives it from its table of known quirks and from the
 *  check, so that no other code needs to know vendors. A well-behaved device has all-zero flags. */
typedef struct clv_probe_flags {
    bool no_sub_devices;         /**< clCreateSubDevices is not offered, or not safe to call */
    bool sub_devices_no_gain;    /**< sub-devices run one after the other */
    bool finish_does_not_wait;   /**< clFinish returns early: wait for events instead */
    bool no_event_times;         /**< profiling times are wrong: use the host's clock */
    bool no_quoted_options;      /**< a quoted space in build options crashes the compiler */
    bool binaries_must_be_whole; /**< loading a damaged program binary ends the process */
    bool local_memory_must_fit;  /**< too much local memory ends the process, not just a launch */
    bool slow_barriers;     /**< barriers cost far more than arithmetic: try kernels without any */
    bool slow_first_launch; /**< the first launch with each work-group size compiles */
    bool costly_binaries;   /**< the driver compiles every kernel again to return a program's
                                      binary; it has its own cache on disk */
    bool no_device_memory;  /**< buffers are host memory: use zero-copy and one queue */
    uint64_t loop_limit;    /**< total loop iterations of a work-item beyond which results are wrong
                              without an error; 0 = no such limit is known */
    bool few_registers;     /**< 64 sums per work-item do not fit into registers: kernels keep 32 */
    bool slow_fp64; /**< double precision runs at 1/16 of the speed of single precision or less */
    bool short_launches; /**< the system ends kernels that take seconds: jobs and products are cut
                              into launches of about 0.1 s */
} clv_probe_flags;

typedef struct clv_probe_device {
    size_t platform;  /**< index into platforms */
    unsigned ordinal; /**< within its platform */
    const char *id;   /**< stable name: "pci:0000:03:00.0", "uuid:...", "cpu:pocl", "name:...#0" */
    const char *name, *name_clean, *board_name, *vendor;
    clv_vendor vendor_norm;
    unsigned vendor_id;
    const char *type; /**< "GPU", "CPU", "ACCELERATOR", "CUSTOM", joined by '|' */
    clv_device_class device_class;
    const char *class_reason;
    clv_tristate integrated; /**< as the vendor's own query or the kernel driver says */
    const char *integrated_source;
    size_t duplicate_of; /**< index of the device with the same hardware, or SIZE_MAX */
    bool primary;        /**< of all entries for the same hardware, the one to use */

    const char *pci_address, *pci_source;
    const char *uuid, *driver_uuid;
    uint64_t pci_device_id, numa_node;
    uint64_t pci_link_gen, pci_link_width;
    const char *cpuset; /**< host threads near the device: "0-15,32-47" */

    const char *version, *numeric_version, *c_version, *profile, *driver_version;
    bool available, compiler_available;

    unsigned compute_units;
    const char *units_kind; /**< "cu", "sm", "eu", "core" */
    double clock_mhz;
    uint64_t wavefront;
    const char *subgroup_sizes; /**< "8 16 32" */
    size_t max_work_group, max_work_item_sizes[3], preferred_multiple;
    const char *arch; /**< "gfx1030", "sm_75" */
    unsigned address_bits;

    uint64_t global_bytes, free_bytes, max_alloc_bytes, local_bytes, constant_bytes, cache_bytes;
    const char *free_source, *free_time;
    /** What contexts of this process hold on the card; the same number in all entries for that card. */
    uint64_t own_bytes;
    bool local_is_global, unified;
    clv_tristate ecc;
    unsigned base_align_bits;
    uint64_t vram_bytes;
    const char *vram_source;

    bool fp16, fp64, fma, denorms_fp32, correctly_rounded_div, int64_atomics, images, subgroups;
    bool out_of_order, profiling;
    clv_tristate fp64_emulated, dot8, float_atomics, kernel_timeout;
    uint64_t timer_resolution_ns, printf_bytes;
    const char *svm, *il_versions;
    /** Largest number of sub-devices that the driver offers by counts; 0 or 1 = none. */
    unsigned partition_max;
    bool partition_by_counts;

    double utilisation_percent;
    const char *utilisation_source;
    const char *extensions;
    const char *quirks; /**< names of the quirk table's rows that apply, separated by spaces */
    clv_probe_flags flags;

    clv_probe_check check;
    clv_probe_rates measured;
    bool usable;
    const char *unusable_reason;

    /** cl_platform_id and cl_device_id; NULL in a report that came from a child or a file. */
    void *native_platform, *native_device;
} clv_probe_device;

typedef struct clv_probe_mode {
    clv_mode recommended;
    const char *reason;                /**< one sentence with the numbers */
    const char *rule;                  /**< "R0" to "R6" */
    size_t primary_device, cpu_device; /**< index or SIZE_MAX */
    uint64_t hybrid_bytes, gpu_bytes;  /**< least GPU memory for hybrid mode, and for GPU mode */
    const char *forced_by;             /**< "--mode", "CLEAVE_DEVICE", ...; NULL = nobody */
} clv_probe_mode;

typedef struct clv_probe_warning {
    const char *code, *message, *hint;
} clv_probe_warning;

/** The whole report; it owns all texts and arrays that it points to. These structs may gain fields in any release, so
 *  get elements of its arrays through the functions below, such as clv_probe_report_device. */
typedef struct clv_probe_report {
    const char *time_utc;  /**< NULL in a reproducible report */
    const char *simulated; /**< the file that stood in for the machine; NULL = the real one */
    bool isolated;         /**< every driver ran in its own process */
    double duration_s;
    clv_probe_host host;
    const char *loader_path, *loader_name, *loader_version, *layers;
    const clv_probe_icd *icds;
    size_t icd_count;
    const clv_probe_pci_gpu *pci_gpus;
    size_t pci_gpu_count;
    const clv_probe_platform *platforms;
    size_t platform_count;
    const clv_probe_device *devices;
    size_t device_count;
    clv_probe_mode mode;
    const clv_probe_warning *warnings;
    size_t warning_count;
} clv_probe_report;

typedef enum clv_bench {
    CLV_BENCH_NONE = 0,
    CLV_BENCH_QUICK, /**< about 3 s per device */
    CLV_BENCH_FULL,  /**< more repeats, larger buffers: about 10 s per device */
} clv_bench;

/** The probe calls this a few times per second while drivers work. `doing` is a line for the user. Return non-zero to
 *  cancel. */
typedef int clv_probe_progress(const char *doing, void *user);

/** If all fields but `size` are zero, the probe enumerates devices in-process, and the machine and the environment
 *  decide the mode. */
typedef struct clv_probe_options {
    size_t size;         /**< sizeof(clv_probe_options) */
    clv_mode mode;       /**< the mode to use; CLV_MODE_AUTO: $CLEAVE_MODE, else the rules decide */
    const char *devices; /**< the devices to use, such as "gpu,!name~Iris"; NULL: $CLEAVE_DEVICE */
    /** true: `mode` or `devices` counts even if it is zero, and its environment variable is not read. */
    bool mode_given, devices_given;
    const char *mode_by, *devices_by; /**< who chose them, for messages; NULL: "the caller" */
    bool isolate;      /**< run each driver in its own process, which contains a crash or a hang */
    double timeout_s;  /**< limit for each process; 0: 10 s (checks: 60 s, bench: 120 s) */
    bool check;        /**< build and run kernels on every device and compare the results, which are
                               kept on disk */
    clv_bench bench;   /**< measure every device; the rates are kept on disk */
    bool measure_free; /**< fill the memory of devices that have their own to see how much is free;
                               other programs may run out of memory */
    bool reproducible; /**< leave out what changes from run to run: times and free memory */
    bool forget;       /**< do not show checks and rates that earlier runs left on disk */
    const char *simulate; /**< take the machine from this file: a saved report or device profiles */
    const char *scenario; /**< which scenario, or which profile, of a profile file */
    const char *helper;   /**< the helper program for `isolate`; NULL: the installed one */
    clv_probe_progress *progress; /**< NULL: none */
    void *progress_user;
} clv_probe_options;

/**
 * Examines the machine and recommends a mode. The probe changes no environment variable and prints nothing; drivers may
 * print, unless you set `isolate`.
 *
 * @param options  NULL means all defaults.
 * @param report   out; free with clv_probe_free. A machine without OpenCL gives a report too (mode cpu).
 * @return CLV_OK, also with broken drivers (see icds) and failed checks (see devices);
 *         CLV_E_NO_DEVICE (the device or mode that you chose is not available; the message lists those that are);
 *         CLV_E_ARGUMENT (a selection or mode that cannot be parsed); CLV_E_FORMAT, CLV_E_IO (the file to simulate
 *         cannot be read; the helpers' files cannot be written); CLV_E_CANCELLED (by your progress function);
 *         CLV_E_MEMORY.
 * Threads: any. The first in-process call is slow, because drivers start.
 */
CLV_API clv_status clv_probe_run(const clv_probe_options *options, clv_probe_report **report);
CLV_API void clv_probe_free(clv_probe_report *report); /**< accepts NULL */

/** Returns the report as readable text of at most 80 columns; free it with clv_free(). NULL if memory is short. */
CLV_API char *clv_probe_text(const clv_probe_report *report);
/** Returns the report as JSON, schema "cleave.probe/1"; free it with clv_free(). NULL if memory is short. */
CLV_API char *clv_probe_json(const clv_probe_report *report);

/** These functions return an element of a report's array, borrowed from the report; NULL beyond the last. Do not index
 *  the arrays yourself: elements may be larger in the loaded version of the library than in these headers. */
CLV_API const clv_probe_device *clv_probe_report_device(const clv_probe_report *report,
                                                        size_t index);
CLV_API const clv_probe_platform *clv_probe_report_platform(const clv_probe_report *report,
                                                            size_t index);
CLV_API const clv_probe_icd *clv_probe_report_icd(const clv_probe_report *report, size_t index);
CLV_API const clv_probe_warning *clv_probe_report_warning(const clv_probe_report *report,
                                                          size_t index);

CLV_API const char *
clv_mode_name(clv_mode mode); /**< "auto", "cpu", "gpu", "hybrid", "reference" */
CLV_API clv_status clv_mode_parse(const char *name, clv_mode *mode);      /**< CLV_E_ARGUMENT */
CLV_API const char *clv_device_class_name(clv_device_class device_class); /**< "discrete_gpu" */
CLV_API const char *clv_vendor_name(clv_vendor vendor);                   /**< "nvidia" */

CLV_END_DECLS

#endif
