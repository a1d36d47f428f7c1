/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a file compressed by gzip into memory. */
#ifndef CLEAVE_HOST_IO_FORMATS_GUNZIP_H
#define CLEAVE_HOST_IO_FORMATS_GUNZIP_H

#include "host/io/stream.h"

/* Unpacks all members of an opened file, one after the other, and checks their checksums. Zeros and other bytes after
 * the last member are ignored, as gzip does. Free *bytes with clv_free; it is NULL after a failure. Returns CLV_OK;
 * CLV_E_IO; CLV_E_FORMAT if the file is damaged or truncated; CLV_E_MEMORY, also for more bytes than clv_io_room
 * allows. */
clv_status clv_gunzip(clv_input *input, char **bytes, size_t *length);

#endif
