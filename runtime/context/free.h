/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that were freed while one of their devices hung in its driver. */
#ifndef CLEAVE_RUNTIME_CONTEXT_FREE_H
#define CLEAVE_RUNTIME_CONTEXT_FREE_H

#include <stddef.h>

/* Returns how many contexts are kept because a device of theirs has not come back. */
size_t clv_contexts_left(void);

#endif
