/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which built-in functions a program uses. */
#ifndef CLEAVE_RUNTIME_PROGRAM_DECLARE_H
#define CLEAVE_RUNTIME_PROGRAM_DECLARE_H

#include "base/text.h"

/* Appends a line with #define for each "#ifdef CLV_USES_NAME" of the header whose NAME the program contains as a word
 * or with a number behind it, as in vload16, and for each "#ifdef CLV_HAS_NAME" whose NAME it contains in any way.
 * Comments do not count. */
void clv_declare_uses(const char *header, const char *program, clv_text *out);

#endif
