/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one block of host memory, which each call of a context leaves to the next call. */
#include "runtime/device/spare.h"

#include "base/alloc.h"
#include "runtime/record/context.h"

static const size_t most_kept = (size_t)128 << 20;

void *clv_spare_take(clv_context *context, size_t *bytes)
{
    void *memory = NULL;
    size_t there = 0;
    pthread_mutex_lock(&context->shelf_lock);
    if (context->spare && context->spare_bytes >= *bytes) {
        memory = context->spare, there = context->spare_bytes;
        context->spare = NULL, context->spare_bytes = 0;
    }
    pthread_mutex_unlock(&context->shelf_lock);
    if (!memory) return clv_alloc_lines(*bytes);
    *bytes = there;
    return memory;
}

void clv_spare_give(clv_context *context, void *memory, size_t bytes)
{
    void *done = memory;
    pthread_mutex_lock(&context->shelf_lock);
    if (memory && bytes <= most_kept && bytes > context->spare_bytes) {
        done = context->spare;
        context->spare = memory, context->spare_bytes = bytes;
    }
    pthread_mutex_unlock(&context->shelf_lock);
    clv_free(done);
}
