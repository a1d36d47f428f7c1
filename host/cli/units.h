/* SPDX-License-Identifier: Apache-2.0 */
/* Parses sizes with a physical unit as users write them, and writes units as parts of column names. */
#ifndef CLEAVE_HOST_CLI_UNITS_H
#define CLEAVE_HOST_CLI_UNITS_H

#include <stdbool.h>
#include <stddef.h>

/* Parses "0.1um": a number above 0 and the unit after it ("": none). Returns false if `text` is not of that form. */
bool cli_parse_size(const char *text, double *size, char *unit, size_t room);

/* Parses "0.3,0.1,0.1um": the sides along z, y and x, and the unit after them. */
bool cli_parse_voxel(const char *text, double voxel[3], char *unit, size_t room);

/* Writes a unit in the form used in column names: "um" for all spellings of the micrometre, else its letters and
 * digits; "": no unit. */
void cli_unit_word(const char *unit, char *out, size_t room);

#endif
