/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory that calls of a context hand on. Fresh memory of megabytes is mapped page by page
 * when it is touched, which may take longer than the work that is done in it. */
#ifndef CLEAVE_RUNTIME_DEVICE_SPARE_H
#define CLEAVE_RUNTIME_DEVICE_SPARE_H

#include <cleave/runtime.h>

/* At least `*bytes`, whose contents are anything; `*bytes` gets how many. NULL: no memory. */
void *clv_spare_take(clv_context *context, size_t *bytes);
/* The larger one stays, up to 128 MB, until the context is freed. NULL is fine. */
void clv_spare_give(clv_context *context, void *memory, size_t bytes);

#endif
