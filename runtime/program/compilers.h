/* SPDX-License-Identifier: Apache-2.0 */
/* Helper processes that compile programs: started, watched, their results taken. */
#ifndef CLEAVE_RUNTIME_PROGRAM_COMPILERS_H
#define CLEAVE_RUNTIME_PROGRAM_COMPILERS_H

#include "runtime/program/ahead.h"

typedef struct clv_compile_item {
    struct clv_program *program;
    size_t kernels; /* to be compiled */
    bool done;
} clv_compile_item;

/* Compiles the items, which begin with those that take longest, by as many processes as the device's
 * `compilers`; sets `done`. Programs do not change meanwhile. CLV_E_IO (no helper, no place for its files),
 * CLV_E_MEMORY; helpers that crash or hang are no error. */
clv_status clv_compilers_run(clv_device *device, clv_compile_item *items, size_t count,
                             clv_ahead_progress *progress, void *user);

#endif
