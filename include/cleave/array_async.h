/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls on arrays asynchronous: they return as soon as they are checked and enqueued. */
#ifndef CLEAVE_ARRAY_ASYNC_H
#define CLEAVE_ARRAY_ASYNC_H

#include <cleave/array_data.h>

CLV_BEGIN_DECLS

/**
 * Makes the calls on a context's arrays asynchronous, or, with `on` false, synchronous again after it has waited for
 * all calls that are pending. Calls are synchronous until you ask for it, on every device.
 *
 * An asynchronous call checks types and shapes, marks its result as pending, and returns. One thread of the library
 * runs the context's calls in the order in which they were made, exactly as if they were synchronous. Reading or
 * writing an array's elements, and every call that is not asynchronous, waits for the calls that use its arrays.
 * clv_array_statistics waits for all of them. You may free the operands and the result while the call is pending.
 *
 * Asynchronous are clv_array_apply, clv_array_compute, clv_array_cast, clv_array_copy, clv_array_fold, clv_reduce,
 * clv_map, clv_product and clv_array_multiply, unless an array wraps your memory (clv_array_wrap) or its address was
 * given to you (clv_array_host), for you could not know when the library uses that memory. Calls on at most 1024
 * elements that are in the host's memory are computed at once. All other functions are synchronous.
 *
 * If a call fails while it runs, the first function that needs its result returns the status, once, and so does
 * clv_array_synchronize, unless it was returned before. Calls that depend on the result fail without being run; their
 * message has that of the first failure. After that, the result has no values.
 *
 * At most 1024 calls wait to be run, with operands and results of at most 1 GiB (one call may be larger): then the next
 * call waits. clv_context_free runs the pending calls and logs a failure that nobody has seen.
 *
 * clv_offload_last() does not tell about asynchronous calls. A side that clv_offload_force() asked for holds for them.
 *
 * Threads: any.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a context that was freed); CLV_E_MEMORY; CLV_E_UNSUPPORTED (after a fork).
 */
CLV_API clv_status clv_array_set_asynchronous(clv_context *context, bool on);
CLV_API bool clv_array_is_asynchronous(const clv_context *context);
/** Returns whether a call that uses the array's memory has not ended yet. */
CLV_API bool clv_array_is_pending(const clv_array *array);
/** Waits until all calls that were made on the context have ended, and returns the first failure that has not been
 *  returned before. CLV_E_BUSY: the caller is inside another call on the context. */
CLV_API clv_status clv_array_synchronize(clv_context *context);

CLV_END_DECLS

#endif
