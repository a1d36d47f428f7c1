/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of any kind that Cleave or its neighbours write, read as one. */
#ifndef CLEAVE_HOST_IO_TABLES_ANY_H
#define CLEAVE_HOST_IO_TABLES_ANY_H

#include "host/io/tables/csv.h"

/* Reads a table, whatever its name: text with commas, semicolons or tabs between the fields (the header tells),
 * NumPy records, JSON (an array of flat objects), or the spots of TrackMate's XML. `decimal`: '.' or ',' of numbers
 * in text; 0: as the numbers themselves tell (clv_csv_find_decimal). `kind` names what was found, for messages.
 * Statuses as clv_csv_read. */
clv_status clv_table_read(const char *path, char decimal, clv_csv_table **table, const char **kind);

/* Their parts. What is read becomes text with commas, for clv_csv_take. */
clv_status clv_npy_records(const char *path, const char *data, size_t length, clv_text *text,
                           char (**codes)[3]);
clv_status clv_json_records(const char *path, const char *data, size_t length, clv_text *text);
clv_status clv_xml_records(const char *path, const char *data, size_t length, clv_text *text);

/* The header of NumPy records with `count` fields of the types `codes` ("<" and the like are put before them:
 * "u4", "f8", "S12"). Its length depends on names and types alone, not on `rows`. */
void clv_npy_records_begin(clv_text *text, const char *const *names, const char *const *codes,
                           size_t count, size_t rows);

#endif
