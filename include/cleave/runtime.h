/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the lowest level of the library (level 1): contexts, devices, queues, buffers, and launches of your own
 * kernels. */
#ifndef CLEAVE_RUNTIME_H
#define CLEAVE_RUNTIME_H

#include <cleave/export.h>
#include <cleave/probe.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

typedef struct clv_context clv_context; /**< the devices chosen for you, and your options */
typedef struct clv_device clv_device;   /**< a device of a context; lives as long as the context */
typedef struct clv_queue clv_queue;     /**< an in-order queue of one device */
typedef struct clv_buffer clv_buffer;   /**< memory that one device can reach */
typedef struct clv_event clv_event;     /**< a command that was enqueued */

/* ------------------------------------------------------------------------------- contexts -- */

typedef enum clv_schedule {
    /** The sizes of chunks follow the devices' measured speeds. A device that would delay the job gets no chunk, and an
     *  idle device recomputes a chunk that is late on another device. */
    CLV_SCHEDULE_ADAPTIVE = 0,
    CLV_SCHEDULE_STATIC,  /**< the devices' shares are fixed before the start */
    CLV_SCHEDULE_DYNAMIC, /**< equal chunks, first come first served */
    CLV_SCHEDULE_HGUIDED, /**< shrinking chunks in proportion to speed */
} clv_schedule;

/** Options of clv_context_create. A zero field takes the value of its environment variable, if there is one, else the
 *  default. */
typedef struct clv_context_options {
    size_t size;         /**< sizeof(clv_context_options) */
    clv_mode mode;       /**< AUTO: $CLEAVE_MODE, else the probe decides; other modes are binding */
    const char *devices; /**< "gpu,!name~Iris", "0", "P:D", ...; NULL: $CLEAVE_DEVICE */
    uint64_t memory_bytes; /**< budget on each device; 0: $CLEAVE_MEM_LIMIT, else memory_fraction */
    double memory_fraction; /**< share of a device's memory, in (0,1]; 0: 0.85 (GPU), 0.5 (CPU) */
    clv_schedule schedule;  /**< how jobs are divided; ADAPTIVE: $CLEAVE_SCHED may choose another */
    unsigned sub_devices;   /**< split every CPU device into this many parts; 0, 1: do not split */
    size_t batch;           /**< largest number of units in one chunk of a job; 0: automatic */
    const char *cache_dir;  /**< NULL: the usual place (cleave cache path); "": no disk cache */
    bool no_tuning;         /**< do not time kernel variants: take the built-in choice */
    bool trace;             /**< keep records for clv_context_write_trace */
    bool no_qualification;  /**< use devices without checking first that their results are right */
    /** Largest number of bytes of unused weights that each device keeps; weights in use are not counted. 0: unused
     *  weights may fill the device's whole budget until something else needs memory. */
    uint64_t tensor_bytes;
    /** Lets the library bind threads to cores; by default it never does. If the driver of a whole CPU device has
     *  exactly one unbound thread per core of this process, the library binds each of these threads to one core. This
     *  happens once per process and is not undone. If the driver also computes on the calling thread, the library
     *  moves that thread to the remaining core, but does not bind it. Small calls gain most: on a busy machine the
     *  operating system may put two threads on one core. The `cleave` command sets this field; $CLEAVE_BIND=0
     *  overrides it. */
    bool bind_threads;
    /** true: the field, such as `mode` for mode_given, counts even if it is zero, and its environment variable is not
     *  read. */
    bool mode_given, devices_given, memory_given, schedule_given;
    /** How many processes compile kernels for CPU devices at the same time, at most 16; each process ends when its
     *  kernels are compiled. More than one helps because a driver uses only one core of a process to compile.
     *  0: $CLEAVE_COMPILERS, else one per core of this process; 1: only this process compiles. */
    unsigned compilers;
    /** The program that the compiling processes run. NULL: the installed cleave-probe-helper; if it is missing, only
     *  this process compiles. */
    const char *helper;
    /** Lets the drivers of discrete GPUs time their commands, so that clv_share.kernel_s is known. This costs these
     *  devices some microseconds per command. `trace` turns it on as well. Other devices always time commands. */
    bool event_times;
} clv_context_options;

/**
 * Creates a context and chooses its devices. A device is opened at its first use, not here.
 *
 * @param options  NULL means the defaults.
 * @return CLV_OK, also when no OpenCL device is usable and you asked for none (jobs then run the plain C path);
 *         CLV_E_NO_DEVICE (the mode or the devices that you asked for are not available; the message lists the devices
 *         that are); CLV_E_ARGUMENT (a selection that cannot be parsed, a fraction outside (0,1], an environment
 *         variable with a value that cannot be used: the message names it); CLV_E_MEMORY.
 * Threads: several threads may use one context. Free it when no thread uses it any more.
 */
CLV_API clv_status clv_context_create(const clv_context_options *options, clv_context **context);

/**
 * Waits for running work, saves what the library learnt to its caches on disk, and frees everything. Accepts NULL.
 *
 * If a device's driver does not return within ten seconds, the context's memory is kept, because a thread in that
 * driver may still use it. The library logs this once, as an error. The next clv_context_create or clv_context_free
 * (also of NULL) frees the memory if the driver has returned by then.
 */
CLV_API void clv_context_free(clv_context *context);

CLV_API clv_mode clv_context_mode(const clv_context *context); /**< the mode in use, never AUTO */
CLV_API const char *clv_context_reason(const clv_context *context); /**< why this mode was chosen */
CLV_API const clv_probe_report *clv_context_probe(const clv_context *context); /**< borrowed */
CLV_API size_t clv_context_device_count(const clv_context *context);
CLV_API clv_device *clv_context_device(const clv_context *context, size_t index);

/** Writes a record of everything that ran as a Chrome trace (chrome://tracing, Perfetto). The context must have been
 *  created with options.trace. */
CLV_API clv_status clv_context_write_trace(clv_context *context, const char *path);

/* -------------------------------------------------------------------------------- devices -- */

CLV_API const clv_probe_device *clv_device_facts(const clv_device *device); /**< borrowed */
CLV_API const char *
clv_device_label(const clv_device *device); /**< "AMD EPYC [pocl]"; a sub-device: "... 1/2" */

/** Creates the device's OpenCL context and, unless a passed check is on record, checks that the device computes right
 *  results. Does nothing if the device is open. CLV_E_DEVICE, CLV_E_WRONG_RESULT: the device stays quarantined. */
CLV_API clv_status clv_device_open(clv_device *device);

/** How much device memory the library uses and may use. Frozen. */
typedef struct clv_memory_stats {
    uint64_t budget_bytes; /**< the most that the library may use */
    uint64_t used_bytes;   /**< in buffers that are in use */
    uint64_t cached_bytes; /**< in buffers kept for reuse */
    uint64_t peak_bytes;   /**< largest used + cached since the device was opened */
    uint64_t raw_allocations, pool_hits, failures;
    uint64_t tensor_bytes; /**< the part of used_bytes that holds weights for later calls, which the
                                library drops when it needs the room */
    uint64_t tensor_hits, tensor_fills, tensor_evictions; /**< weights found, uploaded, dropped */
} clv_memory_stats;

CLV_API clv_memory_stats clv_device_memory(clv_device *device);
/** Gives cached buffers and weights back to the driver. Weights are uploaded again when a call needs them. */
CLV_API void clv_device_trim(clv_device *device);

/** A device's memory in bytes: the total that its driver reports, the most that the library may use (the budget), what
 *  is free of that budget, and the largest single buffer. Buffers kept for reuse and weights that no job is using count
 *  as free. The limit of a software rasteriser may exceed its total: such a driver may report little memory, so the
 *  limit is a part of the machine's memory. Frozen. */
typedef struct clv_memory_room {
    uint64_t total_bytes, limit_bytes, free_bytes, largest_bytes;
} clv_memory_room;
CLV_API clv_memory_room clv_device_room(clv_device *device);

/** Allocates `count` buffers of `bytes` each in advance and keeps them for reuse, so that later buffers of about that
 *  size come from the pool. Buffers of more than a quarter of the budget are never kept. CLV_E_DEVICE_MEMORY (beyond
 *  the budget); CLV_E_ARGUMENT; and the errors of clv_device_open. */
CLV_API clv_status clv_device_reserve(clv_device *device, size_t bytes, size_t count);

/** Gets how busy the device is, 0 to 100 percent: at present if this can be measured, else when the probe ran. Returns
 *  CLV_E_DEVICE if the device's driver does not report this (*percent is then -1). */
CLV_API clv_status clv_device_utilisation(clv_device *device, double *percent);

/* -------------------------------------------------------------------------------- buffers -- */

typedef enum clv_buffer_kind {
    CLV_BUFFER_DEVICE,  /**< fastest for kernels */
    CLV_BUFFER_STAGING, /**< host memory that the device copies from and to quickly */
    CLV_BUFFER_SHARED,  /**< host memory that arrays use in turns with a device that shares it */
} clv_buffer_kind;

/** Takes a buffer from the device's pool; its contents are undefined. CLV_E_DEVICE_MEMORY beyond budget or limit. */
CLV_API clv_status clv_buffer_create(clv_device *device, size_t bytes, clv_buffer_kind kind,
                                     clv_buffer **buffer);

/**
 * Makes host memory accessible to the device without a copy, if the device shares the host's memory; otherwise returns
 * CLV_E_DEVICE. `host` must outlive the buffer and must not move. While a kernel that uses the buffer is enqueued or
 * running, only that kernel may access the memory.
 */
CLV_API clv_status clv_buffer_wrap(clv_device *device, void *host, size_t bytes,
                                   clv_buffer **buffer);
CLV_API void clv_buffer_free(clv_buffer *buffer); /**< does not wait for commands; accepts NULL */
CLV_API size_t clv_buffer_bytes(const clv_buffer *buffer);

/* --------------------------------------------------------------------------------- queues -- */

CLV_API clv_status clv_queue_create(clv_device *device, clv_queue **queue);
CLV_API void clv_queue_free(clv_queue *queue); /**< waits for its commands first; accepts NULL */
CLV_API clv_device *clv_queue_device(const clv_queue *queue);

/** Waits until all commands are complete and returns the error of any that failed. */
CLV_API clv_status clv_queue_wait(clv_queue *queue);

/* The functions whose names end in _enqueue return at once: keep `host` in place until the command is complete. `done`
 * may be NULL; otherwise free the event with clv_event_free. Only one thread at a time may use a queue. */
CLV_API clv_status clv_write_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                                     const void *host, size_t bytes, clv_event **done);
CLV_API clv_status clv_read_enqueue(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes,
                                    void *host, size_t bytes, clv_event **done);
CLV_API clv_status clv_fill_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                                    size_t bytes, uint32_t pattern, clv_event **done);
CLV_API clv_status clv_copy_enqueue(clv_queue *queue, const clv_buffer *from, size_t from_bytes,
                                    clv_buffer *to, size_t to_bytes, size_t bytes,
                                    clv_event **done);

/* clv_write and clv_read copy as clv_write_enqueue and clv_read_enqueue do, but return when the copy is complete. */
CLV_API clv_status clv_write(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                             const void *host, size_t bytes);
CLV_API clv_status clv_read(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes,
                            void *host, size_t bytes);

CLV_API clv_status clv_event_wait(clv_event *event); /**< also returns the command's error */
CLV_API void clv_event_free(clv_event *event);       /**< does not wait; accepts NULL */

/* -------------------------------------------------------------------------------- kernels -- */

/** OpenCL C as text; build logs call it `name` ("cl/patch/centre.cl"). It must have static lifetime. Frozen. */
typedef struct clv_cl_source {
    const char *name, *text;
    size_t length;
} clv_cl_source;

/** A macro that a kernel is compiled with: -D NAME=value. Frozen. */
typedef struct clv_define {
    const char *name;
    long value;
} clv_define;

enum { CLV_MAX_DEFINES = 16 };

/** One kernel and its global and local sizes. Unused defines have a NULL name, unused dimensions are 0. */
typedef struct clv_launch {
    size_t size; /**< sizeof(clv_launch) */
    const clv_cl_source *source;
    const char *kernel;
    clv_define defines[CLV_MAX_DEFINES];
    size_t global[3], local[3]; /**< global is a multiple of local, and you must set both */
} clv_launch;

typedef enum clv_arg_kind { CLV_ARG_BUFFER, CLV_ARG_VALUE, CLV_ARG_LOCAL } clv_arg_kind;

/** One kernel argument; make it with the functions below. Frozen. */
typedef struct clv_arg {
    clv_arg_kind kind;
    const clv_buffer *buffer;
    unsigned char value[16];
    size_t bytes;
} clv_arg;

CLV_API clv_arg clv_arg_buffer(const clv_buffer *buffer);
CLV_API clv_arg clv_arg_u32(uint32_t value);
CLV_API clv_arg clv_arg_i32(int32_t value);
CLV_API clv_arg clv_arg_u64(uint64_t value);
CLV_API clv_arg clv_arg_i64(int64_t value);
CLV_API clv_arg clv_arg_f32(float value);
CLV_API clv_arg clv_arg_f64(double value);
CLV_API clv_arg clv_arg_local(size_t bytes); /**< local memory */

/**
 * Builds the kernel if needed (the binary is kept in memory and on disk), sets its arguments and enqueues it.
 *
 * The source is compiled as OpenCL C 1.2 with your defines, and with CLV_SLOW_FMA if the device has no fast fused
 * multiply-add (neither CL_FP_FMA nor a CPU's instruction). `#include "common/x.clh"` finds the library's headers.
 * @return CLV_OK; CLV_E_BUILD (the log is clv_error_detail()); CLV_E_ARGUMENT (sizes that do not fit, a wrong number of
 *         arguments, more local memory than the device has); CLV_E_DEVICE_MEMORY; CLV_E_DEVICE.
 */
CLV_API clv_status clv_launch_enqueue(clv_queue *queue, const clv_launch *launch,
                                      const clv_arg *args, size_t arg_count, clv_event **done);

CLV_END_DECLS

#endif
