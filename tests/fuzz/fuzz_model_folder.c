/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a model, its classes and its tokenizer from a folder in which the input's parts are the files. */
#include "fuzz.h"

#include "folder.h"

#include <cleave/classes.h>
#include <cleave/model.h>
#include <cleave/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "config.json",
                                         "model.safetensors",
                                         "modules.json",
                                         "1_Pooling/config.json",
                                         "sentence_bert_config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "vocab.txt",
                                         "added_tokens.json",
                                         "config_sentence_transformers.json",
                                         "0_Transformer/config.json",
                                         "0_Transformer/model.safetensors",
                                         "0_Transformer/vocab.txt",
                                         "2_Dense/config.json",
                                         "2_Dense/model.safetensors",
                                         NULL };
    const char *folder = fuzz_folder(data, size, names);
    clv_model *model = NULL;
    clv_classes *classes = NULL;
    clv_tokenizer *tokenizer = NULL;
    if (clv_model_open(folder, &model) == CLV_OK) {
        const float *first = NULL;
        const size_t count = clv_model_parameters(model, &first);
        if (first) fuzz_touch(first, count * sizeof *first);
        FUZZ_CHECK(clv_model_get_config(model) && clv_model_get_weights(model));
    } else {
        FUZZ_CHECK(!model);
    }
    if (model && clv_classes_open(model, folder, &classes) == CLV_OK)
        FUZZ_CHECK(clv_classes_count(classes) && clv_classes_name(classes, 0));
    clv_classes_close(classes);
    clv_model_close(model);
    if (clv_tokenizer_open(folder, NULL, &tokenizer)) FUZZ_CHECK(!tokenizer);
    clv_tokenizer_close(tokenizer);
    return 0;
}
