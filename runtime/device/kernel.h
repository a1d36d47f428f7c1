/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the kernel objects of a queue. A kernel's arguments are set per object, and a queue has one thread, so each
 * queue has objects of its own. The launch (program/launch.c) makes them, and they are freed with their queue. */
#ifndef CLEAVE_RUNTIME_DEVICE_KERNEL_H
#define CLEAVE_RUNTIME_DEVICE_KERNEL_H

#include <cleave/runtime.h>

#include <CL/cl.h>

/* The value to which a kernel's argument was set last. It saves calls: a driver takes as long to set one argument as
 * we take to compare five. */
typedef struct clv_argument {
    clv_arg_kind kind;
    size_t bytes; /* 0: not set */
    cl_mem mem;
    uint64_t serial; /* of `mem`: handles are reused, serial numbers are not */
    unsigned char value[sizeof((clv_arg *)NULL)->value];
} clv_argument;

typedef struct clv_kernel {
    struct clv_kernel *next;
    struct clv_program *program;
    const clv_cl_source *source; /* `source`, `name` and `defines` are the key of the look-up */
    const char *name;
    clv_define defines[CLV_MAX_DEFINES];
    cl_kernel cl;
    cl_uint arg_count;
    clv_argument *set;  /* [arg_count] */
    size_t compiled[3]; /* a work-group size for which the kernel is known to be compiled */
    size_t max_group;
    cl_ulong local_bytes; /* static local memory */
} clv_kernel;

#endif
