/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the commands. */
#include "host/cli/cli.h"

const cli_command *const cli_commands[] = {
    &cli_probe,      &cli_demo,      &cli_paco,     &cli_blobs,    &cli_link,  &cli_tracks,
    &cli_specfit,    &cli_templates, &cli_embed,    &cli_search,   &cli_rank,  &cli_tokenize,
    &cli_detokenize, &cli_finetune,  &cli_classify, &cli_generate, &cli_merge, &cli_bench,
    &cli_selftest,   &cli_cache,     NULL,
};
