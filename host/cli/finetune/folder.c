/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the folder of a fine-tuned model: the original's files with new weights. */
#include "host/cli/finetune/folder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "host/cli/clash.h"
#include "base/folder.h"

#include <string.h>
#include <unistd.h>

enum { LARGEST = 256 << 20, MOST_PATH = 4096 };

static clv_status path_of(char out[MOST_PATH], const char *folder, const char *name)
{
    const int length = snprintf(out, MOST_PATH, "%s/%s", folder, name);
    return length > 0 && length < MOST_PATH
               ? CLV_OK
               : clv_fail(CLV_E_ARGUMENT, "%s: the path has more than %d bytes", folder, MOST_PATH);
}

/* Files that readers of the folder expect besides weights and config.json. */
static const char *const copied[] = { "tokenizer.json",
                                      "tokenizer_config.json",
                                      "vocab.txt",
                                      "added_tokens.json",
                                      "special_tokens_map.json",
                                      "sentence_bert_config.json",
                                      "config_sentence_transformers.json",
                                      "modules.json" };

clv_status cli_folder_check(const char *from, const char *to)
{
    if (cli_same_file(from, to))
        return clv_fail(CLV_E_ARGUMENT,
                        "-o %s is the folder of the model that is trained; give another folder",
                        to);
    for (size_t i = 0; i < CLV_LEN(copied); ++i)
        if (clv_folder_has(to, copied[i]) && !clv_folder_has(from, copied[i]))
            return clv_fail(
                CLV_E_ARGUMENT,
                "-o %s has a file %s, which the trained model does not have and which would change "
                "how the new model works; give another folder, or remove the file",
                to, copied[i]);
    return CLV_OK;
}

/* Copies one small file if it exists. */
static clv_status copy_file(const char *from, const char *to, const char *name)
{
    char source[MOST_PATH], target[MOST_PATH];
    char *data;
    size_t length;
    CLV_TRY(path_of(source, from, name));
    CLV_TRY(path_of(target, to, name));
    if (access(source, F_OK) != 0) return CLV_OK;
    char *slash = strrchr(target, '/');
    *slash = '\0';
    CLV_TRY(clv_dir_make(target));
    *slash = '/';
    CLV_TRY(clv_file_read_plain(source, LARGEST, &data, &length));
    const clv_status status = clv_file_write(target, data, length);
    clv_free(data);
    return status;
}

/* Copies what modules.json names: the settings of the pooling, in a subfolder. The model's loader has checked
 * modules.json already. */
static clv_status copy_modules(const char *from, const char *to)
{
    clv_json *list = NULL;
    CLV_TRY(clv_folder_json(from, "modules.json", false, &list));
    clv_status status = CLV_OK;
    for (size_t i = 0; i < clv_json_count(list) && !status; ++i) {
        char name[256];
        const char *path = clv_json_string(clv_json_get(clv_json_at(list, i), "path"), "");
        if (!*path || *path == '/' || strstr(path, "..") || strlen(path) > 200) continue;
        snprintf(name, sizeof name, "%s/config.json", path);
        status = copy_file(from, to, name);
    }
    clv_json_free(list);
    return status;
}

/* Copies the small files of a model folder. `subfolder` contains the transformer; "" if that is the model folder
 * itself. */
static clv_status copy_files(const char *from, const char *to, const char *subfolder)
{
    char inside[MOST_PATH], target[MOST_PATH];
    CLV_TRY(path_of(inside, from, subfolder));
    CLV_TRY(path_of(target, to, subfolder));
    for (size_t i = 0; i < CLV_LEN(copied); ++i) {
        CLV_TRY(copy_file(from, to, copied[i]));
        if (*subfolder) CLV_TRY(copy_file(inside, target, copied[i]));
    }
    CLV_TRY(copy_file(inside, target, clv_folder_sentence_config(inside)));
    return copy_modules(from, to);
}

/* Returns whether the command writes this member of config.json itself, because it describes the classes. All other
 * members are kept, except the type of the weights. */
static bool is_ours(const char *key)
{
    return !strcmp(key, "id2label") || !strcmp(key, "label2id") || !strcmp(key, "num_labels") ||
           !strcmp(key, "problem_type") || !strcmp(key, "architectures");
}

static bool is_type(const char *key)
{
    return !strcmp(key, "torch_dtype") || !strcmp(key, "dtype");
}

static void add_classes(clv_json *out, const cli_classes *classes)
{
    clv_json *kinds = clv_json_add_array(out, "architectures");
    clv_json_add_string(kinds, NULL, "BertForSequenceClassification");
    clv_json *names = clv_json_add_object(out, "id2label");
    clv_json *numbers = clv_json_add_object(out, "label2id");
    for (size_t i = 0; i < classes->count; ++i) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        clv_json_add_string(names, number, classes->names[i]);
        clv_json_add_int(numbers, classes->names[i], (int64_t)i);
    }
    clv_json_add_string(out, "problem_type", "single_label_classification");
}

static clv_status write_config(const char *from, const char *to, const cli_classes *classes)
{
    char target[MOST_PATH];
    clv_json *root = NULL;
    CLV_TRY(path_of(target, to, "config.json"));
    CLV_TRY(clv_folder_json(from, "config.json", true, &root)); /* as the model's loader reads it */
    clv_json *out = clv_json_object();
    for (const char *key = NULL; (key = clv_json_next_key(root, key));)
        if (is_type(key))
            clv_json_add_string(out, key, "float32");
        else if (!classes->count || !is_ours(key))
            clv_json_add_copy(out, key, clv_json_get(root, key));
    if (classes->count) add_classes(out, classes);
    const clv_status status = clv_json_write(out, target);
    clv_json_free(root), clv_json_free(out);
    return status;
}

clv_status cli_folder_write(const char *from, const char *to, const cli_classes *classes,
                            clv_trainer *trainer)
{
    static const char *const metadata[] = { "format", "pt", NULL };
    char weights[MOST_PATH], target[MOST_PATH], *inside;
    CLV_TRY(clv_folder_transformer(from, &inside));
    const char *subfolder = inside + strlen(from);
    subfolder += *subfolder == '/';
    clv_status status = clv_dir_make(to);
    if (!status) status = path_of(target, to, subfolder);
    if (!status) status = clv_dir_make(target);
    if (!status) status = copy_files(from, to, subfolder);
    if (!status) status = write_config(inside, target, classes);
    if (!status) status = path_of(weights, target, "model.safetensors");
    if (!status) status = clv_trainer_write(trainer, weights, metadata);
    clv_free(inside);
    return status;
}
