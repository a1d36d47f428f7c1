/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small files of a model folder. */
#ifndef CLEAVE_BASE_FOLDER_H
#define CLEAVE_BASE_FOLDER_H

#include "base/json.h"

#include <cleave/status.h>

enum { CLV_FOLDER_FILE_MAX = 256 << 20 }; /* bytes; no JSON or vocabulary file is larger */

/* Returns "folder/name", or NULL without memory. Free it with clv_free. */
char *clv_folder_path(const char *folder, const char *name);
bool clv_folder_has(const char *folder, const char *name);

/* Reads the JSON object in folder/name. *root is NULL if the file does not exist and `needed` is false.
 * Errors: CLV_E_IO, CLV_E_FORMAT (not JSON, or no object), CLV_E_MEMORY. Free *root with clv_json_free. */
clv_status clv_folder_json(const char *folder, const char *name, bool needed, clv_json **root);

/* Returns the name of the file in which sentence-transformers keeps the limit of the transformer:
 * sentence_bert_config.json or, from old versions, a file named after the model's family, whichever the folder has
 * first. */
const char *clv_folder_sentence_config(const char *folder);

/* Finds the folder of the transformer within a model folder: the folder itself, or the subfolder that the first module
 * of modules.json names, such as 0_Transformer in old folders of sentence-transformers. The caller frees *inside with
 * clv_free. Errors: CLV_E_FORMAT (the path leaves the folder), and those of clv_folder_json. */
clv_status clv_folder_transformer(const char *folder, char **inside);
/* Returns whether a path of modules.json stays within the model folder. */
bool clv_folder_is_inside(const char *path);

/* Reads a member that is a whole number within [least, most]. If the member is absent or null, *out is `fallback`; a
 * negative `fallback` makes that an error. CLV_E_FORMAT names the file, the member and the value. */
clv_status clv_folder_int(const char *what, const clv_json *object, const char *key, int64_t least,
                          int64_t most, int64_t fallback, int64_t *out);
/* Describes a JSON value for messages: "text", "a number", "nothing", ... */
const char *clv_folder_kind(const clv_json *value);
bool clv_folder_absent(const clv_json *value); /* true if the value does not exist or is null */

#endif
