/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables of every kind that Cleave or related programs write. */
#ifndef CLEAVE_HOST_IO_TABLES_ANY_H
#define CLEAVE_HOST_IO_TABLES_ANY_H

#include "host/io/tables/csv.h"

/* Reads a table; its contents decide its kind, not its name: text with commas, semicolons or tabs between the fields
 * (the header decides), NumPy records, Parquet (see clv_parquet_records), JSON (an array of flat objects, one object
 * after the other, or an object of columns or of rows), or the spots of TrackMate's XML.
 *
 * `decimal`, '.' or ',', is the decimal mark of numbers in text; 0 derives it from the numbers (clv_csv_find_decimal).
 * *kind is the name of the kind, for messages. Returns the statuses of clv_csv_read. */
clv_status clv_table_read(const char *path, char decimal, clv_csv_table **table, const char **kind);

/* Each converts the contents of a file of one kind to text with commas between the fields, and appends it to `text` for
 * clv_csv_take. clv_npy_records also sets *codes to NumPy's types of the columns. clv_xml_records overwrites comments
 * in `data`. */
clv_status clv_npy_records(const char *path, const char *data, size_t length, clv_text *text,
                           char (**codes)[3]);
clv_status clv_json_records(const char *path, const char *data, size_t length, clv_text *text);
clv_status clv_xml_records(const char *path, char *data, size_t length, clv_text *text);

/* Appends to `text` the header of NumPy records with `count` fields of the types `codes` ("u4", "f8", "S12"; this
 * function adds the byte order). The header's length depends only on names and types, not on `rows`. */
void clv_npy_records_begin(clv_text *text, const char *const *names, const char *const *codes,
                           size_t count, size_t rows);

#endif
