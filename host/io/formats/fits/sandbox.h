/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts a process to computing on the contents of its memory. */
#ifndef CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H
#define CLEAVE_HOST_IO_FORMATS_FITS_SANDBOX_H

#include <stdint.h>

/* Limits this process's memory to `bytes` more than it has now. Under a sanitizer, which reserves terabytes of
 * addresses, sets no limit. */
void clv_sandbox_memory(uint64_t bytes);
/* Makes every system call end the process from now on, except calls for memory that is not executable and for the
 * process's exit. Changes nothing if the kernel or the processor has no such filter, or under a sanitizer. */
void clv_sandbox_enter(void);

#endif
