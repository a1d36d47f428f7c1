/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts a process to computing on what it has in memory. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H
#define CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H

#include <stdint.h>

/* Limits the memory to at most `bytes` more than now. Under a sanitizer, which reserves addresses by the terabyte, it
 * sets no limit. */
void clv_sandbox_memory(uint64_t bytes);
/* From this call on, every system call ends the process, except those for memory that is not executable and for its
 * exit. If the kernel or the processor has no such filter, and under a sanitizer, nothing changes. */
void clv_sandbox_enter(void);

#endif
