/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a binding for another language, which describes the structures of these headers by hand, check their sizes. */
#ifndef CLEAVE_LAYOUT_H
#define CLEAVE_LAYOUT_H

#include <cleave/export.h>

#include <stddef.h>

CLV_BEGIN_DECLS

/**
 * Returns the size in bytes that a public structure ("clv_paco_input") has in the loaded library, or 0 if the library
 * has no structure of that name. A binding should compare it with its own size before the first call. Threads: any.
 */
CLV_API size_t clv_size_of(const char *structure);

CLV_END_DECLS

#endif
