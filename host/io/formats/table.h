/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a vector of numbers from a text file, such as a list of angles. */
#ifndef CLEAVE_HOST_IO_FORMATS_TABLE_H
#define CLEAVE_HOST_IO_FORMATS_TABLE_H

#include <cleave/status.h>

#include <stddef.h>

/* Reads one column or one row of finite numbers, separated by blanks, commas, semicolons and line ends; '#' begins a
 * comment. Accepts Fortran's exponents (1.5D+02), CRLF and a byte-order mark. Free *values with clv_free. Returns
 * CLV_OK; CLV_E_IO; CLV_E_FORMAT, whose message names line, column and the bad word; CLV_E_MEMORY. Outputs are zero
 * after a failure. */
clv_status clv_text_vector_read(const char *path, double **values, size_t *count);

#endif
