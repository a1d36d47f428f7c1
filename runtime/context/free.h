/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps contexts for as long as arrays need them, and counts contexts that were freed by the caller while one of their
 * devices hung in its driver. */
#ifndef CLEAVE_RUNTIME_CONTEXT_FREE_H
#define CLEAVE_RUNTIME_CONTEXT_FREE_H

#include <cleave/runtime.h>

#include <stddef.h>

/* Keeps the context until clv_context_release. */
void clv_context_hold(clv_context *context);
/* Ends a hold. The last one, the caller's included, frees the context. */
void clv_context_release(clv_context *context);
/* Returns how many freed contexts are kept because one of their devices still hangs. */
size_t clv_contexts_left(void);

#endif
