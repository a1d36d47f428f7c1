/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of options from callers that may know an older version of them. */
#ifndef CLEAVE_BASE_OPTIONS_H
#define CLEAVE_BASE_OPTIONS_H

#include <stddef.h>
#include <string.h>

/* Copies what the caller's structure has to `own`, of `bytes`; fields that it lacks become zeros. Its first
 * field says how large it is, 0 as large as ours. NULL is all zeros. */
static inline void clv_take_options(void *own, size_t bytes, const void *given)
{
    size_t size = 0;
    memset(own, 0, bytes);
    if (given) memcpy(&size, given, sizeof size);
    if (given) memcpy(own, given, size && size < bytes ? size : bytes);
}

#endif
