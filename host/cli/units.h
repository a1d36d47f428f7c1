/* SPDX-License-Identifier: Apache-2.0 */
/* Physical units as users write them. */
#ifndef CLEAVE_HOST_CLI_UNITS_H
#define CLEAVE_HOST_CLI_UNITS_H

#include <stdbool.h>
#include <stddef.h>

/* "0.1um": a number above 0 and what stands behind it ("": nothing). False: it is none. */
bool cli_parse_size(const char *text, double *size, char *unit, size_t room);

/* "0.3,0.1,0.1um": the sides along z, y and x, and what stands behind them. */
bool cli_parse_voxel(const char *text, double voxel[3], char *unit, size_t room);

/* A unit as part of a column's name: "um" of its many spellings, else its letters and digits; "": none. */
void cli_unit_word(const char *unit, char *out, size_t room);

#endif
