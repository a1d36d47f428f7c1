/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks compressed bytes in memory, such as the chunks of Zarr arrays. */
#ifndef CLEAVE_HOST_IO_FORMATS_UNPACK_H
#define CLEAVE_HOST_IO_FORMATS_UNPACK_H

#include <cleave/status.h>

#include <stddef.h>

/* A function that unpacks the `length` bytes at `in` to exactly `wanted` bytes at `out`. `path` names the file in
 * messages. Returns CLV_OK; CLV_E_FORMAT if the data are damaged, have another length, or Cleave was built without the
 * library; CLV_E_MEMORY. */
typedef clv_status clv_unpacker(const char *path, const void *in, size_t length, void *out,
                                size_t wanted);

clv_unpacker clv_unpack_zlib;   /* gunzip.c: zlib and gzip, recognised by their first bytes */
clv_unpacker clv_unpack_zstd;   /* unzstd.c: one frame of Zstandard */
clv_unpacker clv_unpack_snappy; /* unsnappy.c: Snappy without frames */
clv_unpacker clv_unpack_blosc;  /* unblosc.c: Blosc with any of its codecs */

#endif
