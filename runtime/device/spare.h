/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one block of host memory, which each call of a context leaves to the next call. Fresh memory of several
 * megabytes is mapped page by page when it is touched, which may take longer than the work that is done in it. */
#ifndef CLEAVE_RUNTIME_DEVICE_SPARE_H
#define CLEAVE_RUNTIME_DEVICE_SPARE_H

#include <cleave/runtime.h>

/* Takes a block of at least *bytes bytes with arbitrary contents, and sets *bytes to its size. Returns NULL without
 * memory. */
void *clv_spare_take(clv_context *context, size_t *bytes);
/* Gives a block back. The larger one of this and the kept block stays, up to 128 MB, until the context is freed.
 * Accepts NULL. */
void clv_spare_give(clv_context *context, void *memory, size_t bytes);

#endif
