/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of float32 to a file as NPY, CSV or TSV, row by row; the file is complete or absent. */
#ifndef CLEAVE_HOST_CLI_TEXT_VECTORS_H
#define CLEAVE_HOST_CLI_TEXT_VECTORS_H

#include "base/text.h"
#include "host/io/formats/npy_stream.h"

enum { CLI_VECTORS_AUTO, CLI_VECTORS_NPY, CLI_VECTORS_CSV, CLI_VECTORS_TSV };

typedef struct cli_vectors {
    int format;
    size_t width;
    clv_npy_stream npy;
    clv_output text_output;
    clv_text text;
    uint64_t rows;
} cli_vectors;

/* Opens the file. `format` AUTO: by the ending of the name, else NPY. CSV has a header ("v0,v1,..."), TSV has none. */
clv_status cli_vectors_open(cli_vectors *vectors, const char *path, int format, size_t width);
clv_status cli_vectors_add(cli_vectors *vectors, const float *values, size_t rows);
clv_status cli_vectors_finish(cli_vectors *vectors);
void cli_vectors_abandon(cli_vectors *vectors); /* accepts a zero-initialised one */

#endif
