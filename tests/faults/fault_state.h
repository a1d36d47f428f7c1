/* SPDX-License-Identifier: Apache-2.0 */
/* What the fault layer knows: the faults wanted, and the objects it has seen. */
#ifndef CLEAVE_TESTS_FAULT_STATE_H
#define CLEAVE_TESTS_FAULT_STATE_H

#include "fault_layer.h"

#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fault_plan {
    long on, buffer, enqueue, every, event, lost, hang, hold, build, binary, save, wrong, call,
        seed, times;
    cl_int code;
    double budget, throttle, hang_s, chance;
} fault_plan;

typedef enum fault_kind {
    SEEN_DEVICE,
    SEEN_CONTEXT,
    SEEN_QUEUE,
    SEEN_BUFFER,
    SEEN_KERNEL,
    SEEN_EVENT
} fault_kind;

enum { MOST_PARTS = 65, MOST_ARGUMENTS = 32 };

typedef struct seen {
    void *object;
    fault_kind kind;
    int device;    /* its number */
    size_t bytes;  /* BUFFER */
    double ready;  /* QUEUE, BUFFER, EVENT: not complete, or in use, before; INFINITY: held */
    cl_int result; /* EVENT: CL_SUCCESS, or how it ends */
    int held;      /* EVENT: references */
    void *arguments[MOST_ARGUMENTS]; /* KERNEL: its buffers */
} seen;

typedef struct fault_state {
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t released;
    unsigned holding; /* kernels that end when they are released */
    fault_plan plan;
    fault_stats stats;
    unsigned long buffers, enqueues, kernels, builds, reads; /* counted where the plan applies */
    unsigned long commands[MOST_PARTS];
    double held[MOST_PARTS]; /* bytes in buffers */
    unsigned long long random;
    seen *items;
    size_t count, capacity;
} fault_state;

extern fault_state fault;

bool fault_parse(const char *text, fault_plan *plan);
double fault_now(void);
void fault_sleep_until(double when); /* INFINITY: until what is held is released */

/* The lock is held in all that follow. */
seen *fault_find(const void *object, fault_kind kind); /* NULL: never seen */
int fault_device_of(const void *object, fault_kind kind);
seen *fault_note(void *object, fault_kind kind, int device);
void fault_forget(const void *object, fault_kind kind);
bool fault_is_lost(int device);
bool fault_applies(int device);
/* One more call that may fail: does it? */
bool fault_calls(void);
/* One more command: CL_SUCCESS, or the code it is to fail with. */
cl_int fault_commands(int device, bool kernel);

#endif
