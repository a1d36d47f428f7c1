/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizes texts in its own thread while the caller works on the previous chunk. */
#ifndef CLEAVE_HOST_CLI_TEXT_PIPELINE_H
#define CLEAVE_HOST_CLI_TEXT_PIPELINE_H

#include "host/cli/texts.h"

typedef struct cli_chunk {
    clv_token_rows rows;
    uint64_t first; /* number of its first line, from 1 */
    double seconds; /* time spent on reading and tokenizing */
} cli_chunk;

typedef struct cli_pipeline {
    const cli_texts *texts;
    const clv_tokenizer *tokenizer;
    clv_lines *lines;                /* open when the pipeline runs */
    size_t chunk_lines, chunk_bytes; /* upper limits of a chunk */
} cli_pipeline;

/* Called for every chunk in order, on the caller's thread; a failure ends the pipeline. */
typedef clv_status cli_chunk_work(const cli_chunk *chunk, void *user);

/* Runs until the input ends. At most two chunks wait, so that memory is bounded. Returns CLV_E_CANCELLED after Ctrl-C;
 * else what reading, tokenizing or `work` returns, namely the error that is earliest in the input. */
clv_status cli_pipeline_run(const cli_pipeline *pipeline, cli_chunk_work *work, void *user);

#endif
