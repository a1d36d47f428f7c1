/* SPDX-License-Identifier: Apache-2.0 */
/* Small text files of the kernel and of /etc. */
#ifndef CLEAVE_PROBE_SMALL_FILE_H
#define CLEAVE_PROBE_SMALL_FILE_H

#include "base/text.h"

enum { CLV_SMALL_FILE = 65536 };
/* Reads ROOT/PATH, cut at `capacity` - 1 bytes; false (and "") when it is not there. */
bool clv_small_read(const char *root, char *out, size_t capacity, const char *format, ...)
    CLV_PRINTF(4, 5);
/* The same for one number: decimal or 0x...; CLV_UNKNOWN otherwise. */
uint64_t clv_small_number(const char *root, const char *format, ...) CLV_PRINTF(2, 3);

#endif
