/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and conditions on the monotonic clock: thin names for pthreads. */
#ifndef CLEAVE_BASE_THREAD_H
#define CLEAVE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t clv_mutex;
typedef pthread_cond_t clv_cond;
typedef pthread_t clv_thread;

bool clv_mutex_init(clv_mutex *mutex);
bool clv_cond_init(clv_cond *cond); /* waits on clv_now()'s clock */
void clv_cond_wait_until(clv_cond *cond, clv_mutex *mutex,
                         double when); /* spurious wakes allowed */

/* Starts a thread with a name for debuggers (15 characters) and with all signals blocked. */
bool clv_thread_start(clv_thread *thread, const char *name, void *(*body)(void *), void *argument);
/* Does the same, but starts it on the `nth` of the cores that the caller may use, counted in a ring from the
 * caller's own core; the thread is free to leave it at once. Left to the system, two new threads may share a
 * core for milliseconds. */
bool clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                            void *argument, unsigned nth);
/* Joins the thread if it has ended; returns whether it did. */
bool clv_thread_try_join(clv_thread thread);

#endif
