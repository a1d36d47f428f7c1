/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one Zarr array in a folder, version 2 or 3, chunk by chunk. Private to the reader of OME-Zarr movies. */
#ifndef CLEAVE_HOST_IO_FORMATS_ZARR_H
#define CLEAVE_HOST_IO_FORMATS_ZARR_H

#include "base/json.h"
#include "host/io/formats/movie.h"

enum { CLV_ZARR_RANK = 5 };

typedef struct clv_zarr_layout {
    size_t rank, shape[CLV_ZARR_RANK];
    /* shape of what is read at once; in shards: of the chunks in them */
    size_t chunk[CLV_ZARR_RANK];
    size_t stride[CLV_ZARR_RANK]; /* in a chunk after reading, in elements */
    size_t chunk_elements;
    clv_type stored;
    clv_narrow narrow;
} clv_zarr_layout;

typedef struct clv_zarr clv_zarr;

/* Returns whether the folder is a Zarr array or group. */
bool clv_zarr_is(const char *path);
/* Reads a JSON file in the folder; *root is NULL if there is none. Free it with clv_json_free. Returns CLV_OK,
 * CLV_E_IO, CLV_E_FORMAT or CLV_E_MEMORY. */
clv_status clv_zarr_json(const char *folder, const char *name, clv_json **root);
/* Returns "folder/name", to be freed with clv_free; NULL if there is no memory. */
char *clv_zarr_path(const char *folder, const char *name);

/* Opens an array. Returns CLV_OK; CLV_E_FORMAT, whose message names what is not supported; CLV_E_IO; CLV_E_MEMORY. */
clv_status clv_zarr_open(const char *path, clv_zarr **zarr);
const clv_zarr_layout *clv_zarr_look(const clv_zarr *zarr);
/* Reads chunk `index` along each axis: layout->chunk_elements numbers in their stored type and this machine's byte
 * order. Elements outside the array are undefined. A missing chunk has the array's fill value. Returns CLV_OK;
 * CLV_E_IO; CLV_E_FORMAT if it is damaged, or if more than 8 GiB and 1000 times the bytes read so far were missing. */
clv_status clv_zarr_read(clv_zarr *zarr, const size_t *index, void *out);
void clv_zarr_close(clv_zarr *zarr); /* accepts NULL */

#endif
