/* SPDX-License-Identifier: Apache-2.0 */
/* One record of a table (RFC 4180, with commas or tabs) or of JSON lines: where it ends, what its fields say. */
#ifndef CLEAVE_HOST_IO_RECORDS_H
#define CLEAVE_HOST_IO_RECORDS_H

#include "base/text.h"

#include <cleave/status.h>

/* The line end behind the record at `text`, as seen in `length` bytes; NULL: it is not among them. Quoted fields may
 * hold line ends. `*quoted` tells whether the bytes end inside a quoted field. */
const char *clv_record_end(char between, const char *text, size_t length, bool *quoted);

/* Appends field `column` (from 0) without its quotes. False: the record has fewer fields. A CR at the record's end is
 * no part of it. */
bool clv_record_field(char between, const char *text, size_t length, size_t column, clv_text *out);
size_t clv_record_fields(char between, const char *text, size_t length);
/* Whether there is nothing but blanks. */
bool clv_record_blank(const char *text, size_t length);

/* The place, from 0, of the field that the name means; NULL means the field that is called text, sentence, content,
 * document, passage, query or title (the first of these), or the only one. CLV_E_FORMAT lists what is there. */
clv_status clv_record_find(const char *what, char between, const char *text, size_t length,
                           const char *name, size_t *column, clv_text *found);

/* The same for the members of an object that are strings. */
clv_status clv_record_find_json(const char *what, const char *text, size_t length, const char *name,
                                clv_text *found);
/* Appends the member `name`, which has to be a string. CLV_E_FORMAT. */
clv_status clv_record_json(const char *what, const char *text, size_t length, const char *name,
                           clv_text *out);

#endif
