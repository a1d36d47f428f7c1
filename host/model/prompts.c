/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a model's prompts, the named texts that sentence-transformers puts in front of every text. */
#include "host/model/model.h"

#include "base/error.h"
#include "base/folder.h"

static const char file_name[] = "config_sentence_transformers.json";

static const char *default_name(const clv_json *root)
{
    return clv_json_string(clv_json_get(root, "default_prompt_name"), NULL);
}

clv_status clv_model_prompts(const char *folder, clv_json **root)
{
    CLV_TRY(clv_folder_json(folder, file_name, false, root));
    const clv_json *prompts = clv_json_get(*root, "prompts");
    const char *name = default_name(*root);
    clv_status status = CLV_OK;
    for (const char *key = NULL; !status && (key = clv_json_next_key(prompts, key));) {
        const clv_json *value = clv_json_get(prompts, key);
        if (!clv_json_is_string(value) && !clv_folder_absent(value))
            status = clv_fail(CLV_E_FORMAT, "%s/%s: the prompt \"%.60s\" is %s, expected a text",
                              folder, file_name, key, clv_folder_kind(value));
    }
    if (!status && name && !clv_json_is_string(clv_json_get(prompts, name)))
        status =
            clv_fail(CLV_E_FORMAT,
                     "%s/%s: default_prompt_name is \"%.60s\", but there is no prompt of that name",
                     folder, file_name, name);
    if (status) {
        clv_json_free(*root);
        *root = NULL;
    }
    return status;
}

clv_status clv_model_prompt(const clv_model *m, const char *name, const char **prompt)
{
    if (!m || !prompt) return clv_fail(CLV_E_ARGUMENT, "clv_model_prompt: an argument is NULL");
    const char *wanted = name ? name : default_name(m->sentence);
    *prompt =
        wanted ? clv_json_string(clv_json_get(clv_json_get(m->sentence, "prompts"), wanted), NULL)
               : "";
    return CLV_OK;
}
