/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end and the fields of one record: a row of a table (RFC 4180, with commas or tabs) or a line of JSON. */
#ifndef CLEAVE_HOST_IO_RECORDS_H
#define CLEAVE_HOST_IO_RECORDS_H

#include "base/text.h"

#include <cleave/status.h>

/* What is wrong in a line that has a CR without an LF after it. */
#define CLV_LONE_RETURN                                                                           \
    "has a CR without an LF, as in files of old Macs; expected lines that end with LF or CR LF; " \
    "convert the file, for example with tr '\\r' '\\n'"

/* Returns the position after the line end of the record at `text`; NULL if the record does not end within `length`
 * bytes. Quoted fields may hold line ends. *quoted is whether the bytes end inside a quoted field. `between` is the
 * separator of the fields. */
const char *clv_record_end(char between, const char *text, size_t length, bool *quoted);

/* Appends field `column` (from 0) of the record to `out`, without the field's quotes. Returns false if the record has
 * fewer fields. A CR at the record's end belongs to its line end, not to a field. */
bool clv_record_field(char between, const char *text, size_t length, size_t column, clv_text *out);
size_t clv_record_fields(char between, const char *text, size_t length);
/* Returns whether the record holds only blanks. */
bool clv_record_blank(const char *text, size_t length);

/* Finds the field called `name` in a table's header: *column is its position, from 0, and its name is appended to
 * `found`. If `name` is NULL, takes the field called text, sentence, content, document, passage, query or title (the
 * first of these that exists), or the only field. On failure, the CLV_E_FORMAT message lists the fields,
 * or says that lines end with CR alone. */
clv_status clv_record_find(const char *what, char between, const char *text, size_t length,
                           const char *name, size_t *column, clv_text *found);

/* Chooses a member of the JSON object at `text` as clv_record_find chooses a field; only members that are strings, or
 * that are null and have a usual name or the one given, count. Appends its name to `found`. */
clv_status clv_record_find_json(const char *what, const char *text, size_t length, const char *name,
                                clv_text *found);
/* Appends the value of the JSON object's member `name`, which must be a string, to `out`. If it is null, appends
 * nothing and sets *missing. Returns CLV_OK or CLV_E_FORMAT. */
clv_status clv_record_json(const char *what, const char *text, size_t length, const char *name,
                           clv_text *out, bool *missing);

#endif
