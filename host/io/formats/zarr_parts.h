/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the reader of Zarr arrays share. */
#ifndef CLEAVE_HOST_IO_FORMATS_ZARR_PARTS_H
#define CLEAVE_HOST_IO_FORMATS_ZARR_PARTS_H

#include "base/text.h"
#include "host/io/formats/unpack.h"
#include "host/io/formats/zarr.h"

struct clv_zarr {
    clv_zarr_layout layout;
    char *path;
    char separator[2]; /* between the numbers of a chunk's name */
    bool prefixed;     /* chunks lie in a folder "c" */
    size_t element;    /* bytes of a number in the file */
    unsigned char fill[8];
    bool swap;                   /* of the other byte order */
    clv_unpacker *unpack;        /* NULL: chunks are not packed */
    bool sum_before;             /* a checksum follows the numbers, and is packed with them */
    bool sum_behind;             /* a checksum follows what was packed */
    size_t shard[CLV_ZARR_RANK]; /* chunks of a shard along each axis; 1 without shards */
    size_t per_shard;            /* 0: no shards */
    bool index_first, index_sum; /* where the index of a shard lies; with a checksum */
    clv_text name;               /* of the last chunk's file */
    unsigned char *bytes, *index, *scratch;
    size_t bytes_room, index_room, scratch_room;
};

#endif
