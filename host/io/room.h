/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a file may take when it is unpacked: a small file can claim, or really hold, far more bytes than
 * it has. */
#ifndef CLEAVE_HOST_IO_ROOM_H
#define CLEAVE_HOST_IO_ROOM_H

#include <cleave/status.h>

#include <stdint.h>

/* Bytes; 0 brings the default back, which is half of the memory that is free (and of an address-space limit). The
 * command sets what --mem-limit says. Threads: set it before files are read. */
void clv_io_set_room(uint64_t bytes);
uint64_t clv_io_room(void);

/* CLV_E_MEMORY, with the limit and what to do, unless `bytes` fit; `what` is "unpacked" and the like. */
clv_status clv_io_need(const char *path, const char *what, uint64_t bytes);

#endif
