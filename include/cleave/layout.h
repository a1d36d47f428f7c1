/* SPDX-License-Identifier: Apache-2.0 */
/* For callers that describe the structures of these headers by hand: bindings of other languages. */
#ifndef CLEAVE_LAYOUT_H
#define CLEAVE_LAYOUT_H

#include <cleave/export.h>

#include <stddef.h>

CLV_BEGIN_DECLS

/**
 * Size in bytes of a public structure ("clv_paco_input") in the library that is loaded; 0 when it
 * knows none of that name. A binding compares it with its own before the first call. Threads: any.
 */
CLV_API size_t clv_size_of(const char *structure);

CLV_END_DECLS

#endif
