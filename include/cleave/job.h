/* SPDX-License-Identifier: Apache-2.0 */
/* Runs jobs. A job is a range of independent units, which the runtime splits over the context's devices. */
#ifndef CLEAVE_JOB_H
#define CLEAVE_JOB_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

typedef struct clv_worker clv_worker; /**< one device taking part in a job */
typedef struct clv_slot clv_slot;     /**< one chunk in flight on a worker, and its buffers */
typedef struct clv_report clv_report; /**< a record of what ran where, and why; see below */

enum { CLV_MAX_WORKERS = 17 }; /**< 16 devices and the host */

/** Predicted cost of a range. Rough estimates will do, but `memory_bytes` should not be too low. Frozen. */
typedef struct clv_cost {
    double flops;          /**< floating-point operations */
    double traffic_bytes;  /**< device memory read and written by the kernels */
    double transfer_bytes; /**< host to device and back */
    uint64_t memory_bytes; /**< device memory of one chunk of this range */
    uint64_t buffer_bytes; /**< size of the chunk's largest buffer; 0: unknown */
} clv_cost;

/**
 * Your function, which the library tells how many units are done; return non-zero to cancel the job at the next chunk
 * border.
 *
 * Your function must return normally: no longjmp, no exception. It may call the library, as may the functions of a
 * job. Calls that would have to wait for the running job do not wait: in the same context, a new job is refused
 * (CLV_E_BUSY) and the host computes flat calls such as clv_matmul.
 */
typedef int clv_progress(const char *job, size_t done, size_t total, void *user);

/**
 * A job: plain data and five functions, none of which depends on how many devices there are.
 *
 * A range is [first, first + count). `user` is your own pointer: the threads of all devices call your functions with
 * it at the same time, so only commit may write through it. You must set `size`, `enqueue` and `commit`; all other
 * fields may be 0 or NULL. If enqueue fails for a range, another device or `reference` computes that range. If none of
 * them can, or if commit fails, the job ends with that status.
 *
 *     clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
 *     {
 *         clv_slot_output(slot, KEY, count * sizeof(float), &out);       memory for results
 *         return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, 2, NULL);
 *     }
 *     clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
 *     {
 *         memcpy((float *)user + first, clv_slot_result(slot, KEY), count * sizeof(float));
 *         return CLV_OK;
 *     }
 *
 * Complete programs: examples/mandelbrot.c (a minimal job), examples/weights.c (inputs, shared data, fallback). If a
 * unit is an item of some arrays, use clv_items_run (items.h), which provides these functions.
 */
typedef struct clv_job {
    size_t size;           /**< sizeof(clv_job) */
    const char *name;      /**< "paco" */
    const char *signature; /**< equal for jobs whose units cost the same ("P49 Q10 T100 W1024"); the
                                key of the speed history; NULL: the name alone */
    size_t units;
    size_t align;     /**< chunks begin at multiples of this; 0 and 1: anywhere */
    size_t min_chunk; /**< smallest useful chunk; 0: align */

    /** Predicts what a range costs. Any thread may call it, before and while the job runs, for ranges of any size.
     *  NULL: unit_cost times the number of units. */
    clv_cost (*cost)(size_t first, size_t count, void *user);

    /** Prepares a device: constants, shared inputs. Called once per device, on its thread, before its first chunk. The
     *  runtime frees the buffers that setup gets from clv_worker_buffer. NULL: nothing to set up. */
    clv_status (*setup)(clv_worker *worker, void *user);

    /** Enqueues a range's inputs, kernels and outputs into the slot without waiting. Called on the device's thread. */
    clv_status (*enqueue)(clv_slot *slot, size_t first, size_t count, void *user);

    /** Moves the slot's results to where you want them. Called under the job's lock, for ranges in any order, exactly
     *  once for every unit. */
    clv_status (*commit)(const clv_slot *slot, size_t first, size_t count, void *user);

    /** Computes a range in plain C into the slot's results. Several threads, including yours, may call it at the same
     *  time. NULL: the job has no fallback. */
    clv_status (*reference)(clv_slot *slot, size_t first, size_t count, void *user);

    clv_progress *progress; /**< NULL: none; called on your thread, at most 10 times per second */
    void *progress_user;

    clv_cost unit_cost; /**< if `cost` is NULL: all figures, buffer_bytes too, for one unit */

    /** Allows the runtime to call setup and enqueue once more on a device, before the real calls. Such a rehearsal
     *  finds out which kernels the two functions launch, so that all cores can compile the kernels at the same time:
     *  launches are only recorded, copies and fills do nothing, reads give zeros, and buffers exist. Set `rehearse`
     *  only if the two functions keep nothing from such a call, and if every kernel can run as one work-group with
     *  buffers full of zeros and with all scalar arguments 0: the kernel must end, and must access only the first 256
     *  MiB of a buffer. */
    bool rehearse;
} clv_job;

/**
 * Runs the job and returns when every unit is committed, or with the first error that no retry could repair. After an
 * error some units may be committed.
 *
 * The results do not depend on the split, the order or the number of devices, as long as a unit's arithmetic does not
 * depend on its chunk.
 *
 * @param report  NULL, or the report to which the run is added.
 * @return CLV_OK; CLV_E_CANCELLED; CLV_E_DEVICE_MEMORY (no device has room for the smallest chunk and there is no
 *         reference; the message states the bytes); CLV_E_NO_DEVICE (no device works and there is no reference);
 *         CLV_E_BUSY (called from a function of another call in this context); or what your functions returned.
 * Threads: a context runs one job at a time; further callers wait.
 */
CLV_API clv_status clv_job_run(clv_context *context, const clv_job *job, void *user,
                               clv_report *report);

/* ---- inside setup, enqueue and commit ------------------------------------------------------ */

CLV_API clv_device *clv_worker_device(const clv_worker *worker);
CLV_API size_t clv_worker_index(const clv_worker *worker);     /**< below CLV_MAX_WORKERS */
CLV_API clv_queue *clv_worker_queue(const clv_worker *worker); /**< for setup */

/* Each buffer has a key, which is a number that you choose. A worker and a slot have separate keys, at most 32
 * different ones each. Buffers belong to the runtime and live until the job ends. Their contents last for one chunk
 * (slots) or for all chunks (workers). */

/** Gets a buffer of the worker: the same one at every call with this key. If `bytes` exceeds its size, the buffer
 *  grows and loses its contents. `clv_worker_buffer(worker, KEY, 0, &b)` gets the buffer that setup made. */
CLV_API clv_status clv_worker_buffer(clv_worker *worker, unsigned key, size_t bytes,
                                     clv_buffer **buffer);

/** Gets a buffer of the slot, as clv_worker_buffer gets one of the worker: every chunk in flight has its own buffer. */
CLV_API clv_status clv_slot_buffer(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer);
CLV_API clv_worker *clv_slot_worker(const clv_slot *slot);
CLV_API clv_queue *clv_slot_queue(const clv_slot *slot);

/** Where a kernel finds an input, in elements of the box's `element_bytes`: see clv_slot_input. Frozen. */
typedef struct clv_place {
    clv_buffer *buffer;
    size_t offset;    /**< offset of the box's first element */
    size_t stride[3]; /**< elements between neighbours: planes, rows, columns */
} clv_place;

/** A box of a host array [n0,n1,n2]; strides in elements. Frozen. */
typedef struct clv_box {
    const void *host; /**< element (0,0,0) of the box */
    size_t element_bytes;
    size_t extent[3]; /**< planes, rows, columns */
    size_t stride[3]; /**< stride[2] must be 1, stride[1] at least extent[2]; ignored for axes of
                           extent 1 */
} clv_box;

/** Makes a box of your array available to the device. A device that shares host memory uses the box in place; for any
 *  other device, one strided copy packs the box densely into slot memory under `key`. A kernel finds element (i,j,k) of
 *  the box at offset + i * stride[0] + j * stride[1] + k of `place->buffer`. Pass offset and strides to the kernel,
 *  because they differ from device to device. In place, the box has the alignment of your memory: a kernel may read it
 *  through pointers to vectors (float8 *) only if that is a multiple of the vector's size; vload8 accepts any
 *  element. */
CLV_API clv_status clv_slot_input(clv_slot *slot, unsigned key, const clv_box *box,
                                  clv_place *place);

/** Gets result memory under `key` for kernels to write; the runtime copies it back to the host. */
CLV_API clv_status clv_slot_output(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer);

/** Returns the result under `key` on the host, of the size you asked for. In `commit`, the result holds what the
 *  kernels or `reference` wrote; `reference` may write to it. */
CLV_API void *clv_slot_result(const clv_slot *slot, unsigned key);
/** Makes result memory under `key` on the host, for `reference` to fill. */
CLV_API clv_status clv_slot_result_create(clv_slot *slot, unsigned key, size_t bytes,
                                          void **result);

/* ---- reports ------------------------------------------------------------------------------- */

/** What one device did in the last job of a report. Frozen. */
typedef struct clv_share {
    const char *device; /**< label, or "host (reference)" */
    size_t units, chunks;
    double busy_s; /**< time with at least one chunk in flight (enqueued, not complete) */
    /** Time of the kernels alone, from events if these can be trusted. Negative if it is unknown, for example because
     *  a discrete GPU does not time kernels unless clv_context_options.event_times is set. */
    double kernel_s;
    uint64_t bytes_to_device, bytes_from_device, memory_peak_bytes;
    size_t dropped, failed; /**< chunks whose results came too late; chunks that failed */
    const char *left_out;   /**< why the device did nothing; NULL if it worked */
} clv_share;

CLV_API clv_status clv_report_create(clv_report **report);
CLV_API void clv_report_free(clv_report *report);            /**< accepts NULL */
CLV_API double clv_report_seconds(const clv_report *report); /**< duration of all its jobs */
CLV_API size_t
clv_report_share_count(const clv_report *report); /**< number of devices in the last job */
CLV_API clv_share clv_report_share(const clv_report *report, size_t index);
/** Adds a member of your own to the report's "operation" object. */
CLV_API void clv_report_note(clv_report *report, const char *key, double value);
CLV_API void clv_report_note_text(clv_report *report, const char *key, const char *value);
/** Returns the whole report as JSON, schema "cleave.report/1"; free it with clv_free(). NULL if memory is short. */
CLV_API char *clv_report_json(const clv_report *report);

CLV_END_DECLS

#endif
