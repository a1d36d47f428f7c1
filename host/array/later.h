/* SPDX-License-Identifier: Apache-2.0 */
/* Declares asynchronous calls: copies of a call's operands and arguments, which the context's backlog runs later. */
#ifndef CLEAVE_HOST_ARRAY_LATER_H
#define CLEAVE_HOST_ARRAY_LATER_H

#include "host/array/pending.h"

/* A call as its `run` sees it. */
typedef struct clv_later {
    clv_array *const *array; /* copies of the arrays, in the order in which they were given */
    const void *arguments;   /* a copy of the arguments */
} clv_later;

typedef struct clv_later_call {
    const char *operation;                    /* static */
    clv_status (*run)(const clv_later *call); /* calls the public function again */
    clv_array *const *array; /* the operands, and at the end the result; NULL is allowed */
    size_t count;
    const void *arguments;
    size_t bytes; /* of the arguments */
} clv_later_call;

/* Adds a call to the context's backlog if its calls are asynchronous, and sets *added; the call must have been checked.
 * A call is not added, so that its caller runs it at once, if an array is the caller's own memory, if an operand has no
 * values or comes from a call that failed, if the call is only planned, or if the caller is inside another call. */
clv_status clv_later_add(clv_context *context, const clv_later_call *call, bool *added);
/* Does the same for a call with one operand. */
clv_status clv_later_add_one(clv_array *in, clv_array *out, const char *operation,
                             clv_status (*run)(const clv_later *call), const void *arguments,
                             size_t bytes, bool *added);
/* Returns whether calls of this thread on the context may be added at all. */
bool clv_later_is_on(clv_context *context);

#endif
