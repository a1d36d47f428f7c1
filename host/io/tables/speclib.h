/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a library of stellar templates: lib.json and one folder of .npy files per arm. */
#ifndef CLEAVE_HOST_IO_TABLES_SPECLIB_H
#define CLEAVE_HOST_IO_TABLES_SPECLIB_H

#include <cleave/spectra.h>

/* A library of templates and the memory that it points to. Zero-initialise; its clear function frees it. */
typedef struct clv_speclib {
    clv_spectra_library library;
    struct clv_speclib_memory *memory;
} clv_speclib;

/* Reads `folder`/lib.json and the files that it names, and checks that the arrays have the shapes that lib.json states.
 * Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT (not JSON, a member that is missing or has another type, a name that leads out
 * of the folder, numbers outside their range); CLV_E_SHAPE (an array of another shape); CLV_E_MEMORY. `out` is zero
 * after a failure. */
clv_status clv_speclib_read(const char *folder, clv_speclib *out);
void clv_speclib_clear(clv_speclib *library);

/* Returns the index of the arm called `name` ("desi_b"); library->arm_count if there is none. */
size_t clv_speclib_arm(const clv_speclib *library, const char *name);

#endif
