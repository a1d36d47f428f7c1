/* SPDX-License-Identifier: Apache-2.0 */
/* Reads texts and turns them into tokens, for the commands whose input is texts. */
#include "host/cli/texts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/tables/parquet.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_texts_table(cli_texts *t, cli_option *table)
{
    const cli_option rows[] = {
        { "i,input", CLI_TEXT, &t->input, "FILE",
          "texts: lines, a table or JSON lines (.csv, .tsv, .parquet, .jsonl); - is standard input "
          "[-]",
          NULL },
        { "input-format", CLI_CHOICE, &t->format, "auto,lines,csv,tsv,jsonl",
          "format of the input [by the ending of its name]", NULL },
        { "column", CLI_TEXT, &t->column, "NAME|N",
          "the column of a table by its name, or the N-th field of every row (of plain lines: "
          "between tabs)",
          NULL },
        { "field", CLI_TEXT, &t->field, "NAME", "the member of JSON lines that holds the text",
          NULL },
        { "max-length", CLI_UINT, &t->max_length, "N",
          "cut texts to N tokens, including [CLS] and [SEP] [the limit of the model]",
          &t->max_length_given },
        { "invalid", CLI_CHOICE, &t->invalid, "error,drop,replace",
          "what to do with bytes that are not UTF-8; replace inserts U+FFFD [error]", NULL },
        { "threads", CLI_UINT, &t->threads, "N",
          "number of threads that tokenize [all available cores]", NULL },
        { NULL },
    };
    _Static_assert(sizeof rows / sizeof *rows == CLI_TEXT_OPTIONS + 1, "CLI_TEXT_OPTIONS");
    memcpy(table, rows, sizeof rows);
}

int cli_texts_check(const cli_command *command, const cli_texts *t)
{
    uint64_t column = 1;
    if (t->column && clv_parse_u64(t->column, &column) && (!column || column > 100000))
        return cli_error(command, CLI_USAGE, "--column is %s, but it must be 1 to 100000 or a name",
                         t->column);
    if (t->max_length_given && !t->max_length)
        return cli_error(command, CLI_USAGE, "--max-length is 0, but it must be 2 or more");
    if (t->threads > 64)
        return cli_error(command, CLI_USAGE, "--threads is %llu, but it must be at most 64",
                         (unsigned long long)t->threads);
    return -1;
}

enum { LARGEST_PARQUET = 1 << 30 }; /* bytes; such a file is read as a whole */

/* Endings of files that no text reader accepts. */
static const char *const refused[] = { ".arrow", ".feather",     ".json", ".npy",
                                       ".npz",   ".safetensors", ".xlsx", ".xls",
                                       ".ods",   ".pdf",         ".docx", ".gz",
                                       ".bz2",   ".xz",          ".zst",  ".zip" };

static int kind_of(const cli_command *command, const cli_texts *t, clv_lines_kind *kind)
{
    static const struct {
        const char *ending;
        clv_lines_kind kind;
    } endings[] = { { ".csv", CLV_LINES_CSV },
                    { ".tsv", CLV_LINES_TSV },
                    { ".parquet", CLV_LINES_CSV },
                    { ".jsonl", CLV_LINES_JSON },
                    { ".ndjson", CLV_LINES_JSON } };
    static const clv_lines_kind said[] = { [CLI_TEXTS_LINES] = CLV_LINES_PLAIN,
                                           [CLI_TEXTS_CSV] = CLV_LINES_CSV,
                                           [CLI_TEXTS_TSV] = CLV_LINES_TSV,
                                           [CLI_TEXTS_JSONL] = CLV_LINES_JSON };
    *kind = t->format == CLI_TEXTS_AUTO ? CLV_LINES_PLAIN : said[t->format];
    for (size_t i = 0; i < CLV_LEN(endings) && t->format == CLI_TEXTS_AUTO; ++i)
        if (clv_ends_with(t->input, endings[i].ending)) *kind = endings[i].kind;
    for (size_t i = 0; i < CLV_LEN(refused) && t->format == CLI_TEXTS_AUTO; ++i)
        if (clv_ends_with(t->input, refused[i]))
            return cli_error(
                command, CLI_USAGE,
                "-i %s: texts cannot be read from %s files. Expected lines (.txt), a table with a "
                "header (.csv, .tsv, .parquet) or JSON lines (.jsonl); pandas writes these with "
                "to_csv and to_json(orient=\"records\", lines=True). If the file holds plain "
                "lines, give --input-format lines",
                t->input, refused[i]);
    return -1;
}

/* Returns whether `text` is a name that is common in headers and unlikely as a text. */
static bool looks_like_header(const char *text)
{
    return clv_find_word(
               "text,sentence,content,document,passage,query,title,label,id,name,body,abstract",
               text) >= 0;
}

static bool is_parquet(const cli_texts *t)
{
    return t->format == CLI_TEXTS_AUTO && clv_ends_with(t->input, ".parquet");
}

/* Reads a Parquet file, converts it to a table with commas, and opens this table. */
static clv_status open_parquet(const char *path, clv_lines *lines)
{
    char *data, (*codes)[3] = NULL;
    size_t length;
    clv_text text = { 0 };
    CLV_TRY(clv_file_read(path, LARGEST_PARQUET, &data, &length));
    clv_status status = clv_parquet_records(path, data, length, &text, &codes);
    clv_free(data), clv_free(codes);
    if (!status && text.failed)
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for its table", path);
    if (status)
        clv_text_clear(&text);
    else
        clv_lines_take(lines, path, text.data, text.length);
    return status;
}

int cli_texts_open(const cli_command *command, const cli_texts *t, bool quiet, clv_lines *lines)
{
    clv_lines_kind kind;
    uint64_t column = 0;
    const char *name = t->column, *chosen;
    *lines = (clv_lines){ .descriptor = -1 };
    int code = kind_of(command, t, &kind);
    if (code >= 0) return code;
    if (name && clv_parse_u64(name, &column)) name = NULL;
    if (kind == CLV_LINES_JSON && t->column)
        return cli_error(command, CLI_USAGE,
                         "--column is for tables; for JSON lines, choose the texts with --field");
    if (kind != CLV_LINES_JSON && t->field)
        return cli_error(command, CLI_USAGE,
                         "--field is for JSON lines (.jsonl, or --input-format jsonl); for tables, "
                         "use --column");
    if (kind == CLV_LINES_PLAIN && name)
        return cli_error(command, CLI_USAGE,
                         "--column %s: plain lines have no header, so their columns have no names; "
                         "expected a number, or a table (.csv, .tsv, or --input-format csv or tsv)",
                         name);
    code = cli_input_status(command, is_parquet(t) ? open_parquet(t->input, lines)
                                                   : clv_lines_open(lines, t->input));
    if (code) return code;
    lines->prefix = t->prefix && *t->prefix ? t->prefix : NULL;
    code = cli_input_status(command, clv_lines_choose(lines, kind, t->field ? t->field : name,
                                                      (size_t)column, &chosen));
    if (code || quiet || kind == CLV_LINES_PLAIN || !*chosen) return code;
    if (column && looks_like_header(chosen))
        cli_warn(command,
                 "%s: the first row, \"%s\", looks like a header but is read as a text; --column "
                 "%s chooses the column by its name and skips the header",
                 lines->path, chosen, chosen);
    else if (!column && !t->column && !t->field)
        cli_say(stderr, "%s: the texts are the %s \"%s\"; --%s NAME chooses another\n", lines->path,
                kind == CLV_LINES_JSON ? "member" : "column", chosen,
                kind == CLV_LINES_JSON ? "field" : "column");
    return 0;
}

void cli_texts_await(const cli_texts *t, bool quiet)
{
    if (!quiet && cli_is_stream(t->input) && isatty(STDIN_FILENO))
        cli_say(stderr, "type one text per line and end with Ctrl-D (-i FILE reads a file)\n");
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
    static const char *const names[CLI_MODEL_FILES] = { "model.safetensors",
                                                        "config.json",
                                                        "tokenizer.json",
                                                        "tokenizer_config.json",
                                                        "special_tokens_map.json",
                                                        "vocab.txt",
                                                        "modules.json",
                                                        "sentence_bert_config.json",
                                                        "model.safetensors.index.json",
                                                        "config_sentence_transformers.json",
                                                        "1_Pooling/config.json",
                                                        "2_Dense/model.safetensors" };
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
        cli_warn(command, "%llu byte%s not UTF-8: removed or replaced by U+FFFD",
                 (unsigned long long)c->replaced, c->replaced == 1 ? " was" : "s were");
}

clv_status cli_texts_tokenize(const cli_texts *t, const clv_tokenizer *tokenizer,
                              const clv_lines *lines, clv_token_rows *rows)
{
    char what[300];
    const bool table = lines->kind == CLV_LINES_CSV || lines->kind == CLV_LINES_TSV;
    snprintf(what, sizeof what, "%.280s: %s", lines->path, table ? "row" : "line");
    const clv_tokenize_options options = { .size = sizeof options,
                                           .threads = (size_t)t->threads,
                                           .first = (size_t)lines->first,
                                           .what = what,
                                           .bare = t->bare };
    return clv_tokenize(tokenizer, lines->texts, lines->lengths, lines->count, &options, rows);
}
