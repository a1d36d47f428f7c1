/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs of one device: built once, kept in memory, remembered on disk. */
#ifndef CLEAVE_RUNTIME_PROGRAM_PROGRAM_H
#define CLEAVE_RUNTIME_PROGRAM_PROGRAM_H

#include <cleave/runtime.h>

#include <CL/cl.h>
#include <stdatomic.h>

typedef struct clv_program {
    struct clv_program *next;
    const clv_cl_source *source;
    char *options; /* "-cl-std=CL1.2 -DLANES=16": with the source, its identity */
    char *key;     /* what the binary depends on */
    cl_program program;
    bool from_disk;  /* the binary came from the cache */
    atomic_bool ran; /* launched since it was built: its binary is worth keeping */
    double build_s;
} clv_program;

/* The program for a source and defines; builds it at the first call. The
 * program lives as long as the device. Threads: any; builds of one device wait for each other. */
clv_status clv_program_get(clv_device *device, const clv_cl_source *source,
                           const clv_define *defines, clv_program **program);

/* Whether clv_program_get would be quick: in memory, or on disk and intact enough to try. */
bool clv_program_is_ready(clv_device *device, const clv_cl_source *source,
                          const clv_define *defines);

/* Writes programs that ran and are not on disk yet. After a warm-up run, since PoCL compiles for a
 * work-group size at its first launch and then puts that code into the binary. */
void clv_programs_save(clv_device *device);
void clv_programs_clear(clv_device *device); /* releases all */

#endif
