/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of float32 to a file as NPY, CSV, TSV, safetensors or Parquet, row by row; the file is complete or
 * absent. */
#ifndef CLEAVE_HOST_CLI_TEXT_VECTORS_H
#define CLEAVE_HOST_CLI_TEXT_VECTORS_H

#include "base/text.h"
#include "host/io/formats/npy_stream.h"
#include "host/io/tables/parquet.h"

enum {
    CLI_VECTORS_AUTO,
    CLI_VECTORS_NPY,
    CLI_VECTORS_CSV,
    CLI_VECTORS_TSV,
    CLI_VECTORS_SAFETENSORS,
    CLI_VECTORS_PARQUET
};

typedef struct cli_vectors {
    int format;
    size_t width;
    clv_npy_stream npy;
    clv_output output; /* of all formats but NPY */
    clv_parquet parquet;
    const char **names, **codes; /* of Parquet's columns */
    char *letters;               /* memory of the names */
    clv_text text;
    uint64_t rows;
} cli_vectors;

/* Opens the file. `format` AUTO: by the ending of the name, else NPY. CSV has a header ("v0,v1,..."), TSV has none.
 * Safetensors has one tensor, "embeddings". Parquet has one column of float32 per number ("v0", "v1", ...). */
clv_status cli_vectors_open(cli_vectors *vectors, const char *path, int format, size_t width);
clv_status cli_vectors_add(cli_vectors *vectors, const float *values, size_t rows);
clv_status cli_vectors_finish(cli_vectors *vectors);
void cli_vectors_abandon(cli_vectors *vectors); /* accepts a zero-initialised one */

#endif
