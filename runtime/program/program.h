/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs of one device: built once, kept in memory, remembered on disk.
 *
 * Most drivers compile all of a program when it is built, and hand out a binary that the cache keeps. Some
 * compile a kernel when it is first launched with a work-group size, and keep the result themselves
 * (clv_device.driver_cache); for those the cache has a list of the kernels that are compiled. */
#ifndef CLEAVE_RUNTIME_PROGRAM_PROGRAM_H
#define CLEAVE_RUNTIME_PROGRAM_PROGRAM_H

#include "base/text.h"

#include <cleave/runtime.h>

#include <CL/cl.h>
#include <stdatomic.h>

/* A kernel and a work-group size that it is launched with. */
typedef struct clv_kernel_use {
    struct clv_kernel_use *next;
    size_t local[3]; /* of unused dimensions 0 */
    char *args; /* kinds of its arguments, as probe/helper/compile.h has them; NULL: not known */
    bool compiled;
    char name[];
} clv_kernel_use;

typedef struct clv_program {
    struct clv_program *next;
    const clv_cl_source *source;
    char *options;      /* "-cl-std=CL1.2 -DLANES=16": with the source, its identity */
    char *key;          /* what the binary depends on */
    clv_text text;      /* the source with its headers, until the program is built */
    cl_program program; /* NULL: it was not built yet */
    clv_kernel_use
        *uses;       /* those that were rehearsed, and where launches compile, those compiled */
    bool looked;     /* for it on disk */
    bool from_disk;  /* it is there: its binary, or the list of its kernels */
    bool news;       /* a kernel was compiled that the list on disk lacks */
    atomic_bool ran; /* launched since it was built: its binary is worth keeping */
} clv_program;

/* The program for a source and defines; builds it at the first call. The
 * program lives as long as the device. Threads: any; builds of one device wait for each other. */
clv_status clv_program_get(clv_device *device, const clv_cl_source *source,
                           const clv_define *defines, clv_program **program);

/* For those who hold program_lock. The program, which may not be built; its build, unless that is done. */
clv_status clv_program_find(clv_device *device, const clv_cl_source *source,
                            const clv_define *defines, clv_program **program);
clv_status clv_program_build(clv_device *device, clv_program *program);
/* Whether it is on disk; if so, and a list is kept there, which of its kernels are compiled is known then. */
bool clv_program_on_disk(clv_device *device, clv_program *program);
/* The kernel with the work-group size, added where it is new; NULL: no memory. */
clv_kernel_use *clv_program_use(clv_program *program, const char *kernel, const size_t local[3]);

/* Writes lists that have grown, and where `ask`, programs that ran and are not on disk yet. Asking a driver for a
 * binary may crash it: not before the caller has its results. */
void clv_programs_save(clv_device *device, bool ask);
void clv_programs_clear(clv_device *device); /* releases all */

#endif
