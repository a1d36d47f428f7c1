/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small files of a model folder. */
#define _GNU_SOURCE
#include "base/folder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *clv_folder_path(const char *folder, const char *name)
{
    clv_text text = { 0 };
    clv_text_add(&text, "%s/%s", folder, name);
    if (!text.failed) return text.data;
    clv_text_clear(&text);
    return NULL;
}

bool clv_folder_has(const char *folder, const char *name)
{
    char path[PATH_MAX]; /* no allocation: its failure would look like an absent file */
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

clv_status clv_folder_json(const char *folder, const char *name, bool needed, clv_json **root)
{
    *root = NULL;
    if (!needed && !clv_folder_has(folder, name)) return CLV_OK;
    char *path = clv_folder_path(folder, name), *text = NULL;
    size_t length;
    if (!path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    clv_status status = clv_file_read_plain(path, CLV_FOLDER_FILE_MAX, &text, &length);
    if (!status) status = clv_json_parse_large(path, text, length, root);
    if (!status && !clv_json_is_object(*root) && !clv_json_is_array(*root))
        status = clv_fail(CLV_E_FORMAT, "%s is neither a JSON object nor a JSON list", path);
    if (status) {
        clv_json_free(*root);
        *root = NULL;
    }
    clv_free(text);
    clv_free(path);
    return status;
}

const char *clv_folder_sentence_config(const char *folder)
{
    static const char *const names[] = {
        "sentence_bert_config.json",       "sentence_roberta_config.json",
        "sentence_distilbert_config.json", "sentence_camembert_config.json",
        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json",
    };
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (clv_folder_has(folder, names[i])) return names[i];
    return names[0];
}

bool clv_folder_is_inside(const char *path)
{
    return *path != '/' && !strstr(path, "..") && strlen(path) <= 200;
}

clv_status clv_folder_transformer(const char *folder, char **inside)
{
    static const char kind[] = "Transformer";
    clv_json *list = NULL;
    *inside = NULL;
    CLV_TRY(clv_folder_json(folder, "modules.json", false, &list));
    const clv_json *first = clv_json_at(list, 0);
    const char *type = clv_json_string(clv_json_get(first, "type"), "");
    const char *path = clv_json_string(clv_json_get(first, "path"), "");
    const size_t length = strlen(type), end = sizeof kind - 1;
    if (length < end || strcmp(type + length - end, kind) != 0) path = "";
    clv_status status = CLV_OK;
    if (!clv_folder_is_inside(path))
        status = clv_fail(CLV_E_FORMAT,
                          "%s/modules.json: the Transformer module lies in \"%.60s\"; expected a "
                          "subfolder of the model folder",
                          folder, path);
    else if (!(*inside = *path ? clv_folder_path(folder, path) : clv_strdup(folder)))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    clv_json_free(list);
    return status;
}

const char *clv_folder_kind(const clv_json *value)
{
    if (!value) return "nothing";
    if (clv_json_is_string(value)) return "text";
    if (clv_json_is_int(value)) return "a whole number";
    if (clv_json_is_number(value)) return "a number with a fraction";
    if (clv_json_is_bool(value)) return "true or false";
    if (clv_json_is_array(value)) return "a list";
    return clv_json_is_object(value) ? "an object" : "null";
}

bool clv_folder_absent(const clv_json *value)
{
    return !clv_json_is_string(value) && !clv_json_is_number(value) && !clv_json_is_bool(value) &&
           !clv_json_is_array(value) && !clv_json_is_object(value);
}

clv_status clv_folder_int(const char *what, const clv_json *object, const char *key, int64_t least,
                          int64_t most, int64_t fallback, int64_t *out)
{
    const clv_json *value = clv_json_get(object, key);
    *out = fallback;
    if (clv_folder_absent(value) && fallback >= 0) return CLV_OK;
    if (!clv_json_is_int(value))
        return clv_fail(CLV_E_FORMAT, "%s: %s is %s, expected a whole number", what, key,
                        clv_folder_kind(value));
    *out = clv_json_int(value, 0);
    if (*out < least || *out > most)
        return clv_fail(CLV_E_FORMAT, "%s: %s is %lld, expected %lld to %lld", what, key,
                        (long long)*out, (long long)least, (long long)most);
    return CLV_OK;
}
