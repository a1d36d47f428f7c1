/* SPDX-License-Identifier: Apache-2.0 */
/* Mutex and condition on the monotonic clock; a thin name over pthreads. */
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

/* A thread named for debuggers (15 characters), with all signals blocked. */
bool clv_thread_start(clv_thread *thread, const char *name, void *(*body)(void *), void *argument);
/* The same, starting on the `nth` of the cores that the caller may use, counted in a ring from its
 * own; free to leave it at once. Left to the system, two new threads may share a core for
 * milliseconds. */
bool clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                            void *argument, unsigned nth);
/* Joins it if it has ended. */
bool clv_thread_try_join(clv_thread thread);

#endif
