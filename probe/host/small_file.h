/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small text files of the kernel and of /etc. */
#ifndef CLEAVE_PROBE_SMALL_FILE_H
#define CLEAVE_PROBE_SMALL_FILE_H

#include "base/text.h"

enum { CLV_SMALL_FILE = 65536 };
/* Reads ROOT/PATH, at most `capacity` - 1 bytes. Returns false and writes "" if the file does not exist. */
bool clv_small_read(const char *root, char *out, size_t capacity, const char *format, ...)
    CLV_PRINTF(4, 5);
/* Reads a file that contains one number, decimal or 0x...; returns CLV_UNKNOWN for any other content. */
uint64_t clv_small_number(const char *root, const char *format, ...) CLV_PRINTF(2, 3);

#endif
