/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that a fine-tuned model goes to: as its origin, with new weights. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_FOLDER_H
#define CLEAVE_HOST_CLI_FINETUNE_FOLDER_H

#include "host/cli/finetune/data.h"

#include <cleave/train.h>

/* config.json with the names of the classes (none: as it was), the files of the tokenizer and of
 * sentence-transformers, and last model.safetensors; each complete or absent. CLV_E_ARGUMENT: both
 * folders are one. */
clv_status cli_folder_write(const char *from, const char *to, const cli_classes *classes,
                            clv_trainer *trainer);
/* Before anything is learnt: the two differ, `to` is no file. */
clv_status cli_folder_check(const char *from, const char *to);

#endif
