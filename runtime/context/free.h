/* SPDX-License-Identifier: Apache-2.0 */
/* Counts contexts that were freed by the caller while one of their devices hung in its driver. */
#ifndef CLEAVE_RUNTIME_CONTEXT_FREE_H
#define CLEAVE_RUNTIME_CONTEXT_FREE_H

#include <stddef.h>

/* Returns how many freed contexts are kept because one of their devices still hangs. */
size_t clv_contexts_left(void);

#endif
