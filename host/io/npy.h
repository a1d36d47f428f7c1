/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, read strictly and written plainly. */
#ifndef CLEAVE_HOST_IO_NPY_H
#define CLEAVE_HOST_IO_NPY_H

#include "host/io/array.h"

/* Format versions 1 to 3, C and Fortran order, either byte order; see clv_array for the types.
 * CLV_E_IO; CLV_E_FORMAT names what was found and what was expected; CLV_E_MEMORY. */
clv_status clv_npy_read(const char *path, clv_array *array);

/* Version 1, C order, little-endian; complete or absent. */
clv_status clv_npy_write(const char *path, const clv_array *array);

#endif
