/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one record of a table (RFC 4180, with commas or tabs) or of JSON lines: finds its end and its fields. */
#ifndef CLEAVE_HOST_IO_RECORDS_H
#define CLEAVE_HOST_IO_RECORDS_H

#include "base/text.h"

#include <cleave/status.h>

/* Returns the position after the line end of the record at `text`, within `length` bytes; NULL if they do not contain
 * it. Quoted fields may hold line ends. `*quoted` tells whether the bytes end inside a quoted field. */
const char *clv_record_end(char between, const char *text, size_t length, bool *quoted);

/* Appends field `column` (from 0) without its quotes. Returns false if the record has fewer fields. A CR at the
 * record's end is not part of it. */
bool clv_record_field(char between, const char *text, size_t length, size_t column, clv_text *out);
size_t clv_record_fields(char between, const char *text, size_t length);
/* Returns whether the record holds only blanks. */
bool clv_record_blank(const char *text, size_t length);

/* Finds the position, from 0, of the field of that name. NULL means the field called text, sentence, content, document,
 * passage, query or title (the first of these that exists), or the only field. On failure, the CLV_E_FORMAT message
 * lists the fields. */
clv_status clv_record_find(const char *what, char between, const char *text, size_t length,
                           const char *name, size_t *column, clv_text *found);

/* Does the same for those members of an object that are strings. */
clv_status clv_record_find_json(const char *what, const char *text, size_t length, const char *name,
                                clv_text *found);
/* Appends the member `name`, which must be a string. Returns CLV_OK or CLV_E_FORMAT. */
clv_status clv_record_json(const char *what, const char *text, size_t length, const char *name,
                           clv_text *out);

#endif
