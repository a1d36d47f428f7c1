/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares kernel source for a driver: resolves includes and inserts #line directives. */
#ifndef CLEAVE_RUNTIME_PROGRAM_SOURCE_H
#define CLEAVE_RUNTIME_PROGRAM_SOURCE_H

#include "base/text.h"

#include <cleave/runtime.h>

/* Appends the source. Every `#include "x"` is replaced by the library's header cl/x (each one once), and
 * #line directives make build logs name the real files. CLEAVE_CL_DIR=path (ignored in set-uid programs)
 * reads the library's own files from disk, so that you can edit them without rebuilding. Errors:
 * CLV_E_ARGUMENT (no such header, includes nested too deep), CLV_E_IO, CLV_E_MEMORY. If `declare` is set, the source
 * follows declarations of the built-in functions that it uses (cl/common/builtins.clh). */
clv_status clv_source_resolve(const clv_cl_source *source, bool declare, clv_text *text);

#endif
