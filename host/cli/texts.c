/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that read texts share: where texts come from and how they become tokens. */
#include "host/cli/texts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_texts_table(cli_texts *t, cli_option *table)
{
    const cli_option rows[] = {
        { "i,input", CLI_TEXT, &t->input, "FILE", "texts, one a line; - is standard input [-]",
          NULL },
        { "column", CLI_UINT, &t->column, "N", "the N-th field between tabs of every line", NULL },
        { "max-length", CLI_UINT, &t->max_length, "N",
          "most tokens of a text, [CLS] and [SEP] included [the model's]", &t->max_length_given },
        { "invalid", CLI_CHOICE, &t->invalid, "error,drop,replace",
          "what becomes of bytes that are not UTF-8; replace: U+FFFD [error]", NULL },
        { "threads", CLI_UINT, &t->threads, "N",
          "threads that tokenize [all cores that we may use]", NULL },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == CLI_TEXT_OPTIONS + 1, "CLI_TEXT_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

int cli_texts_check(const cli_command *command, const cli_texts *t)
{
    if (t->column > 100000)
        return cli_error(command, CLI_USAGE, "--column: %llu given, expected at most 100000",
                         (unsigned long long)t->column);
    if (t->max_length_given && !t->max_length)
        return cli_error(command, CLI_USAGE, "--max-length: 0 given, expected 2 or more");
    if (t->threads > 64)
        return cli_error(command, CLI_USAGE, "--threads: %llu given, expected at most 64",
                         (unsigned long long)t->threads);
    return -1;
}

void cli_texts_await(const cli_texts *t, bool quiet)
{
    if (!quiet && cli_is_stream(t->input) && isatty(STDIN_FILENO))
        cli_say(stderr, "type texts, one in a line, and end with Ctrl-D (-i FILE reads a file)\n");
}

clv_status cli_texts_tokenizer(const cli_texts *t, const char *folder, bool unlimited,
                               clv_tokenizer **out)
{
    const clv_tokenizer_options options = { .size = sizeof options,
                                            .max_length = (size_t)t->max_length,
                                            .unlimited = unlimited,
                                            .replace_invalid = t->invalid > 0,
                                            .drop_invalid = t->invalid == 1 };
    return clv_tokenizer_open(folder, &options, out);
}

void cli_model_files(const char *option, const char *folder, cli_file files[CLI_MODEL_FILES])
{
    static const char *const names[CLI_MODEL_FILES] = {
        "model.safetensors",       "config.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "vocab.txt",   "modules.json",   "sentence_bert_config.json"
    };
    struct stat info;
    const bool single = stat(folder, &info) == 0 && S_ISREG(info.st_mode); /* a GGUF file */
    for (size_t i = 0; i < CLI_MODEL_FILES; ++i)
        files[i] = single ? (cli_file){ option, i ? NULL : folder, NULL }
                          : (cli_file){ option, names[i], folder };
}

void cli_text_count(cli_text_counts *counts, const clv_token_rows *rows)
{
    counts->texts += rows->rows;
    counts->tokens += rows->tokens;
    counts->truncated += rows->truncated;
    counts->unknown += rows->unknown;
    counts->replaced += rows->replaced;
}

void cli_text_warn(const cli_command *command, const cli_text_counts *c, size_t max_length)
{
    if (c->truncated)
        cli_warn(command, "%llu of %llu texts were cut at %zu tokens",
                 (unsigned long long)c->truncated, (unsigned long long)c->texts, max_length);
    if (c->replaced)
        cli_warn(command, "%llu byte%s not UTF-8: dropped, or replaced by U+FFFD",
                 (unsigned long long)c->replaced, c->replaced == 1 ? " was" : "s were");
}

clv_status cli_texts_tokenize(const cli_texts *t, const clv_tokenizer *tokenizer,
                              const clv_lines *lines, clv_token_rows *rows)
{
    char what[300];
    snprintf(what, sizeof what, "%.280s: line", lines->path);
    const clv_tokenize_options options = { .size = sizeof options,
                                           .threads = (size_t)t->threads,
                                           .first = (size_t)lines->first,
                                           .what = what,
                                           .bare = t->bare };
    return clv_tokenize(tokenizer, lines->texts, lines->lengths, lines->count, &options, rows);
}
