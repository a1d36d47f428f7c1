/* SPDX-License-Identifier: Apache-2.0 */
/* Builds, writes and reads JSON values for reports, recorded machines and headers. Only base/json.c uses the JSON
 * library. */
#ifndef CLEAVE_BASE_JSON_H
#define CLEAVE_BASE_JSON_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv_json clv_json; /* an object, array or scalar; NULL stands for "not there" */

/* ---- building. Every call accepts a NULL parent, so that one check at the end is enough. ---- */
clv_json *clv_json_object(void); /* owned by the caller: clv_json_free */
clv_json *clv_json_array(void);
void clv_json_free(clv_json *root); /* accepts NULL */

/* `key` names the member of an object; NULL appends to an array. The returned child belongs to its parent. */
clv_json *clv_json_add_object(clv_json *parent, const char *key);
clv_json *clv_json_add_array(clv_json *parent, const char *key);
void clv_json_add_string(clv_json *parent, const char *key, const char *value); /* NULL: null */
void clv_json_add_number(clv_json *parent, const char *key, double value); /* not finite: null */
void clv_json_add_int(clv_json *parent, const char *key, int64_t value);
void clv_json_add_bytes(clv_json *parent, const char *key, uint64_t value); /* > 2^53: a string */
void clv_json_add_bool(clv_json *parent, const char *key, bool value);
void clv_json_add_null(clv_json *parent, const char *key);
void clv_json_add(clv_json *parent, const char *key, clv_json *child); /* takes the child over */
void clv_json_add_copy(clv_json *parent, const char *key, const clv_json *child); /* NULL: null */

/* Returns the text, with members in the order in which they were added and, unless `compact`, an indent of two
 * spaces. Free it with clv_json_text_free. Returns NULL without memory, also if an earlier call had no memory to add
 * something to this tree. */
char *clv_json_text(const clv_json *root, bool compact);
void clv_json_text_free(char *text);
/* Writes the text into a file that is complete or absent. */
clv_status clv_json_write(const clv_json *root, const char *path);

/* ---- reading. Every accessor accepts NULL or another type and returns its fallback then. ---- */
/* Parses a text. `what` names the text in messages ("profile.json"). Duplicate keys are errors. Free *root with
 * clv_json_free. */
clv_status clv_json_parse(const char *what, const char *text, size_t length, clv_json **root);

/* Parses like clv_json_parse, but reads whole numbers that do not fit into 64 bits as floating-point numbers.
 * transformers writes 1000000000000000019884624838656 as the limit of a tokenizer that has none. */
clv_status clv_json_parse_large(const char *what, const char *text, size_t length, clv_json **root);
const clv_json *clv_json_get(const clv_json *object, const char *key);
size_t clv_json_count(const clv_json *array_or_object);
const clv_json *clv_json_at(const clv_json *array, size_t index);
/* Iterates over members in file order: start with NULL, stop when it returns NULL. */
const char *clv_json_next_key(const clv_json *object, const char *previous);
bool clv_json_is_object(const clv_json *value);
bool clv_json_is_array(const clv_json *value);
bool clv_json_is_string(const clv_json *value);
bool clv_json_is_number(const clv_json *value);
bool clv_json_is_int(const clv_json *value);
bool clv_json_is_bool(const clv_json *value);
const char *clv_json_string(const clv_json *value, const char *fallback);
double clv_json_number(const clv_json *value, double fallback);
int64_t clv_json_int(const clv_json *value, int64_t fallback);
bool clv_json_bool(const clv_json *value, bool fallback);

#endif
