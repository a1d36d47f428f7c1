/* SPDX-License-Identifier: Apache-2.0 */
/* The small files of a model folder. */
#ifndef CLEAVE_BASE_FOLDER_H
#define CLEAVE_BASE_FOLDER_H

#include "base/json.h"

#include <cleave/status.h>

enum { CLV_FOLDER_FILE_MAX = 256 << 20 }; /* no JSON and no vocabulary is larger */

/* "folder/name"; NULL without memory. Free with clv_free. */
char *clv_folder_path(const char *folder, const char *name);
bool clv_folder_has(const char *folder, const char *name);

/* The JSON object in folder/name; *root is NULL when `needed` is false and there is no such file.
 * CLV_E_IO, CLV_E_FORMAT (not JSON, no object), CLV_E_MEMORY. Free with clv_json_free. */
clv_status clv_folder_json(const char *folder, const char *name, bool needed, clv_json **root);

/* A member that is a whole number within [least, most]; `fallback` when it is not there or null and
 * fallback >= 0, else its absence is an error. CLV_E_FORMAT names the file, the member, what was
 * found. */
clv_status clv_folder_int(const char *what, const clv_json *object, const char *key, int64_t least,
                          int64_t most, int64_t fallback, int64_t *out);
/* What a JSON value is, for messages: "text", "a number", "nothing", ... */
const char *clv_folder_kind(const clv_json *value);
bool clv_folder_absent(const clv_json *value); /* not there, or null */

#endif
