/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files of a model's weights: model.safetensors, or the files that model.safetensors.index.json names. */
#include "host/model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"

#include <cleave/tensors.h>

#include <string.h>

enum { FILES_MAX = 1024 };

struct clv_weight_files {
    char *path;      /* path of the only file, or of the index */
    clv_json *index; /* NULL: there is only one file */
    clv_tensors **files;
    const char **names; /* names of the files, as in the index */
    size_t count;
};

/* Returns the number of the open file called `name`; w->count if it is not open. */
static size_t number_of(const clv_weight_files *w, const char *name)
{
    size_t i = 0;
    while (i < w->count && strcmp(w->names[i], name) != 0)
        ++i;
    return i;
}

static clv_status open_part(clv_weight_files *w, const char *folder, const char *tensor,
                            const clv_json *name)
{
    const char *file = clv_json_string(name, "");
    const size_t length = strlen(file), end = strlen(".safetensors");
    if (length <= end || length > 200 || strchr(file, '/') ||
        strcmp(file + length - end, ".safetensors") != 0)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: weight_map says that \"%.60s\" is in \"%.60s\", expected the name of a "
            ".safetensors file in the same folder",
            w->path, tensor, clv_json_string(name, clv_folder_kind(name)));
    const size_t i = number_of(w, file);
    if (i == w->count) {
        if (w->count == FILES_MAX)
            return clv_fail(CLV_E_FORMAT, "%s: weight_map names more than %d files", w->path,
                            FILES_MAX);
        char *path = clv_folder_path(folder, file);
        if (!path) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
        const clv_status status = clv_tensors_open(path, &w->files[i]);
        clv_free(path);
        CLV_TRY(status);
        w->names[w->count++] = file;
    }
    if (clv_tensors_find(w->files[i], tensor)) return CLV_OK;
    return clv_fail(CLV_E_FORMAT, "%s: weight_map says that \"%.60s\" is in %s, which lacks it",
                    w->path, tensor, file);
}

static clv_status open_parts(clv_weight_files *w, const char *folder)
{
    CLV_TRY(clv_folder_json(folder, "model.safetensors.index.json", true, &w->index));
    const clv_json *map = clv_json_get(w->index, "weight_map");
    if (!clv_json_is_object(map) || !clv_json_count(map))
        return clv_fail(CLV_E_FORMAT,
                        "%s: weight_map is %s, expected an object with names of files", w->path,
                        clv_folder_kind(map));
    for (const char *tensor = NULL; (tensor = clv_json_next_key(map, tensor));)
        CLV_TRY(open_part(w, folder, tensor, clv_json_get(map, tensor)));
    return CLV_OK;
}

static clv_status open_only(clv_weight_files *w, const char *folder)
{
    if (!clv_folder_has(folder, "model.safetensors") && clv_folder_has(folder, "pytorch_model.bin"))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: pytorch_model.bin is a pickle, which is not supported; expected "
            "model.safetensors. To convert it: python3 -c 'import sys, transformers as t; "
            "t.AutoModel.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])' %s",
            folder, folder);
    w->count = 1;
    return clv_tensors_open(w->path, &w->files[0]);
}

clv_status clv_weight_files_open(const char *folder, clv_weight_files **out)
{
    const bool parts = !clv_folder_has(folder, "model.safetensors") &&
                       clv_folder_has(folder, "model.safetensors.index.json");
    const size_t most = parts ? FILES_MAX : 1;
    *out = NULL;
    if (clv_folder_has(folder, "adapter_config.json"))
        return clv_fail(CLV_E_FORMAT,
                        "%s: adapter_config.json describes an adapter, which is not supported; "
                        "expected a model without it (peft's merge_and_unload makes one)",
                        folder);
    clv_weight_files *w = clv_zalloc(1, sizeof *w);
    if (!w) return clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    w->path = clv_folder_path(folder, parts ? "model.safetensors.index.json" : "model.safetensors");
    w->files = clv_zalloc(most, sizeof *w->files);
    w->names = clv_zalloc(most, sizeof *w->names);
    clv_status status = w->path && w->files && w->names
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "%s: out of memory", folder);
    if (!status) status = parts ? open_parts(w, folder) : open_only(w, folder);
    if (status)
        clv_weight_files_close(w);
    else
        *out = w;
    return status;
}

void clv_weight_files_close(clv_weight_files *w)
{
    if (!w) return;
    for (size_t i = 0; w->files && i < w->count; ++i)
        clv_tensors_close(w->files[i]);
    clv_free(w->files), clv_free(w->names), clv_free(w->path);
    clv_json_free(w->index);
    clv_free(w);
}

const clv_tensor *clv_weight_files_find(const clv_weight_files *w, const char *name,
                                        const clv_tensors **file)
{
    size_t i = 0;
    if (w->index) {
        const char *part =
            clv_json_string(clv_json_get(clv_json_get(w->index, "weight_map"), name), NULL);
        if (!part) return NULL;
        i = number_of(w, part);
    }
    *file = w->files[i];
    return clv_tensors_find(w->files[i], name);
}

bool clv_weight_files_prefixed(const clv_weight_files *w, const char *prefix)
{
    for (size_t i = 0; i < w->count; ++i)
        for (size_t k = 0; k < clv_tensors_count(w->files[i]); ++k)
            if (strncmp(clv_tensors_at(w->files[i], k)->name, prefix, strlen(prefix)) == 0)
                return true;
    return false;
}

const char *clv_weight_files_with(const clv_weight_files *w, const char *part)
{
    for (size_t i = 0; i < w->count; ++i)
        for (size_t k = 0; k < clv_tensors_count(w->files[i]); ++k)
            if (strstr(clv_tensors_at(w->files[i], k)->name, part))
                return clv_tensors_at(w->files[i], k)->name;
    return NULL;
}

const char *clv_weight_files_path(const clv_weight_files *w)
{
    return w->path;
}
