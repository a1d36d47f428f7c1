/* SPDX-License-Identifier: Apache-2.0 */
/* Copies structs from callers that may have been built with an older or a newer version of them. */
#ifndef CLEAVE_BASE_OPTIONS_H
#define CLEAVE_BASE_OPTIONS_H

#include "base/error.h"

#include <cleave/version.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Copies a caller's struct of options, which begins with its `size`, to `own`, which has `bytes` bytes. Fields that
 * an older caller's struct lacks become zero. A NULL `given` means all defaults. `function` and `type` are for
 * messages. Errors: CLV_E_ARGUMENT (the size is 0 or smaller than the size field), CLV_E_UNSUPPORTED (the struct is
 * newer, and a field that this library does not know is not zero). */
static inline clv_status clv_take_struct(void *own, size_t bytes, const void *given,
                                         const char *function, const char *type)
{
    size_t size = bytes;
    memset(own, 0, bytes);
    memcpy(own, &bytes, sizeof bytes);
    if (!given) return CLV_OK;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: the size field of %s is %zu; start the struct with CLV_INIT(%s)",
                        function, type, size, type);
    for (size_t i = bytes; i < size; ++i)
        if (((const unsigned char *)given)[i])
            return clv_fail(CLV_E_UNSUPPORTED,
                            "%s: %s sets a field that this version of the library (%s) does not "
                            "know; update the library, or set the new fields to zero",
                            function, type, clv_version());
    memcpy(own, given, size < bytes ? size : bytes);
    memcpy(own, &bytes, sizeof bytes);
    return CLV_OK;
}

#endif
