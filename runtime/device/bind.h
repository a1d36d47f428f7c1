/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a driver that computes on cores: one core each. */
#ifndef CLEAVE_RUNTIME_DEVICE_BIND_H
#define CLEAVE_RUNTIME_DEVICE_BIND_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum clv_bind_result {
    CLV_BIND_FAILED, /* a call failed */
    CLV_BIND_DONE,   /* each of its threads is bound to a core, now or by an earlier call */
    CLV_BIND_NONE,   /* it runs no native kernels, out of order: its threads cannot be had */
    CLV_BIND_FEWER,  /* it has not as many compute units as this process has cores */
    CLV_BIND_LATE,   /* its threads did not come together in time */
    CLV_BIND_OTHERS, /* they are bound by somebody else, or the caller's thread is one of them */
    CLV_BIND_CALLER, /* the caller's is one of them, and the driver gave each other one a core */
} clv_bind_result;

/* Where the system puts two of a driver's threads on one core, calls take twice as long until it
 * notices, and again after each pause. As many native kernels as the device has compute units wait
 * for each other, so that each is in another of its threads; if those may all run wherever this
 * process may, and are as many as its cores, each binds itself to one. Once a device and process;
 * waits 0.1 s at most, three times. A driver that computes on the caller's thread, that bound its
 * threads itself or was told to (POCL_AFFINITY), or that was given fewer (a mask,
 * POCL_MAX_PTHREAD_COUNT), is left alone. Never undone. `device` is a root device; any thread. *home: with
 * CLV_BIND_CALLER the core that is left for callers, else -1. */
clv_bind_result clv_bind_threads(cl_device_id device, int *home);

/* That its threads have to come together. For tests, which run beside compilers: set before the first
 * context. */
extern double clv_bind_patience_s;

/* Before a thread waits for a device that computes on it too: goes to that core and stays there until
 * clv_bind_leave. Where it shares a core with one of the driver's threads, calls take twice as long until
 * the system notices, and some systems bring it back whenever it wakes up. Nothing where it is there
 * already, for -1, and where the thread may not go there. */
typedef struct clv_bind_stay {
    bool stays;
    unsigned long may[16]; /* where it ran before: a cpu_set_t */
} clv_bind_stay;

clv_bind_stay clv_bind_come(int home);
void clv_bind_leave(const clv_bind_stay *stay);

/* In words; static. */
const char *clv_bind_reason(clv_bind_result result);

#endif
