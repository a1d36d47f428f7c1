/* SPDX-License-Identifier: Apache-2.0 */
/* Starts helper processes that compile programs, watches them, and takes their results. */
#ifndef CLEAVE_RUNTIME_PROGRAM_COMPILERS_H
#define CLEAVE_RUNTIME_PROGRAM_COMPILERS_H

#include "runtime/program/ahead.h"

typedef struct clv_compile_item {
    struct clv_program *program;
    size_t kernels; /* to be compiled */
    bool done;
} clv_compile_item;

/* Compiles the items in as many processes as the device's `compilers`, and sets `done`. The items that take
 * longest come first. The programs must not change meanwhile. Errors: CLV_E_IO (no helper, no place for its
 * files), CLV_E_MEMORY; a helper that crashes or hangs is no error. */
clv_status clv_compilers_run(clv_device *device, clv_compile_item *items, size_t count,
                             clv_ahead_progress *progress, void *user);

#endif
