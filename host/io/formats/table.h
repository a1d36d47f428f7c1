/* SPDX-License-Identifier: Apache-2.0 */
/* A vector of numbers in a text file, such as a list of angles. */
#ifndef CLEAVE_HOST_IO_FORMATS_TABLE_H
#define CLEAVE_HOST_IO_FORMATS_TABLE_H

#include <cleave/status.h>

#include <stddef.h>

/* One column or one row of finite numbers between blanks, commas, semicolons and line ends; '#'
 * begins a comment. Fortran's exponents (1.5D+02), CRLF and a byte-order mark are accepted. Free
 * *values with clv_free. CLV_E_IO; CLV_E_FORMAT names line, column and the bad word;
 * CLV_E_MEMORY. Outputs are zero after a failure. */
clv_status clv_text_vector_read(const char *path, double **values, size_t *count);

#endif
