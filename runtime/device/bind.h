/* SPDX-License-Identifier: Apache-2.0 */
/* Binds each worker thread of a CPU driver to a core of its own. */
#ifndef CLEAVE_RUNTIME_DEVICE_BIND_H
#define CLEAVE_RUNTIME_DEVICE_BIND_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum clv_bind_result {
    CLV_BIND_FAILED, /* a call failed */
    CLV_BIND_DONE,   /* each of the driver's threads is bound to a core, now or before */
    CLV_BIND_NONE,   /* native kernels do not run out of order: the threads are out of reach */
    CLV_BIND_FEWER,  /* the device has fewer compute units than this process has cores */
    CLV_BIND_LATE,   /* the driver's threads did not come together in time */
    CLV_BIND_OTHERS, /* another program or library bound the threads, or the caller's is one */
    CLV_BIND_CALLER, /* the caller's is one of the threads; the driver bound all others */
} clv_bind_result;

/* Binds each of a driver's threads to a core. Where the operating system puts two unbound threads on one core, calls
 * take twice as long until it moves one of them, and again after each pause.
 *
 * The function enqueues as many native kernels as the device has compute units. The kernels wait for each other, so
 * that each of them runs in another of the driver's threads. If those threads may all run wherever this process may,
 * and are as many as its cores, each of them binds itself to one core. This happens once per device and process,
 * takes at most three attempts that wait 0.1 s at most, and is never undone. A driver is left alone if it computes on
 * the caller's thread, if it bound its threads itself or was told to (POCL_AFFINITY), or if it was given fewer
 * threads (a mask, POCL_MAX_PTHREAD_COUNT).
 *
 * `device` is a root device; any thread may call. With CLV_BIND_CALLER *home is the core that is left for callers,
 * else -1. */
clv_bind_result clv_bind_threads(cl_device_id device, int *home);

/* Seconds within which a driver's threads must come together. Tests, which run beside compilers, raise it before they
 * make their first context. */
extern double clv_bind_patience_s;

/* Moves this thread to the core `home` until clv_bind_leave. Called before the thread waits for a device that
 * computes on this thread too. Where the thread shares a core with one of the driver's threads, calls take twice as
 * long until the operating system notices, and some systems move it back to that core whenever it wakes up. Does
 * nothing if the thread is on `home` already, if `home` is -1, or if the thread may not run there. */
typedef struct clv_bind_stay {
    bool stays;
    unsigned long may[16]; /* the cores on which the thread could run before: a cpu_set_t */
} clv_bind_stay;

clv_bind_stay clv_bind_come(int home);
void clv_bind_leave(const clv_bind_stay *stay);

/* Describes the result in words; the string is static. */
const char *clv_bind_reason(clv_bind_result result);

#endif
