/* SPDX-License-Identifier: Apache-2.0 */
/* Frees memory that the library allocated for you. */
#ifndef CLEAVE_MEMORY_H
#define CLEAVE_MEMORY_H

#include <cleave/export.h>

CLV_BEGIN_DECLS

/**
 * Frees memory that a function of this library has given you: an array, a text, a list.
 *
 * Do not pass such pointers to free(): your program may use another allocator than the library. NULL is
 * accepted. Handles such as clv_context have functions of their own.
 * Threads: any.
 */
CLV_API void clv_free(void *memory);

CLV_END_DECLS

#endif
