/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that were freed while a device of theirs hung in its driver. */
#ifndef CLEAVE_RUNTIME_CONTEXT_FREE_H
#define CLEAVE_RUNTIME_CONTEXT_FREE_H

#include <stddef.h>

/* How many are kept because their device has not come back. */
size_t clv_contexts_left(void);

#endif
