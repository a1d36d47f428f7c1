/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the mutexes, conditions and threads of pthreads; conditions wait on the monotonic clock. */
#ifndef CLEAVE_BASE_THREAD_H
#define CLEAVE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t clv_mutex;
typedef pthread_cond_t clv_cond;
typedef pthread_t clv_thread;

bool clv_mutex_init(clv_mutex *mutex);
bool clv_mutex_init_recursive(clv_mutex *mutex); /* a thread may lock it again */
bool clv_cond_init(clv_cond *cond);              /* waits on the clock of clv_now() */
void clv_cond_wait_until(clv_cond *cond, clv_mutex *mutex,
                         double when); /* spurious wakes allowed */

/* Starts a thread with a name for debuggers (15 characters) and with all signals blocked. */
bool clv_thread_start(clv_thread *thread, const char *name, void *(*body)(void *), void *argument);
/* Starts a thread like clv_thread_start, but on core number `nth` of the cores that the caller may use, counted in a
 * ring from the caller's own core. The thread may leave this core at once. If the system chooses the cores, two new
 * threads may share one for milliseconds. */
bool clv_thread_start_apart(clv_thread *thread, const char *name, void *(*body)(void *),
                            void *argument, unsigned nth);
/* Joins the thread if it has ended; returns whether it has. */
bool clv_thread_try_join(clv_thread thread);

#endif
