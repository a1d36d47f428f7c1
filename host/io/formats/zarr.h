/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one Zarr array in a folder, version 2 or 3, chunk by chunk. Private to the reader of OME-Zarr movies. */
#ifndef CLEAVE_HOST_IO_FORMATS_ZARR_H
#define CLEAVE_HOST_IO_FORMATS_ZARR_H

#include "base/json.h"
#include "host/io/formats/movie.h"

enum { CLV_ZARR_RANK = 5 };

typedef struct clv_zarr_layout {
    size_t rank, shape[CLV_ZARR_RANK];
    /* shape of a chunk, the unit of reading; in a sharded array, of the chunks inside a shard */
    size_t chunk[CLV_ZARR_RANK];
    size_t stride[CLV_ZARR_RANK]; /* strides in a chunk as clv_zarr_read returns it, in elements */
    size_t chunk_elements;
    clv_type stored;
    clv_narrow narrow;
} clv_zarr_layout;

typedef struct clv_zarr clv_zarr;

/* Returns whether the folder is a Zarr array or group. */
bool clv_zarr_is(const char *path);
/* Returns whether the folder has the description of an array of version 2. */
bool clv_zarr_is_old(const char *path);
/* Reads the JSON file `name` in the folder; *root is NULL if the file does not exist. Free *root with clv_json_free.
 * Returns CLV_OK, CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_zarr_json(const char *folder, const char *name, clv_json **root);
/* Returns "folder/name", to be freed with clv_free; NULL if there is no memory. */
char *clv_zarr_path(const char *folder, const char *name);

/* Opens an array. Returns CLV_OK; CLV_E_FORMAT, whose message names what is not supported; CLV_E_IO; CLV_E_MEMORY. */
clv_status clv_zarr_open(const char *path, clv_zarr **zarr);
const clv_zarr_layout *clv_zarr_look(const clv_zarr *zarr);
/* Reads the chunk whose number along each axis is in `index`: layout->chunk_elements numbers in their stored type and
 * this machine's byte order. Elements outside the array are undefined. A chunk without a file has the array's fill
 * value. Returns CLV_OK; CLV_E_IO; CLV_E_FORMAT if the chunk is damaged, or if absent chunks exceed 8 GiB by more than
 * 1000 times the bytes read so far. */
clv_status clv_zarr_read(clv_zarr *zarr, const size_t *index, void *out);
void clv_zarr_close(clv_zarr *zarr); /* accepts NULL */

#endif
