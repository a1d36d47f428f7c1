/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the memory that the contents of a file may take when they are unpacked: a small file can claim, or really
 * hold, far more bytes than its own size. */
#ifndef CLEAVE_HOST_IO_ROOM_H
#define CLEAVE_HOST_IO_ROOM_H

#include <cleave/status.h>

#include <stdint.h>

/* Sets the limit in bytes; 0 restores the default, which is half of the free memory, counted within the limits of the
 * container and of the process. The command passes --mem-limit. Call this before any thread reads files. */
void clv_io_set_room(uint64_t bytes);
uint64_t clv_io_room(void);

/* Returns CLV_OK if `bytes` are within the limit; else CLV_E_MEMORY, with a message that states the limit and the
 * option that raises it. `what` follows the path in the message, for instance "unpacked". */
clv_status clv_io_need(const char *path, const char *what, uint64_t bytes);

#endif
