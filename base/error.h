/* SPDX-License-Identifier: Apache-2.0 */
/* Reports failures, passes them on, and carries them between threads. */
#ifndef CLEAVE_BASE_ERROR_H
#define CLEAVE_BASE_ERROR_H

#include <cleave/status.h>

/* Records the message for this thread and returns `status`, so that a failure is one statement. */
clv_status clv_fail(clv_status status, const char *format, ...) CLV_PRINTF(2, 3);

/* Fails like clv_fail, with a text of any length (a build log) as the detail; NULL means no detail. */
clv_status clv_fail_detail(clv_status status, const char *detail, const char *format, ...)
    CLV_PRINTF(3, 4);

#ifdef __clang_analyzer__ /* the analyzer cannot see that a failure is never CLV_OK */
#include <stdlib.h>
#define clv_fail(status, ...) \
    ((status) == CLV_OK ? (abort(), CLV_OK) : (clv_fail)((status), __VA_ARGS__), (status))
#endif

/* Returns the failure of a call to the caller's caller, with its message. This is the only macro that hides a
 * return. */
#define CLV_TRY(call)                                  \
    do {                                               \
        const clv_status try_status_ = (call);         \
        if (try_status_ != CLV_OK) return try_status_; \
    } while (0)

/* A failure that is carried from a worker thread to the thread that asked for the work. */
typedef struct clv_error {
    clv_status status;
    char message[512];
    char *detail; /* owned; NULL when there is none */
} clv_error;

void clv_error_take(clv_error *error, clv_status status); /* copies this thread's message */
clv_status clv_error_give(const clv_error *error);        /* makes it the message of this thread */
void clv_error_clear(clv_error *error);                   /* frees the detail */

#endif
