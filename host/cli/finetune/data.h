/* SPDX-License-Identifier: Apache-2.0 */
/* Reads training examples, lines "text TAB label" or "text TAB text", as tokens. */
#ifndef CLEAVE_HOST_CLI_FINETUNE_DATA_H
#define CLEAVE_HOST_CLI_FINETUNE_DATA_H

#include "host/cli/texts.h"

/* The classes, sorted by their bytes once the training file has been read. A new class in a validation file is an
 * error. */
typedef struct cli_classes {
    char **names;
    size_t count, room;
    bool closed;
} cli_classes;

/* Texts as clv_trainer_step takes them: one or two per example. */
typedef struct cli_examples {
    size_t count, texts_each;
    int32_t *ids, *labels; /* labels [count]; NULL for pairs */
    size_t *offsets;       /* [count * texts_each + 1] */
    size_t tokens;
    cli_text_counts counts;
    size_t id_room, label_room, offset_room;
    size_t names; /* number of fields of the first line that are usual column names, 0 to 2 */
    bool unknown; /* the first line's label is no class of the training file */
    bool header;  /* the first line was left out as a header */
    bool doubt;   /* the first line was kept, although no other line has its label */
    char first_line[64]; /* the beginning of the first line, with control characters replaced */
} cli_examples;

/* How to treat the first line of a file of examples. */
enum { CLI_HEADER_AUTO, CLI_HEADER_YES, CLI_HEADER_NO };

/* Reads the examples in `path`. For pairs, `classes` is NULL. CLI_HEADER_AUTO leaves out a first line that names the
 * columns. For classes, one field must be such a name and no other line may have the first line's label. For pairs,
 * both fields must be such names. CLV_E_IO; CLV_E_FORMAT names the line; CLV_E_MEMORY; CLV_E_CANCELLED. */
clv_status cli_examples_read(const char *path, const cli_texts *texts,
                             const clv_tokenizer *tokenizer, int header, cli_classes *classes,
                             cli_examples *out);
void cli_examples_clear(cli_examples *examples);
void cli_classes_clear(cli_classes *classes);

/* Returns a number that changes when any token or label changes. */
uint64_t cli_examples_fingerprint(const cli_examples *examples);

#endif
