/* SPDX-License-Identifier: Apache-2.0 */
/* Reads training examples, lines "text TAB label" or "text TAB text", as tokens. */
#include "host/cli/finetune/data.h"
#include "host/cli/finetune/header.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LINES = 1 << 14, CHUNK_BYTES = 1 << 22, MOST_CLASSES = 4096, SHOWN = 40 };

/* The first and second field of each line of a chunk. */
typedef struct fields {
    const char **text[2];
    size_t *length[2];
    size_t room[2], length_room[2];
} fields;

static clv_status split(const clv_lines *lines, fields *f)
{
    for (int k = 0; k < 2; ++k)
        if (!clv_reserve(&f->text[k], &f->room[k], lines->count, sizeof *f->text[k]) ||
            !clv_reserve(&f->length[k], &f->length_room[k], lines->count, sizeof *f->length[k]))
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu lines", lines->path,
                            lines->count);
    for (size_t i = 0; i < lines->count; ++i) {
        const char *line = lines->texts[i];
        size_t length = lines->lengths[i];
        const unsigned long long number = (unsigned long long)(lines->first + i);
        if (length && line[length - 1] == '\r') --length;
        const char *tab = length ? memchr(line, '\t', length) : NULL;
        if (!tab)
            return clv_fail(CLV_E_FORMAT,
                            "%s: line %llu has no tab, but each line must be a text, a tab, and "
                            "its label or its pair",
                            lines->path, number);
        const size_t before = (size_t)(tab - line), behind = length - before - 1;
        if (behind && memchr(tab + 1, '\t', behind))
            return clv_fail(CLV_E_FORMAT, "%s: line %llu has more than one tab", lines->path,
                            number);
        if (!before || !behind)
            return clv_fail(CLV_E_FORMAT, "%s: line %llu is empty %s its tab", lines->path, number,
                            before ? "after" : "before");
        f->text[0][i] = line, f->length[0][i] = before;
        f->text[1][i] = tab + 1, f->length[1][i] = behind;
    }
    return CLV_OK;
}

static clv_status add_texts(cli_examples *e, const clv_token_rows *rows, size_t each)
{
    size_t tokens = e->tokens, texts = e->count * e->texts_each;
    const size_t count = rows[0].rows;
    for (size_t k = 0; k < each; ++k)
        tokens += rows[k].tokens;
    if (!clv_reserve(&e->ids, &e->id_room, tokens + 1, sizeof *e->ids) ||
        !clv_reserve(&e->offsets, &e->offset_room, texts + count * each + 1, sizeof *e->offsets))
        return clv_fail(CLV_E_MEMORY, "not enough memory for %zu tokens", tokens);
    e->offsets[texts] = e->tokens;
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < each; ++k) {
            const size_t from = rows[k].offsets[i], length = rows[k].offsets[i + 1] - from;
            memcpy(e->ids + e->tokens, rows[k].ids + from, length * sizeof *e->ids);
            e->tokens += length;
            e->offsets[++texts] = e->tokens;
        }
    return CLV_OK;
}

/* Returns the number of a class in *out; a new class gets the next number. */
static clv_status find_class(cli_classes *c, const clv_lines *lines, size_t line, const char *name,
                             size_t length, int32_t *out)
{
    const unsigned long long number = (unsigned long long)(lines->first + line);
    for (size_t i = 0; i < c->count; ++i)
        if (strlen(c->names[i]) == length && memcmp(c->names[i], name, length) == 0) {
            *out = (int32_t)i;
            return CLV_OK;
        }
    if (c->closed)
        return clv_fail(CLV_E_FORMAT,
                        "%s: line %llu: the label \"%.*s\" does not occur in the training data",
                        lines->path, number, (int)CLV_MIN(length, (size_t)SHOWN), name);
    if (memchr(name, '\0', length))
        return clv_fail(CLV_E_FORMAT, "%s: line %llu: the label has a NUL byte", lines->path,
                        number);
    uint32_t code_point;
    for (size_t at = 0, step; at < length; at += step) /* labels are written to JSON */
        if (!(step = clv_utf8_decode(name + at, length - at, &code_point)))
            return clv_fail(CLV_E_FORMAT,
                            "%s: line %llu: byte %zu of the label (0x%02X) is not UTF-8",
                            lines->path, number, at, (unsigned char)name[at]);
    if (c->count == MOST_CLASSES)
        return clv_fail(CLV_E_FORMAT,
                        "%s: line %llu has a new label, but at most %d are possible; if the lines "
                        "are pairs of texts, use --task pairs",
                        lines->path, number, MOST_CLASSES);
    char *copy = clv_alloc(length + 1, 1);
    if (!copy || !clv_reserve(&c->names, &c->room, c->count + 1, sizeof *c->names)) {
        clv_free(copy);
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for labels", lines->path);
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    *out = (int32_t)c->count;
    c->names[c->count++] = copy;
    return CLV_OK;
}

/* Examines the first line of the file. If that line may be a header, it is no error that the closed set of classes
 * does not contain its label; the function then sets `unknown`. */
static void look_at_first(cli_examples *e, const cli_classes *c, int header, const fields *f)
{
    const char *const text[] = { f->text[0][0], f->text[1][0] };
    const size_t length[] = { f->length[0][0], f->length[1][0] };
    e->names = cli_header_names(text, length);
    cli_header_show(text, length, e->first_line, sizeof e->first_line);
    if (!c || !c->closed || header == CLI_HEADER_NO || (header == CLI_HEADER_AUTO && !e->names))
        return;
    e->unknown = true;
    for (size_t i = 0; i < c->count; ++i)
        if (strlen(c->names[i]) == length[1] && memcmp(c->names[i], text[1], length[1]) == 0)
            e->unknown = false;
}

static clv_status add_labels(cli_examples *e, cli_classes *c, const clv_lines *lines,
                             const fields *f)
{
    if (!clv_reserve(&e->labels, &e->label_room, e->count + lines->count, sizeof *e->labels))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for labels", lines->path);
    if (!e->count && e->unknown) e->labels[0] = 0;
    for (size_t i = !e->count && e->unknown; i < lines->count; ++i)
        CLV_TRY(find_class(c, lines, i, f->text[1][i], f->length[1][i], &e->labels[e->count + i]));
    return CLV_OK;
}

/* Removes example 0, a header. `alone`: also removes its class, the first one that was found. */
static void drop_first(cli_examples *e, cli_classes *c, bool alone)
{
    const size_t each = e->texts_each, gone = e->offsets[each];
    e->tokens -= gone, --e->count;
    if (gone) memmove(e->ids, e->ids + gone, e->tokens * sizeof *e->ids);
    for (size_t i = 0; i <= e->count * each; ++i)
        e->offsets[i] = e->offsets[i + each] - gone;
    for (size_t i = 0; c && i < e->count; ++i)
        e->labels[i] = e->labels[i + 1] - alone;
    if (!alone) return;
    clv_free(c->names[0]);
    memmove(c->names, c->names + 1, --c->count * sizeof *c->names);
}

/* Leaves out a header, or records that the first line might be one. */
static void judge_first(cli_examples *e, cli_classes *c, int header)
{
    bool alone = c && !c->closed;
    for (size_t i = 1; i < e->count && alone; ++i)
        alone = e->labels[i] != e->labels[0];
    e->header = header == CLI_HEADER_YES || e->unknown ||
                (header == CLI_HEADER_AUTO && (c ? alone && e->names : e->names == 2));
    if (e->header)
        drop_first(e, c, alone);
    else
        e->doubt = header == CLI_HEADER_AUTO && alone && c->count > 2;
}

static clv_status add_chunk(const cli_texts *texts, const clv_tokenizer *tokenizer,
                            const clv_lines *lines, int header, cli_classes *classes, fields *f,
                            clv_token_rows rows[2], cli_examples *e)
{
    char what[300];
    snprintf(what, sizeof what, "%.280s: line", lines->path);
    const clv_tokenize_options options = { .size = sizeof options,
                                           .threads = (size_t)texts->threads,
                                           .first = (size_t)lines->first,
                                           .what = what };
    CLV_TRY(split(lines, f));
    if (!e->count) look_at_first(e, classes, header, f);
    for (size_t k = 0; k < e->texts_each; ++k) {
        CLV_TRY(
            clv_tokenize(tokenizer, f->text[k], f->length[k], lines->count, &options, &rows[k]));
        cli_text_count(&e->counts, &rows[k]);
    }
    if (classes) CLV_TRY(add_labels(e, classes, lines, f));
    CLV_TRY(add_texts(e, rows, e->texts_each));
    e->count += lines->count;
    return cli_interrupted() ? clv_fail(CLV_E_CANCELLED, "interrupted") : CLV_OK;
}

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Numbers the classes in the order of their names, independent of the order of the lines. */
static clv_status close_classes(cli_classes *c, cli_examples *e)
{
    char **sorted = clv_alloc(c->count + 1, sizeof *sorted);
    if (!sorted) return clv_fail(CLV_E_MEMORY, "not enough memory for labels");
    if (c->count) memcpy(sorted, c->names, c->count * sizeof *sorted);
    qsort(sorted, c->count, sizeof *sorted, by_bytes);
    for (size_t i = 0; i < e->count; ++i) {
        char **const found =
            bsearch(&c->names[e->labels[i]], sorted, c->count, sizeof *sorted, by_bytes);
        e->labels[i] = (int32_t)(found - sorted);
    }
    clv_free(c->names);
    c->names = sorted;
    c->room = c->count;
    c->closed = true;
    return CLV_OK;
}

clv_status cli_examples_read(const char *path, const cli_texts *texts,
                             const clv_tokenizer *tokenizer, int header, cli_classes *classes,
                             cli_examples *e)
{
    clv_lines lines;
    fields f = { 0 };
    clv_token_rows rows[2] = { 0 };
    *e = (cli_examples){ .texts_each = classes ? 1 : 2 };
    CLV_TRY(clv_lines_open(&lines, path));
    clv_status status = clv_lines_next(&lines, CHUNK_LINES, CHUNK_BYTES);
    while (!status && lines.count) {
        status = add_chunk(texts, tokenizer, &lines, header, classes, &f, rows, e);
        if (!status) status = clv_lines_next(&lines, CHUNK_LINES, CHUNK_BYTES);
    }
    if (!status && e->count) judge_first(e, classes, header);
    if (!status && !e->count)
        status = clv_fail(CLV_E_FORMAT, "%s: there is no line%s, but examples are one per line",
                          path, e->header ? " after the header" : "");
    if (!status && classes && !classes->closed) {
        status = close_classes(classes, e);
        if (!status && classes->count < 2)
            status = clv_fail(
                CLV_E_FORMAT,
                "%s: every line has the label \"%.*s\", but at least two labels are needed", path,
                SHOWN, classes->names[0]);
    }
    for (int k = 0; k < 2; ++k) {
        clv_free(f.text[k]), clv_free(f.length[k]);
        clv_token_rows_clear(&rows[k]);
    }
    clv_lines_close(&lines);
    return status;
}

void cli_examples_clear(cli_examples *e)
{
    clv_free(e->ids), clv_free(e->labels), clv_free(e->offsets);
    *e = (cli_examples){ 0 };
}

void cli_classes_clear(cli_classes *c)
{
    while (c->count)
        clv_free(c->names[--c->count]);
    clv_free(c->names);
    *c = (cli_classes){ 0 };
}

/* Adds a value to a 64-bit FNV-1a hash. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; ++i)
        hash = (hash ^ (value >> 8 * i & 0xFF)) * 0x100000001B3u;
    return hash;
}

uint64_t cli_examples_fingerprint(const cli_examples *e)
{
    uint64_t hash = mix(0xCBF29CE484222325u, e->texts_each);
    for (size_t i = 0; i < e->tokens; ++i)
        hash = mix(hash, (uint64_t)e->ids[i]);
    for (size_t i = 0; i <= e->count * e->texts_each; ++i)
        hash = mix(hash, e->offsets[i]);
    for (size_t i = 0; e->labels && i < e->count; ++i)
        hash = mix(hash, (uint64_t)e->labels[i]);
    return hash;
}
