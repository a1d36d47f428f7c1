/* SPDX-License-Identifier: Apache-2.0 */
/* A file compressed by gzip, unpacked into memory. */
#ifndef CLEAVE_HOST_IO_FORMATS_GUNZIP_H
#define CLEAVE_HOST_IO_FORMATS_GUNZIP_H

#include "host/io/stream.h"

/* All members of an opened file, one after the other, sums checked; zeros and other bytes after the
 * last member are left out, as gzip does. Free *bytes with clv_free; NULL after a failure.
 * CLV_E_IO; CLV_E_FORMAT: damaged or cut; CLV_E_MEMORY, also for
 * more bytes than clv_io_room allows. */
clv_status clv_gunzip(clv_input *input, char **bytes, size_t *length);

#endif
