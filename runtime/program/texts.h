/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the source texts of kernels that are written at run time. Each text is kept once, for as long as the context
 * lives, since programs identify their source by its address. */
#ifndef CLEAVE_RUNTIME_PROGRAM_TEXTS_H
#define CLEAVE_RUNTIME_PROGRAM_TEXTS_H

#include <cleave/runtime.h>

/* Returns the source with this text; `name` has static lifetime. Error: CLV_E_MEMORY. Any thread may call. */
clv_status clv_texts_get(clv_context *context, const char *name, const char *text, size_t length,
                         const clv_cl_source **source);

/* Create and free the context's texts. Free them once the context's devices are closed. */
clv_status clv_texts_make(clv_context *context);
void clv_texts_free(clv_context *context);

#endif
