/* SPDX-License-Identifier: Apache-2.0 */
/* One Zarr array in a folder, version 2 or 3, read chunk by chunk. Private to the reader of OME-Zarr movies. */
#ifndef CLEAVE_HOST_IO_FORMATS_ZARR_H
#define CLEAVE_HOST_IO_FORMATS_ZARR_H

#include "base/json.h"
#include "host/io/formats/movie.h"

enum { CLV_ZARR_RANK = 5 };

typedef struct clv_zarr_layout {
    size_t rank, shape[CLV_ZARR_RANK];
    size_t chunk[CLV_ZARR_RANK];  /* of what is read at once: of shards, the chunks in them */
    size_t stride[CLV_ZARR_RANK]; /* in a chunk that was read, in elements */
    size_t chunk_elements;
    clv_type stored;
    clv_narrow narrow;
} clv_zarr_layout;

typedef struct clv_zarr clv_zarr;

/* Whether the folder is a Zarr array or group. */
bool clv_zarr_is(const char *path);
/* A file of JSON in the folder; *root NULL: not there. Free with clv_json_free. CLV_E_IO, CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_zarr_json(const char *folder, const char *name, clv_json **root);
/* "folder/name"; free with clv_free; NULL: no memory. */
char *clv_zarr_path(const char *folder, const char *name);

/* CLV_E_FORMAT (what is not read is named), CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_zarr_open(const char *path, clv_zarr **zarr);
const clv_zarr_layout *clv_zarr_look(const clv_zarr *zarr);
/* Chunk `index` along each axis: layout->chunk_elements numbers as they are stored, in this machine's byte order.
 * What lies outside the array is undefined. A chunk that is not there has the array's fill value. CLV_E_IO; CLV_E_FORMAT:
 * damaged. */
clv_status clv_zarr_read(clv_zarr *zarr, const size_t *index, void *out);
void clv_zarr_close(clv_zarr *zarr); /* accepts NULL */

#endif
