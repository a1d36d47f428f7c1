/* SPDX-License-Identifier: Apache-2.0 */
/* A job: a range of independent units that the runtime splits over the context's devices. */
#ifndef CLEAVE_JOB_H
#define CLEAVE_JOB_H

#include <cleave/runtime.h>

CLV_BEGIN_DECLS

typedef struct clv_worker clv_worker; /**< one device taking part in a job */
typedef struct clv_slot clv_slot;     /**< one chunk in flight on a worker, and its buffers */
typedef struct clv_report clv_report; /**< what ran where, and why; see below */

enum { CLV_MAX_WORKERS = 17 }; /**< 16 devices and the host */

/** Predicted cost of a range; estimates may be rough, `memory_bytes` should not be low. Frozen. */
typedef struct clv_cost {
    double flops;          /**< arithmetic */
    double traffic_bytes;  /**< device memory read and written by the kernels */
    double transfer_bytes; /**< host to device and back */
    uint64_t memory_bytes; /**< device memory of one chunk of this range */
    uint64_t buffer_bytes; /**< the largest buffer among it; 0: not told */
} clv_cost;

/**
 * Units done so far; a non-zero return cancels the job at the next chunk border.
 *
 * It has to return: no longjmp, no exception. It may call the library, as may the functions of a job. What
 * would wait there for the call that it belongs to does not: in its context jobs are refused
 * (CLV_E_BUSY), and flat calls are the host's.
 */
typedef int clv_progress(const char *job, size_t done, size_t total, void *user);

/**
 * A job is described by plain data and five functions; nothing in it knows how many devices there
 * are. A range is [first, first + count). `user` is the caller's own pointer: all devices' threads
 * call with it at once, so only commit may write through it. `enqueue` and `commit` are needed, the
 * rest may be 0 or NULL. A range whose enqueue fails is done by another device or by `reference`;
 * where nobody can, and where commit fails, the job ends with that status.
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
 * In full: examples/mandelbrot.c (the least), examples/weights.c (inputs, shared data, fallback).
 * Where a unit is an item of some arrays, items.h has the functions ready.
 */
typedef struct clv_job {
    size_t size;           /**< sizeof(clv_job) */
    const char *name;      /**< "paco" */
    const char *signature; /**< what makes units of two jobs comparable ("P49 Q10 T100 W1024"): the
                                key of the speed history; NULL: the name alone */
    size_t units;
    size_t align;     /**< chunks begin at multiples of it; 0 and 1: anywhere */
    size_t min_chunk; /**< smallest useful chunk; 0: align */

    /** Any thread. Called for ranges of all sizes before and while the job runs. NULL: unit_cost
     *  times the number of units. */
    clv_cost (*cost)(size_t first, size_t count, void *user);

    /** Once a device, on its thread, before its first chunk: constants, shared inputs. What it
     *  takes by clv_worker_buffer is freed by the runtime. NULL: nothing to set up. */
    clv_status (*setup)(clv_worker *worker, void *user);

    /** On the device's thread; only enqueues: inputs, kernels, outputs into the slot. */
    clv_status (*enqueue)(clv_slot *slot, size_t first, size_t count, void *user);

    /** Under the job's lock, in any order, exactly once for every unit: moves the slot's results
     *  to where the caller wants them. */
    clv_status (*commit)(const clv_slot *slot, size_t first, size_t count, void *user);

    /** The same range in plain C, into the slot's results. Any thread, the caller's too, several
     *  at once. NULL: a job without fallback. */
    clv_status (*reference)(clv_slot *slot, size_t first, size_t count, void *user);

    clv_progress *progress; /**< NULL: none; called from the caller's thread, at most 10 a second */
    void *progress_user;

    clv_cost unit_cost; /**< of one unit, where `cost` is NULL; buffer_bytes as well */

    /** Whether setup and enqueue may be called once more on a device, before the calls that count. Such a
     *  rehearsal finds out which kernels they launch, so that these can be compiled on all cores at once:
     *  launches are noted only, copies and fills do nothing, reads give zeros, and buffers exist.
     *  Set this only if the two functions keep nothing from such a call, and if every kernel can run as
     *  one work-group with buffers full of zeros and with all its numbers 0: it has to end, and may touch
     *  no more than the first 256 MiB of a buffer. */
    bool rehearse;
} clv_job;

/**
 * Runs the job and returns when every unit is committed, or with the first error that no retry
 * could mend. After an error some units may be committed.
 *
 * Split, order and number of devices do not show in the results as long as a unit's arithmetic
 * does not depend on its chunk.
 *
 * @param report  NULL, or what the run is added to.
 * @return CLV_OK; CLV_E_CANCELLED; CLV_E_DEVICE_MEMORY (no device has room for the smallest chunk
 *         and there is no reference; states the bytes); CLV_E_NO_DEVICE (nobody works); CLV_E_BUSY (called by a
 *         function of another call in this context); whatever the functions returned.
 * Threads: one job at a time per context; further callers wait.
 */
CLV_API clv_status clv_job_run(clv_context *context, const clv_job *job, void *user,
                               clv_report *report);

/* ---- inside setup, enqueue and commit ------------------------------------------------------ */

CLV_API clv_device *clv_worker_device(const clv_worker *worker);
CLV_API size_t clv_worker_index(const clv_worker *worker);     /**< below CLV_MAX_WORKERS */
CLV_API clv_queue *clv_worker_queue(const clv_worker *worker); /**< for setup */

/* Memory has keys: numbers of the job's choice, at most 32 different ones a worker and 32 a slot,
 * which are counted apart. Buffers belong to the runtime: they live until the job ends, and their
 * contents for one chunk (slots) or all of them (workers). */

/** Memory of the worker: the same buffer at every call, grown when `bytes` is more, its contents
 *  lost then. `clv_worker_buffer(worker, KEY, 0, &b)` looks up what setup made. */
CLV_API clv_status clv_worker_buffer(clv_worker *worker, unsigned key, size_t bytes,
                                     clv_buffer **buffer);

/** As worker memory, but one for each chunk in flight. */
CLV_API clv_status clv_slot_buffer(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer);
CLV_API clv_worker *clv_slot_worker(const clv_slot *slot);
CLV_API clv_queue *clv_slot_queue(const clv_slot *slot);

/** Where an input lies for a kernel: elements of `element_bytes`, see clv_slot_input. Frozen. */
typedef struct clv_place {
    clv_buffer *buffer;
    size_t offset;    /**< of the box's first element */
    size_t stride[3]; /**< elements between neighbours: planes, rows, columns */
} clv_place;

/** A box of a host array [n0,n1,n2]; strides in elements. Frozen. */
typedef struct clv_box {
    const void *host; /**< element (0,0,0) of the box */
    size_t element_bytes;
    size_t extent[3]; /**< planes, rows, columns */
    size_t stride[3]; /**< stride[2] must be 1, stride[1] no less than a row; of axes of extent 1
                           they do not matter */
} clv_box;

/** Brings a box of the caller's array to the device: wrapped in place where host memory is
 *  shared, else packed densely into slot memory under `key` (one strided copy). A kernel finds
 *  element (i,j,k) at offset + i * stride[0] + j * stride[1] + k of `place->buffer`: hand over
 *  offset and strides, they differ from device to device. In place it begins where the caller's
 *  memory does: a kernel may read it by pointers to vectors (float8 *) only where that is a multiple of
 *  the vector's size; vload8 takes any element. */
CLV_API clv_status clv_slot_input(clv_slot *slot, unsigned key, const clv_box *box,
                                  clv_place *place);

/** Result memory under `key`, for kernels to write; the runtime brings it back. */
CLV_API clv_status clv_slot_output(clv_slot *slot, unsigned key, size_t bytes, clv_buffer **buffer);

/** The result on the host: filled when commit runs; writable in reference. `bytes` as asked. */
CLV_API void *clv_slot_result(const clv_slot *slot, unsigned key);
/** For reference: makes result memory under `key` on the host. */
CLV_API clv_status clv_slot_result_create(clv_slot *slot, unsigned key, size_t bytes,
                                          void **result);

/* ---- reports ------------------------------------------------------------------------------- */

/** Frozen. */
typedef struct clv_share {
    const char *device; /**< label, or "host (reference)" */
    size_t units, chunks;
    double busy_s; /**< chunks in flight, from enqueue to done */
    double
        kernel_s; /**< kernels alone, by events where they can be trusted; negative: unknown, also where
                          a discrete GPU did not time them (event_times of clv_context_options) */
    uint64_t bytes_to_device, bytes_from_device, memory_peak_bytes;
    size_t dropped, failed; /**< chunks whose result came too late, or not at all */
    const char *left_out;   /**< why the device did nothing; NULL when it worked */
} clv_share;

CLV_API clv_status clv_report_create(clv_report **report);
CLV_API void clv_report_free(clv_report *report);                /**< accepts NULL */
CLV_API double clv_report_seconds(const clv_report *report);     /**< of all jobs */
CLV_API size_t clv_report_share_count(const clv_report *report); /**< devices of the last job */
CLV_API clv_share clv_report_share(const clv_report *report, size_t index);
/** Adds a member to the report's "operation" object: a fact of the caller. */
CLV_API void clv_report_note(clv_report *report, const char *key, double value);
CLV_API void clv_report_note_text(clv_report *report, const char *key, const char *value);
/** The whole report, schema "cleave.report/1"; free with clv_free(). NULL without memory. */
CLV_API char *clv_report_json(const clv_report *report);

CLV_END_DECLS

#endif
