/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the codes of vectors from a file or computes them, and adds the vectors of the candidates that the codes
 * select. */
#include "host/cli/text/first_pass.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/formats/npy_codes.h"

#include <string.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 64 << 20, /* bytes of vectors or codes in memory at a time */
    SAMPLES = 64            /* rows whose codes are computed again, to check the file */
};

static size_t block_of(size_t bytes, size_t rows)
{
    return CLV_MAX(CLV_MIN((size_t)BLOCK_BYTES / bytes, rows), (size_t)1);
}

static clv_status make_codes(const cli_first_pass *p, size_t first, size_t count, float *rows,
                             void *codes)
{
    CLV_TRY(clv_npy_rows_read(p->vectors, first, count, rows));
    return clv_codes_make(p->codes, rows, count, p->vectors->width, 0, codes);
}

/* ---- does the file fit? ---------------------------------------------------------------------------- */

static clv_status compare(const cli_first_pass *p, const clv_npy_codes *file, float *row,
                          uint8_t *made, uint8_t *read)
{
    const size_t rows = file->rows, samples = CLV_MIN(rows, (size_t)SAMPLES);
    for (size_t i = 0; i < samples; ++i) {
        const size_t r =
            samples > 1 ? (size_t)((double)(rows - 1) * (double)i / (double)(samples - 1)) : 0;
        CLV_TRY(make_codes(p, r, 1, row, made));
        CLV_TRY(clv_npy_codes_read(file, r, 1, read));
        if (memcmp(made, read, file->bytes) != 0)
            return clv_fail(
                CLV_E_FORMAT,
                "--codes %s: row %zu is not the code of that row of %s; remove the file, "
                "and it is made anew",
                p->path, r, p->vectors_path);
    }
    return CLV_OK;
}

static clv_status check_file(const cli_first_pass *p)
{
    const size_t bytes = clv_codes_bytes(p->codes, p->vectors->width);
    const bool is_signed = p->codes == CLV_CODES_INT8;
    clv_npy_codes file = { 0 };
    CLV_TRY(clv_npy_codes_open(&file, p->path));
    clv_status status = CLV_OK;
    if (file.rows != p->vectors->rows || file.bytes != bytes || file.is_signed != is_signed)
        status = clv_fail(
            CLV_E_SHAPE,
            "--codes %s: the file has %s [%zu, %zu], but the codes of %s would be %s [%zu, %zu]",
            p->path, file.is_signed ? "int8" : "uint8", file.rows, file.bytes, p->vectors_path,
            is_signed ? "int8" : "uint8", p->vectors->rows, bytes);
    float *row = clv_alloc(p->vectors->width, sizeof *row);
    uint8_t *both = clv_alloc(bytes, 2);
    if (!status && (!row || !both)) status = clv_fail(CLV_E_MEMORY, "not enough memory for a row");
    if (!status) status = compare(p, &file, row, both, both + bytes);
    clv_free(row), clv_free(both);
    clv_npy_codes_close(&file);
    return status;
}

int cli_first_pass_check(cli_first_pass *p)
{
    p->write = p->path && access(p->path, F_OK) != 0;
    return p->path && !p->write ? cli_input_status(p->command, check_file(p)) : 0;
}

/* ---- the first pass -------------------------------------------------------------------------------- */

static clv_status add_from_file(const cli_first_pass *p, clv_search *search, size_t *done,
                                clv_report *report)
{
    clv_npy_codes file = { 0 };
    CLV_TRY(clv_npy_codes_open(&file, p->path));
    const size_t block = block_of(file.bytes, file.rows);
    uint8_t *codes = clv_alloc(block, file.bytes);
    clv_status status =
        codes ? CLV_OK : clv_fail(CLV_E_MEMORY, "not enough memory for %zu codes", block);
    while (!status && *done < file.rows) {
        const size_t count = CLV_MIN(block, file.rows - *done);
        status = clv_npy_codes_read(&file, *done, count, codes);
        if (!status) status = clv_search_add_codes(search, codes, count, report);
        *done += count;
    }
    clv_free(codes);
    clv_npy_codes_close(&file);
    return status;
}

static clv_status add_made(const cli_first_pass *p, clv_search *search, size_t *done,
                           clv_output *output, clv_report *report)
{
    const size_t bytes = clv_codes_bytes(p->codes, p->vectors->width), rows = p->vectors->rows;
    const size_t block = block_of(p->vectors->width * sizeof(float), rows);
    float *vectors = clv_alloc(block * p->vectors->width, sizeof *vectors);
    uint8_t *codes = clv_alloc(block, bytes);
    clv_status status = vectors && codes
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "not enough memory for %zu vectors", block);
    while (!status && *done < rows) {
        const size_t count = CLV_MIN(block, rows - *done);
        status = make_codes(p, *done, count, vectors, codes);
        if (!status && output) status = clv_output_write(output, codes, count * bytes);
        if (!status) status = clv_search_add_codes(search, codes, count, report);
        *done += count;
    }
    clv_free(vectors), clv_free(codes);
    return status;
}

static clv_status add_codes(const cli_first_pass *p, clv_search *search, size_t *done,
                            clv_report *report)
{
    if (p->path && !p->write) return add_from_file(p, search, done, report);
    if (!p->path) return add_made(p, search, done, NULL, report);
    clv_output output = { 0 };
    CLV_TRY(clv_npy_codes_create(&output, p->path, p->vectors->rows,
                                 clv_codes_bytes(p->codes, p->vectors->width),
                                 p->codes == CLV_CODES_INT8));
    clv_status status = add_made(p, search, done, &output, report);
    if (!status) status = clv_output_finish(&output);
    clv_output_abandon(&output);
    return status;
}

/* ---- the second pass ------------------------------------------------------------------------------- */

static clv_status rescore(const cli_first_pass *p, clv_search *search, const int64_t *rows,
                          size_t count, float *vectors, size_t block)
{
    const size_t width = p->vectors->width;
    for (size_t at = 0; at < count; at += block) {
        const size_t here = CLV_MIN(block, count - at);
        for (size_t i = 0; i < here; ++i)
            CLV_TRY(clv_npy_rows_read(p->vectors, (size_t)rows[at + i], 1, vectors + i * width));
        CLV_TRY(clv_search_rescore(search, vectors, here, 0));
    }
    return CLV_OK;
}

clv_status cli_first_pass_run(const cli_first_pass *p, clv_search *search, size_t *done,
                              clv_report *report)
{
    size_t count;
    CLV_TRY(add_codes(p, search, done, report));
    CLV_TRY(clv_search_candidates(search, NULL, &count));
    const size_t block = block_of(p->vectors->width * sizeof(float), count);
    int64_t *rows = clv_alloc(count + 1, sizeof *rows);
    float *vectors = clv_alloc(block * p->vectors->width, sizeof *vectors);
    clv_status status = rows && vectors
                            ? clv_search_candidates(search, rows, &count)
                            : clv_fail(CLV_E_MEMORY, "not enough memory for %zu candidates", count);
    if (!status) status = rescore(p, search, rows, count, vectors, block);
    clv_free(rows), clv_free(vectors);
    return status;
}
