/* SPDX-License-Identifier: Apache-2.0 */
/* Runs calls on one device immediately, without a job. The engine keeps a queue and memory from call to call. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_ENGINE_H
#define CLEAVE_RUNTIME_OFFLOAD_ENGINE_H

#include <cleave/runtime.h>

enum { CLV_ENGINE_KEYS = 24 };

typedef struct clv_engine {
    clv_context *context;
    clv_queue *queue;
    struct {
        clv_buffer *buffer;
        void *host; /* caller's memory that is wrapped, or that results go to; NULL: scratch */
        size_t bytes;
        size_t extent[3], stride[3]; /* of the caller's floats, where `boxed` */
        bool wraps, output, boxed;
    } held[CLV_ENGINE_KEYS];
} clv_engine;

/* Locks the context's engine for this thread. Returns NULL if no device of the context works, or if this thread is
 * inside another call of the context (clv_jobs_held); the caller then computes on the host. The engine uses the first
 * device that opens. */
clv_engine *clv_engine_lock(clv_context *context);
void clv_engine_unlock(clv_engine *engine); /* accepts NULL */
void clv_engine_free(clv_engine *engine);   /* when the context ends; accepts NULL */

/* Returns scratch memory of at least `bytes` under `key`, valid until clv_engine_finish. */
clv_status clv_engine_scratch(clv_engine *engine, unsigned key, size_t bytes, clv_buffer **buffer);
/* Makes the caller's memory available to kernels: in place if the device shares the memory, else as a copy. `output`:
 * the results go back at clv_engine_finish; `input`: kernels read the present contents. */
clv_status clv_engine_bring(clv_engine *engine, unsigned key, const void *host, size_t bytes,
                            bool input, bool output, clv_buffer **buffer);
/* Makes floats [extent] of the caller at these strides, the last of which is 1, available like clv_engine_bring.
 * `span` counts the floats from the first to one past the last. On return `stride` holds the strides at which a
 * kernel finds the floats. The gaps between them are not written. */
clv_status clv_engine_bring_box(clv_engine *engine, unsigned key, const float *host,
                                const size_t extent[3], size_t stride[3], size_t span, bool input,
                                bool output, clv_buffer **buffer);
/* Waits until results are in the caller's memory and the caller may use that memory again. Call it after a failure as
 * well, with the failure's status, which it returns. */
clv_status clv_engine_finish(clv_engine *engine, clv_status status);

/* Notes the launches of `enqueue` without running them (context/prepare.h). */
clv_status clv_engine_rehearse(clv_context *context,
                               clv_status (*enqueue)(clv_engine *engine, void *user), void *user);

#endif
