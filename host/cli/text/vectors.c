/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows of float32 to a file in one of several formats, row by row; the file is complete or absent. */
#include "host/cli/text/vectors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/cli/endings.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* HEAD: bytes before the data of a safetensors file, a multiple of 8 with room for any number of rows. GROUP_ROWS:
 * rows in a row group of a Parquet file. */
enum { HEAD = 256, GROUP_ROWS = 8192, NAME_ROOM = 24 };

static int format_of(const char *path)
{
    const unsigned formats = cli_formats_of(path);
    return formats & CLI_CSV       ? CLI_VECTORS_CSV
           : formats & CLI_TSV     ? CLI_VECTORS_TSV
           : formats & CLI_WEIGHTS ? CLI_VECTORS_SAFETENSORS
           : formats & CLI_PARQUET ? CLI_VECTORS_PARQUET
                                   : CLI_VECTORS_NPY;
}

/* Writes what is in `text` to the file. */
static clv_status flush(cli_vectors *v)
{
    if (v->text.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for rows of vectors");
    CLV_TRY(clv_output_write(&v->output, clv_text_get(&v->text), v->text.length));
    clv_text_restart(&v->text);
    return CLV_OK;
}

/* ---- safetensors: a length, JSON, and the numbers, the lowest byte first ----------------------------- */

static void make_head(const cli_vectors *v, char head[HEAD])
{
    char json[HEAD];
    const unsigned long long rows = (unsigned long long)v->rows, width = v->width;
    const int length = snprintf(json, sizeof json,
                                "{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[%llu,%llu],"
                                "\"data_offsets\":[0,%llu]}}",
                                rows, width, rows * width * sizeof(float));
    memset(head, ' ', HEAD);
    memset(head, 0, 8);
    head[0] = (char)(unsigned char)(HEAD - 8);
    memcpy(head + 8, json, (size_t)length);
}

static clv_status add_numbers(cli_vectors *v, const float *values, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return clv_output_write(&v->output, values, count * sizeof *values);
#else
    for (size_t i = 0; i < count; ++i) {
        unsigned char bytes[sizeof(float)];
        memcpy(bytes, &values[i], sizeof bytes);
        for (size_t k = sizeof bytes; k-- > 0;)
            clv_text_bytes(&v->text, (const char *)&bytes[k], 1);
    }
    return flush(v);
#endif
}

/* ---- Parquet: a column of float32 for each number ------------------------------------------------------ */

static clv_status begin_parquet(cli_vectors *v)
{
    v->names = clv_alloc(v->width + 1, sizeof *v->names);
    v->codes = clv_alloc(v->width + 1, sizeof *v->codes);
    v->letters = clv_alloc(v->width + 1, NAME_ROOM);
    if (!v->names || !v->codes || !v->letters)
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu columns", v->width);
    for (size_t i = 0; i < v->width; ++i) {
        snprintf(v->letters + i * NAME_ROOM, NAME_ROOM, "v%zu", i);
        v->names[i] = v->letters + i * NAME_ROOM;
        v->codes[i] = "f4";
    }
    clv_parquet_begin(&v->parquet, v->names, v->codes, v->width, &v->text);
    return flush(v);
}

static clv_status add_groups(cli_vectors *v, const float *values, size_t rows)
{
    for (size_t done = 0; done < rows; done += GROUP_ROWS) {
        clv_parquet_add(&v->parquet, values + done * v->width,
                        CLV_MIN(rows - done, (size_t)GROUP_ROWS), &v->text);
        CLV_TRY(flush(v));
    }
    return CLV_OK;
}

/* ---- text --------------------------------------------------------------------------------------------- */

static clv_status begin_text(cli_vectors *v)
{
    for (size_t i = 0; i < v->width && v->format == CLI_VECTORS_CSV; ++i)
        clv_text_add(&v->text, i ? ",v%zu" : "v%zu", i);
    if (v->format == CLI_VECTORS_CSV) clv_text_add(&v->text, "\n");
    return flush(v);
}

static clv_status add_text(cli_vectors *v, const float *values, size_t rows)
{
    const char *between = v->format == CLI_VECTORS_CSV ? "," : "\t";
    for (size_t i = 0; i < rows; ++i) {
        for (size_t k = 0; k < v->width; ++k) /* 9 digits restore every float exactly */
            clv_text_add(&v->text, "%s%.9g", k ? between : "", (double)values[i * v->width + k]);
        clv_text_add(&v->text, "\n");
        CLV_TRY(flush(v));
    }
    return CLV_OK;
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

clv_status cli_vectors_open(cli_vectors *v, const char *path, int format, size_t width)
{
    char head[HEAD];
    *v = (cli_vectors){ .format = format ? format : format_of(path), .width = width };
    if (v->format == CLI_VECTORS_NPY) return clv_npy_stream_open(&v->npy, path, width);
    CLV_TRY(clv_output_open(&v->output, path, v->format == CLI_VECTORS_SAFETENSORS));
    if (v->format == CLI_VECTORS_PARQUET) return begin_parquet(v);
    if (v->format != CLI_VECTORS_SAFETENSORS) return begin_text(v);
    make_head(v, head);
    return clv_output_write(&v->output, head, HEAD);
}

clv_status cli_vectors_add(cli_vectors *v, const float *values, size_t rows)
{
    v->rows += rows;
    switch (v->format) {
    case CLI_VECTORS_NPY:
        return clv_npy_stream_add(&v->npy, values, rows);
    case CLI_VECTORS_SAFETENSORS:
        return add_numbers(v, values, rows * v->width);
    case CLI_VECTORS_PARQUET:
        return add_groups(v, values, rows);
    default:
        return add_text(v, values, rows);
    }
}

clv_status cli_vectors_finish(cli_vectors *v)
{
    char head[HEAD];
    clv_status status = CLV_OK;
    if (v->format == CLI_VECTORS_PARQUET) {
        clv_parquet_end(&v->parquet, &v->text);
        status = flush(v);
    } else if (v->format == CLI_VECTORS_SAFETENSORS) {
        make_head(v, head);
        status = clv_output_patch(&v->output, head, HEAD);
    }
    if (!status)
        status = v->format == CLI_VECTORS_NPY ? clv_npy_stream_finish(&v->npy)
                                              : clv_output_finish(&v->output);
    cli_vectors_abandon(v);
    return status;
}

void cli_vectors_abandon(cli_vectors *v)
{
    clv_npy_stream_abandon(&v->npy);
    clv_output_abandon(&v->output);
    clv_parquet_clear(&v->parquet);
    clv_text_clear(&v->text);
    clv_free(v->names), clv_free(v->codes), clv_free(v->letters);
    *v = (cli_vectors){ 0 };
}
