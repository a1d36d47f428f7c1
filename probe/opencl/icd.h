/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL drivers that are installed, listed without loading any. */
#ifndef CLEAVE_PROBE_ICD_H
#define CLEAVE_PROBE_ICD_H

#include "probe/machine.h"

enum { CLV_ICD_NAME = 4096 }; /* longest library name that is believed */

/* Appends an entry for each driver, in the order of the file names: OCL_ICD_VENDORS, else what the
 * loader has in its place; status "missing" and a message where a file holds no library name. */
void clv_icds_list(clv_machine *machine);

/* The library's name in an .icd file: its first line without blanks around. False, and *problem
 * says why, when that is none. */
bool clv_icd_parse(const char *text, size_t length, char *library, const char **problem);

#endif
