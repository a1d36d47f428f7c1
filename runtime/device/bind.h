/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the threads of a driver that computes on cores to one core each. */
#ifndef CLEAVE_RUNTIME_DEVICE_BIND_H
#define CLEAVE_RUNTIME_DEVICE_BIND_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum clv_bind_result {
    CLV_BIND_FAILED, /* a call failed */
    CLV_BIND_DONE,   /* each of its threads is bound to a core, now or by an earlier call */
    CLV_BIND_NONE,   /* it cannot run native kernels out of order: its threads cannot be reached */
    CLV_BIND_FEWER,  /* it has fewer compute units than this process has cores */
    CLV_BIND_LATE,   /* its threads did not come together in time */
    CLV_BIND_OTHERS, /* another program or library bound them, or the caller's thread is one of them */
    CLV_BIND_CALLER, /* the caller's is one of them, and the driver gave each other one a core */
} clv_bind_result;

/* Binds each of a driver's threads to a core. Where the system puts two of them on one core, calls take
 * twice as long until it notices, and again after each pause.
 *
 * The function enqueues as many native kernels as the device has compute units. They wait for each other, so
 * that each of them runs in another of the driver's threads. If those threads may all run wherever this
 * process may, and are as many as its cores, each of them binds itself to one core. This happens once per
 * device and process, takes at most three attempts that wait 0.1 s at most, and is never undone. A driver is
 * left alone if it computes on the caller's thread, if it bound its threads itself or was told to
 * (POCL_AFFINITY), or if it was given fewer threads (a mask, POCL_MAX_PTHREAD_COUNT).
 *
 * `device` is a root device; any thread may call. *home is the core that is left for callers with
 * CLV_BIND_CALLER, else -1. */
clv_bind_result clv_bind_threads(cl_device_id device, int *home);

/* Seconds that a driver's threads have to come together. For tests, which run beside compilers; set it
 * before the first context. */
extern double clv_bind_patience_s;

/* Moves this thread to the core `home` until clv_bind_leave; called before it waits for a device that
 * computes on this thread too. Where it shares a core with one of the driver's threads, calls take twice as
 * long until the system notices, and some systems move it back to that core whenever it wakes up. Does
 * nothing if the thread is on that core already, if `home` is -1, or if the thread may not run there. */
typedef struct clv_bind_stay {
    bool stays;
    unsigned long may[16]; /* the cores it could run on before: a cpu_set_t */
} clv_bind_stay;

clv_bind_stay clv_bind_come(int home);
void clv_bind_leave(const clv_bind_stay *stay);

/* Describes the result in words; the string is static. */
const char *clv_bind_reason(clv_bind_result result);

#endif
