/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels written at run time. Each text is kept once, for as long as the context lives, since programs
 * identify their source by its address. */
#ifndef CLEAVE_RUNTIME_PROGRAM_TEXTS_H
#define CLEAVE_RUNTIME_PROGRAM_TEXTS_H

#include <cleave/runtime.h>

/* Returns the source with this text; `name` has static lifetime. Error: CLV_E_MEMORY. Any thread may call. */
clv_status clv_texts_get(clv_context *context, const char *name, const char *text, size_t length,
                         const clv_cl_source **source);

/* Made with the context; freed once its devices are closed. */
clv_status clv_texts_make(clv_context *context);
void clv_texts_free(clv_context *context);

#endif
