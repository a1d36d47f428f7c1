/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the installed OpenCL drivers without loading any. */
#ifndef CLEAVE_PROBE_ICD_H
#define CLEAVE_PROBE_ICD_H

#include "probe/machine.h"

enum { CLV_ICD_NAME = 4096 }; /* longest library name that is accepted */

/* Appends an entry for each driver, in the order of the file names, from OCL_ICD_VENDORS or the loader's default. An
 * entry's status is "missing", with a message, if its file contains no library name. */
void clv_icds_list(clv_machine *machine);

/* Parses an .icd file: the library's name is the first line, without blanks around it. If the name is invalid, returns
 * false and sets *problem to the reason. */
bool clv_icd_parse(const char *text, size_t length, char *library, const char **problem);

#endif
