/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel text as a driver gets it: includes resolved, lines named. */
#ifndef CLEAVE_RUNTIME_PROGRAM_SOURCE_H
#define CLEAVE_RUNTIME_PROGRAM_SOURCE_H

#include "base/text.h"

#include <cleave/runtime.h>

/* Appends the source with every `#include "x"` replaced by the library's header cl/x (each once)
 * and #line directives, so that build logs name the real files. CLEAVE_CL_DIR=path (ignored in
 * set-uid programs) reads the library's own files from disk: edit without rebuilding.
 * CLV_E_ARGUMENT (no such header, includes nested too deep); CLV_E_IO; CLV_E_MEMORY. */
clv_status clv_source_resolve(const clv_cl_source *source, clv_text *text);

#endif
