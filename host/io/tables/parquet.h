/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables as Apache Parquet files, column by column without compression, and reads them. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_H

#include "base/text.h"

#include <cleave/status.h>

/* A Parquet file that is being written. Zero-initialise. */
typedef struct clv_parquet {
    const char *const *names, *const *codes; /* borrowed until the end */
    size_t count, row_bytes;                 /* count: of columns; row_bytes: per record */
    /* rows: written so far; offset: of the file's end, in bytes */
    uint64_t rows, offset;
    clv_text groups; /* the footer's description of the groups of rows */
    size_t group_count;
} clv_parquet;

/* Begins a file with columns of the types `codes`: "u4", "i8", "f4", "f8", or "S12" for text of at most 12 bytes, as in
 * clv_npy_records_begin. Appends the file's first bytes to `out`. If memory runs out, out->failed is set. */
void clv_parquet_begin(clv_parquet *file, const char *const *names, const char *const *codes,
                       size_t count, clv_text *out);
/* Appends `rows` records, packed as in NumPy's files, as one group of rows. A good number is 65,536 rows per group. */
void clv_parquet_add(clv_parquet *file, const void *records, size_t rows, clv_text *out);
/* Appends the footer, and frees what the struct holds. */
void clv_parquet_end(clv_parquet *file, clv_text *out);
/* frees the struct after a failure, in place of clv_parquet_end */
void clv_parquet_clear(clv_parquet *file);

/* Converts a Parquet file in memory to a table as text with commas, which it appends to `text`. Reads columns of
 * numbers of 4 or 8 bytes, texts and truth values, from data pages of both versions: plain or with dictionaries,
 * uncompressed or compressed by Snappy, gzip or Zstandard. pandas and pyarrow write such files by default. *codes gets
 * NumPy's types of the columns. A missing number becomes nan, a missing text becomes empty. Returns CLV_OK;
 * CLV_E_FORMAT if the file is damaged, expands to far more text than it has bytes, or uses other forms of Parquet
 * (lists, decimal numbers, other codecs and encodings), with a message that says how to convert it; CLV_E_MEMORY. */
clv_status clv_parquet_records(const char *path, const char *data, size_t length, clv_text *text,
                               char (**codes)[3]);

#endif
