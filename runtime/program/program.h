/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the compiled programs of one device: they are built once, kept in memory, and remembered on disk.
 *
 * Most drivers compile the whole program when it is built and hand out a binary, which the cache keeps. Some compile
 * a kernel when it is first launched with a work-group size, and keep the result themselves
 * (clv_device.driver_cache). For the latter drivers the cache keeps a list of the compiled kernels. */
#ifndef CLEAVE_RUNTIME_PROGRAM_PROGRAM_H
#define CLEAVE_RUNTIME_PROGRAM_PROGRAM_H

#include "base/text.h"

#include <cleave/runtime.h>

#include <CL/cl.h>
#include <stdatomic.h>

/* A kernel and a work-group size with which it is launched. */
typedef struct clv_kernel_use {
    struct clv_kernel_use *next;
    size_t local[3]; /* 0 in unused dimensions */
    char *args;      /* kinds of its arguments, as in probe/helper/compile.h; NULL: unknown */
    bool compiled;
    char name[];
} clv_kernel_use;

typedef struct clv_program {
    struct clv_program *next;
    const clv_cl_source *source;
    char *options;      /* "-cl-std=CL1.2 -DLANES=16": with the source the program's identity */
    char *key;          /* everything the binary depends on, as text */
    clv_text text;      /* the source with its headers, until the program is built */
    cl_program program; /* NULL: not built yet */
    clv_kernel_use
        *uses;       /* kernels that were rehearsed or, where launches compile, that are compiled */
    bool looked;     /* the program was searched for on disk */
    bool from_disk;  /* found on disk: its binary, or the list of its kernels */
    bool news;       /* has compiled kernels that the list on disk lacks */
    atomic_bool ran; /* launched since it was built: its binary is worth keeping */
} clv_program;

/* Returns the program for a source and defines, which the first call builds. It lives as long as the device.
 * Any thread may call; builds of one device wait for each other. */
clv_status clv_program_get(clv_device *device, const clv_cl_source *source,
                           const clv_define *defines, clv_program **program);

/* clv_program_find and clv_program_build are for callers that hold program_lock. The first returns the program, which
 * may not be built yet; the second builds it unless it is built. */
clv_status clv_program_find(clv_device *device, const clv_cl_source *source,
                            const clv_define *defines, clv_program **program);
clv_status clv_program_build(clv_device *device, clv_program *program);
/* Returns whether the program is on disk. If so, and if the disk has a list of its kernels, reads that list. */
bool clv_program_on_disk(clv_device *device, clv_program *program);
/* Returns the kernel with this work-group size, which is added if it is new; NULL: no memory. */
clv_kernel_use *clv_program_use(clv_program *program, const char *kernel, const size_t local[3]);

/* Writes lists that have grown and, if `ask` is set, the binaries of programs that ran and are not on disk
 * yet. Asking a driver for a binary may crash it, so callers set `ask` only after they have delivered their
 * results. */
void clv_programs_save(clv_device *device, bool ask);
void clv_programs_clear(clv_device *device); /* releases all programs */

#endif
