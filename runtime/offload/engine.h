/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that work on one device at once, without a job: a queue and memory that stay. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_ENGINE_H
#define CLEAVE_RUNTIME_OFFLOAD_ENGINE_H

#include <cleave/runtime.h>

enum { CLV_ENGINE_KEYS = 24 };

typedef struct clv_engine {
    clv_context *context;
    clv_queue *queue;
    struct {
        clv_buffer *buffer;
        void *host; /* memory of the caller that it lies on, or goes back to; NULL: scratch */
        size_t bytes;
        size_t extent[3], stride[3]; /* of the caller's floats, where `boxed` */
        bool wraps, output, boxed;
    } held[CLV_ENGINE_KEYS];
} clv_engine;

/* The context's engine, locked for this thread; NULL where no device of the context works, or where this
 * thread is inside another call of it (clv_jobs_held): then the caller computes on the host. The first
 * device that opens is taken. */
clv_engine *clv_engine_lock(clv_context *context);
void clv_engine_unlock(clv_engine *engine); /* accepts NULL */
void clv_engine_free(clv_engine *engine);   /* for the context; accepts NULL */

/* Memory under `key`: scratch of at least `bytes`, until clv_engine_finish. */
clv_status clv_engine_scratch(clv_engine *engine, unsigned key, size_t bytes, clv_buffer **buffer);
/* The caller's memory for kernels: in place where the device shares it, else a copy. `output`: it
 * goes back at clv_engine_finish; `input`: kernels read what it holds now. */
clv_status clv_engine_bring(clv_engine *engine, unsigned key, const void *host, size_t bytes,
                            bool input, bool output, clv_buffer **buffer);
/* The same of floats [extent] at these strides, the last of which is 1, and `span` from the first to
 * behind the last: *stride says where a kernel finds them. What lies between them is not written. */
clv_status clv_engine_bring_box(clv_engine *engine, unsigned key, const float *host,
                                const size_t extent[3], size_t stride[3], size_t span, bool input,
                                bool output, clv_buffer **buffer);
/* Waits; results are in the caller's memory then, and his memory is his own again. To be called
 * after a failure as well, with that status, which it passes on. */
clv_status clv_engine_finish(clv_engine *engine, clv_status status);

/* Notes the launches of `enqueue`, which does nothing else (context/prepare.h). */
clv_status clv_engine_rehearse(clv_context *context,
                               clv_status (*enqueue)(clv_engine *engine, void *user), void *user);

#endif
