/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as Apache Parquet files: one column after the other, as the numbers are, without compression. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_H

#include "base/text.h"

#include <cleave/status.h>

/* A file that is being written. Zero-initialise. */
typedef struct clv_parquet {
    const char *const *names, *const *codes; /* borrowed until the end */
    size_t count, row_bytes;                 /* columns; bytes of a record */
    uint64_t rows, offset;                   /* so far; of the file's end */
    clv_text groups;                         /* what the footer says of the groups of rows */
    size_t group_count;
} clv_parquet;

/* Begins a file with columns of the types `codes`: "u4", "i8", "f4", "f8", or "S12" for text of at most 12 bytes, as in
 * clv_npy_records_begin. Appends the file's first bytes to `out`. If memory runs out, `out` has failed. */
void clv_parquet_begin(clv_parquet *file, const char *const *names, const char *const *codes,
                       size_t count, clv_text *out);
/* Appends `rows` records, packed as in NumPy's files, as one group; 65,536 rows at a time are a good number. */
void clv_parquet_add(clv_parquet *file, const void *records, size_t rows, clv_text *out);
/* Appends the footer, and frees what the struct holds. */
void clv_parquet_end(clv_parquet *file, clv_text *out);
void clv_parquet_clear(clv_parquet *file); /* in place of clv_parquet_end, after a failure */

/* Reads columns of numbers of 4 or 8 bytes, texts and truth values from data pages of both versions: plain or with
 * dictionaries, as they are or packed by Snappy, gzip or Zstandard. pandas and pyarrow write such files by default.
 * Appends the table as text with commas; `codes` as for clv_npy_records. A missing number is nan, a missing text is
 * empty. CLV_E_FORMAT: damaged, a table of much more text than the file has bytes, or one of Parquet's other forms
 * (lists, decimal numbers, other codecs and encodings); the message says how to convert it. CLV_E_MEMORY. */
clv_status clv_parquet_records(const char *path, const char *data, size_t length, clv_text *text,
                               char (**codes)[3]);

#endif
