/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of float32 to a file as NPY, CSV or TSV, row by row; the file is complete or absent. */
#include "host/cli/text/vectors.h"

#include "base/error.h"
#include "host/cli/endings.h"

static int format_of(const char *path)
{
    const unsigned formats = cli_formats_of(path);
    return formats & CLI_CSV   ? CLI_VECTORS_CSV
           : formats & CLI_TSV ? CLI_VECTORS_TSV
                               : CLI_VECTORS_NPY;
}

clv_status cli_vectors_open(cli_vectors *v, const char *path, int format, size_t width)
{
    *v = (cli_vectors){ .format = format ? format : format_of(path), .width = width };
    if (v->format == CLI_VECTORS_NPY) return clv_npy_stream_open(&v->npy, path, width);
    CLV_TRY(clv_output_open(&v->text_output, path, false));
    if (v->format != CLI_VECTORS_CSV) return CLV_OK;
    for (size_t i = 0; i < width; ++i)
        clv_text_add(&v->text, i ? ",v%zu" : "v%zu", i);
    clv_text_add(&v->text, "\n");
    if (v->text.failed) return clv_fail(CLV_E_MEMORY, "%s: no memory", path);
    return clv_output_write(&v->text_output, v->text.data, v->text.length);
}

clv_status cli_vectors_add(cli_vectors *v, const float *values, size_t rows)
{
    v->rows += rows;
    if (v->format == CLI_VECTORS_NPY) return clv_npy_stream_add(&v->npy, values, rows);
    const char *between = v->format == CLI_VECTORS_CSV ? "," : "\t";
    for (size_t i = 0; i < rows; ++i) {
        v->text.length = 0;
        for (size_t k = 0; k < v->width; ++k) /* 9 digits restore every float exactly */
            clv_text_add(&v->text, "%s%.9g", k ? between : "", (double)values[i * v->width + k]);
        clv_text_add(&v->text, "\n");
        if (v->text.failed) return clv_fail(CLV_E_MEMORY, "no memory for a row");
        CLV_TRY(clv_output_write(&v->text_output, v->text.data, v->text.length));
    }
    return CLV_OK;
}

clv_status cli_vectors_finish(cli_vectors *v)
{
    const clv_status status = v->format == CLI_VECTORS_NPY ? clv_npy_stream_finish(&v->npy)
                                                           : clv_output_finish(&v->text_output);
    cli_vectors_abandon(v);
    return status;
}

void cli_vectors_abandon(cli_vectors *v)
{
    clv_npy_stream_abandon(&v->npy);
    clv_output_abandon(&v->text_output);
    clv_text_clear(&v->text);
    *v = (cli_vectors){ 0 };
}
