/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what zarr.c and zarr_layout.c share. */
#ifndef CLEAVE_HOST_IO_FORMATS_ZARR_PARTS_H
#define CLEAVE_HOST_IO_FORMATS_ZARR_PARTS_H

#include "base/text.h"
#include "host/io/formats/unpack.h"
#include "host/io/formats/zarr.h"

struct clv_zarr {
    clv_zarr_layout layout;
    char *path;
    char separator[2]; /* separates the numbers in the name of a chunk's file */
    bool prefixed;     /* the files of chunks are in a folder "c" */
    size_t element;    /* bytes per number in the file */
    unsigned char fill[8];
    bool swap;                   /* the files have the opposite byte order */
    clv_unpacker *unpack;        /* NULL: chunks are not compressed */
    bool sum_before;             /* a checksum follows the numbers, and is compressed with them */
    bool sum_behind;             /* a checksum follows the compressed bytes */
    size_t shard[CLV_ZARR_RANK]; /* chunks per shard along each axis; 1 without shards */
    size_t per_shard;            /* chunks per shard; 0: no shards */
    /* index_first: a shard begins with its index; index_sum: the index has a checksum */
    bool index_first, index_sum;
    clv_text name;           /* name of the last chunk's file */
    clv_text indexed;        /* path of the shard whose index is in `index`; empty: none */
    uint32_t crc_of[256];    /* the CRC-32C of each byte */
    uint64_t absent, stored; /* absent: bytes of chunks without a file; stored: bytes read */
    unsigned char *bytes, *index, *scratch;
    size_t bytes_room, index_room, scratch_room;
};

#endif
