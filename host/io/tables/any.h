/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables of any kind that Cleave or related programs write. */
#ifndef CLEAVE_HOST_IO_TABLES_ANY_H
#define CLEAVE_HOST_IO_TABLES_ANY_H

#include "host/io/tables/csv.h"

/* Reads a table, whatever its name: text with commas, semicolons or tabs between the fields (the header decides), NumPy
 * records, Parquet (see clv_parquet_records), JSON (an array of flat objects), or the spots of TrackMate's XML.
 *
 * `decimal` is '.' or ',' in the numbers of a text; 0 derives it from the numbers (clv_csv_find_decimal). `kind` names
 * what was found, for messages. Returns the statuses of clv_csv_read. */
clv_status clv_table_read(const char *path, char decimal, clv_csv_table **table, const char **kind);

/* The parts of clv_table_read. They convert what they read to text with commas, for clv_csv_take. */
clv_status clv_npy_records(const char *path, const char *data, size_t length, clv_text *text,
                           char (**codes)[3]);
clv_status clv_json_records(const char *path, const char *data, size_t length, clv_text *text);
clv_status clv_xml_records(const char *path, const char *data, size_t length, clv_text *text);

/* Writes the header of NumPy records with `count` fields of the types `codes` ("u4", "f8", "S12"; the function puts "<"
 * and the like before them). Its length depends on names and types alone, not on `rows`. */
void clv_npy_records_begin(clv_text *text, const char *const *names, const char *const *codes,
                           size_t count, size_t rows);

#endif
