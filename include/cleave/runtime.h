/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: contexts, devices, queues, buffers, and launches of the caller's own kernels. */
#ifndef CLEAVE_RUNTIME_H
#define CLEAVE_RUNTIME_H

#include <cleave/export.h>
#include <cleave/probe.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

typedef struct clv_context clv_context; /**< the devices chosen for this caller, and the rules */
typedef struct clv_device clv_device;   /**< one of them; lives as long as its context */
typedef struct clv_queue clv_queue;     /**< an in-order queue of one device */
typedef struct clv_buffer clv_buffer;   /**< memory that one device can reach */
typedef struct clv_event clv_event;     /**< a command that was enqueued */

/* ------------------------------------------------------------------------------- contexts -- */

typedef enum clv_schedule {
    CLV_SCHEDULE_ADAPTIVE = 0, /**< measured speeds, admission, tail rule, speculation */
    CLV_SCHEDULE_STATIC,       /**< shares fixed before the start */
    CLV_SCHEDULE_DYNAMIC,      /**< equal chunks, first come first served */
    CLV_SCHEDULE_HGUIDED,      /**< shrinking chunks in proportion to speed */
} clv_schedule;

/** All-zero but the size means: everything from the environment, else automatic. */
typedef struct clv_context_options {
    size_t size;            /**< sizeof(clv_context_options) */
    clv_mode mode;          /**< AUTO: $CLEAVE_MODE, else the probe decides; others are orders */
    const char *devices;    /**< "gpu,!name~Iris", "0", "P:D", ...; NULL: $CLEAVE_DEVICE */
    uint64_t memory_bytes;  /**< budget on each device; 0: $CLEAVE_MEM_LIMIT, else a fraction */
    double memory_fraction; /**< of a device's memory, in (0,1]; 0: 0.85 (GPU), 0.5 (CPU) */
    clv_schedule schedule;  /**< ADAPTIVE: $CLEAVE_SCHED */
    unsigned sub_devices;   /**< split every CPU device into that many; 0 and 1: whole */
    size_t batch;           /**< units in a chunk of a job, at most; 0: automatic */
    const char *cache_dir;  /**< NULL: the usual place (cleave cache path); "": no disk cache */
    bool no_tuning;         /**< take the built-in choice among kernel variants */
    bool trace;             /**< keep records for clv_context_write_trace */
    bool no_qualification;  /**< let devices work that were never seen to compute right results */
    uint64_t tensor_bytes;  /**< weights kept on each device, at most (those in use come on top);
                                 0: its budget, as far as nothing else needs it */
    /** Let the library bind threads to cores, which it never does otherwise. Where the driver of a whole
     *  CPU device has one free thread for each core of this process, each of them is bound to one, once a
     *  process, for good; where the driver computes on the caller's thread too, that thread moves to the core
     *  that the others leave, and stays free to move on. Small calls gain most: on a busy machine the system
     *  may put two threads on one core. The command does so; $CLEAVE_BIND=0 forbids it. */
    bool bind_threads;
    /** The field holds even where it is zero: its environment variable is not read. */
    bool mode_given, devices_given, memory_given, schedule_given;
    /** How many processes compile kernels for CPU devices at once, at most 16; each ends when that is done.
     *  More than one helps because a driver compiles on one core of a process. 0: $CLEAVE_COMPILERS, else
     *  as many as this process has cores; 1: kernels are compiled in this process alone. */
    unsigned compilers;
    /** The program that compiles. NULL: the installed cleave-probe-helper; where it is missing, kernels are
     *  compiled in this process alone. */
    const char *helper;
    /** Have the commands of discrete GPUs timed by their drivers: clv_share's kernel_s is known then. It costs these
     *  devices some microseconds per command. A trace has it too; on all other devices commands are always timed. */
    bool event_times;
} clv_context_options;

/**
 * Chooses devices; opens none yet (the first use of a device opens it).
 *
 * @param options  NULL means the defaults.
 * @return CLV_OK, also when no OpenCL device is usable and none was ordered (jobs then run the
 *         plain C path); CLV_E_NO_DEVICE (ordered but not there; the message lists what is);
 *         CLV_E_ARGUMENT (unreadable selection, fraction outside (0,1], an environment variable with a
 *         value that cannot be used: the message names it); CLV_E_MEMORY.
 * Threads: a context may be used from several threads; free it when none does.
 */
CLV_API clv_status clv_context_create(const clv_context_options *options, clv_context **context);

/**
 * Waits for running work, writes what the caches learnt, frees everything. Accepts NULL.
 *
 * Where a device does not come back from its driver within ten seconds, the context's memory is kept, because a thread
 * in that driver may still use it. This is logged once, as an error. The next clv_context_create or
 * clv_context_free (also of NULL) frees it, if the driver has returned by then.
 */
CLV_API void clv_context_free(clv_context *context);

CLV_API clv_mode clv_context_mode(const clv_context *context);                 /**< never AUTO */
CLV_API const char *clv_context_reason(const clv_context *context);            /**< why that mode */
CLV_API const clv_probe_report *clv_context_probe(const clv_context *context); /**< borrowed */
CLV_API size_t clv_context_device_count(const clv_context *context);
CLV_API clv_device *clv_context_device(const clv_context *context, size_t index);

/** Writes what ran as a Chrome trace (chrome://tracing, Perfetto); needs options.trace. */
CLV_API clv_status clv_context_write_trace(clv_context *context, const char *path);

/* -------------------------------------------------------------------------------- devices -- */

CLV_API const clv_probe_device *clv_device_facts(const clv_device *device); /**< borrowed */
CLV_API const char *
clv_device_label(const clv_device *device); /**< "AMD EPYC [pocl]"; of a part "... 1/2" */

/** Creates the OpenCL context, and runs the qualification if it is not on record; idempotent.
 *  CLV_E_DEVICE, CLV_E_WRONG_RESULT: the device was quarantined and stays so. */
CLV_API clv_status clv_device_open(clv_device *device);

/** Frozen. */
typedef struct clv_memory_stats {
    uint64_t budget_bytes; /**< what we allow ourselves */
    uint64_t used_bytes;   /**< in buffers that somebody holds */
    uint64_t cached_bytes; /**< in buffers kept for reuse */
    uint64_t peak_bytes;   /**< largest used + cached since the device was opened */
    uint64_t raw_allocations, pool_hits, failures;
    uint64_t tensor_bytes; /**< of used_bytes: weights kept for later, given up when needed */
    uint64_t tensor_hits, tensor_fills, tensor_evictions; /**< found there, brought, given up */
} clv_memory_stats;

CLV_API clv_memory_stats clv_device_memory(clv_device *device);
CLV_API void clv_device_trim(clv_device *device); /**< gives cached buffers and weights back to
                                                       the driver; weights are brought again */

/** Room of a device, in bytes: what its driver says it has, what we allow ourselves (the budget), what
 *  of that nobody holds (memory kept for reuse counts as free, and so do weights that no job is using),
 *  and the largest single buffer. A rasteriser on cores may say little and be allowed more: a part of
 *  the machine's memory. Frozen. */
typedef struct clv_memory_room {
    uint64_t total_bytes, limit_bytes, free_bytes, largest_bytes;
} clv_memory_room;
CLV_API clv_memory_room clv_device_room(clv_device *device);

/** Allocates `count` buffers of `bytes` ahead and keeps them for reuse: later buffers of about that
 *  size come from the pool. CLV_E_DEVICE_MEMORY beyond the budget; CLV_E_ARGUMENT; as
 *  clv_device_open. Buffers of more than a quarter of the budget are never kept. */
CLV_API clv_status clv_device_reserve(clv_device *device, size_t bytes, size_t count);

/** How busy the device is, 0 to 100 percent, where its driver tells: now, or as the probe found it.
 *  CLV_E_DEVICE where it does not (*percent is -1). */
CLV_API clv_status clv_device_utilisation(clv_device *device, double *percent);

/* -------------------------------------------------------------------------------- buffers -- */

typedef enum clv_buffer_kind {
    CLV_BUFFER_DEVICE,  /**< fastest for kernels */
    CLV_BUFFER_STAGING, /**< host memory that the device copies from and to quickly */
} clv_buffer_kind;

/** From the device's pool. Contents undefined. CLV_E_DEVICE_MEMORY beyond budget or limit. */
CLV_API clv_status clv_buffer_create(clv_device *device, size_t bytes, clv_buffer_kind kind,
                                     clv_buffer **buffer);

/**
 * Makes host memory reachable for the device without a copy, where the device shares the host's
 * memory; elsewhere CLV_E_DEVICE. `host` must outlive the buffer and not move; between enqueue
 * and completion of a kernel only that kernel may touch it.
 */
CLV_API clv_status clv_buffer_wrap(clv_device *device, void *host, size_t bytes,
                                   clv_buffer **buffer);
CLV_API void clv_buffer_free(clv_buffer *buffer); /**< accepts NULL; waits for nothing */
CLV_API size_t clv_buffer_bytes(const clv_buffer *buffer);

/* --------------------------------------------------------------------------------- queues -- */

CLV_API clv_status clv_queue_create(clv_device *device, clv_queue **queue);
CLV_API void clv_queue_free(clv_queue *queue); /**< waits first; accepts NULL */
CLV_API clv_device *clv_queue_device(const clv_queue *queue);

/** Waits on the last event and checks it: an error of any earlier command is reported here. */
CLV_API clv_status clv_queue_wait(clv_queue *queue);

/* Asynchronous; `host` must stay until the command is complete. `done` may be NULL, else the
 * caller frees it. A queue is used by one thread at a time. */
CLV_API clv_status clv_write_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                                     const void *host, size_t bytes, clv_event **done);
CLV_API clv_status clv_read_enqueue(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes,
                                    void *host, size_t bytes, clv_event **done);
CLV_API clv_status clv_fill_enqueue(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                                    size_t bytes, uint32_t pattern, clv_event **done);
CLV_API clv_status clv_copy_enqueue(clv_queue *queue, const clv_buffer *from, size_t from_bytes,
                                    clv_buffer *to, size_t to_bytes, size_t bytes,
                                    clv_event **done);

/* The same, blocking. */
CLV_API clv_status clv_write(clv_queue *queue, clv_buffer *buffer, size_t offset_bytes,
                             const void *host, size_t bytes);
CLV_API clv_status clv_read(clv_queue *queue, const clv_buffer *buffer, size_t offset_bytes,
                            void *host, size_t bytes);

CLV_API clv_status clv_event_wait(clv_event *event); /**< and checks its status */
CLV_API void clv_event_free(clv_event *event);       /**< accepts NULL; waits for nothing */

/* -------------------------------------------------------------------------------- kernels -- */

/** OpenCL C as text; `name` ("cl/patch/centre.cl") is what build logs call it. Static lifetime. Frozen. */
typedef struct clv_cl_source {
    const char *name, *text;
    size_t length;
} clv_cl_source;

/** -D NAME=value. Frozen. */
typedef struct clv_define {
    const char *name;
    long value;
} clv_define;

enum { CLV_MAX_DEFINES = 16 };

/** One kernel and its geometry; unused defines have a NULL name, unused dimensions are 0. */
typedef struct clv_launch {
    size_t size; /**< sizeof(clv_launch) */
    const clv_cl_source *source;
    const char *kernel;
    clv_define defines[CLV_MAX_DEFINES];
    size_t global[3], local[3]; /**< global is a multiple of local; local is never left open */
} clv_launch;

typedef enum clv_arg_kind { CLV_ARG_BUFFER, CLV_ARG_VALUE, CLV_ARG_LOCAL } clv_arg_kind;

/** One argument, in the kernel's order; made by the functions below. Frozen. */
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
 * Builds the kernel if needed (kept in memory and on disk), sets the arguments, enqueues.
 *
 * Built as OpenCL C 1.2 with the defines, and CLV_SLOW_FMA where the device has no fused multiply-add
 * (neither CL_FP_FMA nor a CPU's instruction); `#include "common/x.clh"` finds the library's headers.
 * @return CLV_OK; CLV_E_BUILD (the log is clv_error_detail()); CLV_E_ARGUMENT (geometry, argument
 *         count, local memory beyond the device's limit); CLV_E_DEVICE_MEMORY; CLV_E_DEVICE.
 */
CLV_API clv_status clv_launch_enqueue(clv_queue *queue, const clv_launch *launch,
                                      const clv_arg *args, size_t arg_count, clv_event **done);

CLV_END_DECLS

#endif
