/* SPDX-License-Identifier: Apache-2.0 */
/* A process that computes on what it has in memory, and can do nothing else. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H
#define CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H

#include <stdint.h>

/* At most `bytes` of memory more than now. Under a sanitizer, which reserves addresses by the terabyte: no limit. */
void clv_sandbox_memory(uint64_t bytes);
/* From now on every system call ends the process, but those for memory that is not code and for its end. Where the
 * kernel or the processor has no such filter, and under a sanitizer, nothing changes. */
void clv_sandbox_enter(void);

#endif
