/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the folder of a fine-tuned model: the original's files with new weights. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_FOLDER_H
#define CLEAVE_HOST_CLI_FINETUNE_FOLDER_H

#include "host/cli/finetune/data.h"

#include <cleave/train.h>

/* Writes config.json with the names of the classes (unchanged if there are none), the files of the tokenizer and of
 * sentence-transformers, and finally model.safetensors; each file is complete or absent. CLV_E_ARGUMENT: both folders
 * are the same. */
clv_status cli_folder_write(const char *from, const char *to, const cli_classes *classes,
                            clv_trainer *trainer);
/* Checks before training that the two folders differ and that `to` is not a file. */
clv_status cli_folder_check(const char *from, const char *to);

#endif
