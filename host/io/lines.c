/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of a file or a stream as texts, a chunk of lines at a time, in bounded memory. */
#define _GNU_SOURCE
#include "host/io/lines.h"
#include "host/io/records.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18 };

clv_status clv_lines_open(clv_lines *l, const char *path)
{
    struct stat info;
    *l = (clv_lines){ .path = path, .descriptor = STDIN_FILENO, .end = '\n', .first = 1 };
    if (strcmp(path, "-") == 0) {
        l->path = "standard input";
        return CLV_OK;
    }
    l->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (l->descriptor < 0) return clv_fail(CLV_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(l->descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
        clv_lines_close(l);
        return clv_fail(CLV_E_IO, "%s is a directory", path);
    }
    return CLV_OK;
}

void clv_lines_take(clv_lines *l, const char *path, char *text, size_t length)
{
    *l = (clv_lines){ .path = path,
                      .descriptor = -1,
                      .end = '\n',
                      .first = 1,
                      .ended = true,
                      .buffer = text,
                      .used = length,
                      .room = length };
}

void clv_lines_close(clv_lines *l)
{
    if (l->descriptor > STDERR_FILENO) close(l->descriptor);
    clv_free(l->buffer);
    clv_free(l->texts);
    clv_free(l->lengths);
    clv_text_clear(&l->field), clv_text_clear(&l->decoded);
    *l = (clv_lines){ .descriptor = -1 };
}

/* Waits until the input can be read without blocking. Returns CLV_E_CANCELLED if `stop` becomes true meanwhile. */
static clv_status await(const clv_lines *l)
{
    struct pollfd input = { .fd = l->descriptor, .events = POLLIN };
    while (l->stop && poll(&input, 1, 100) <= 0)
        if (*l->stop) return clv_fail(CLV_E_CANCELLED, "%s: interrupted", l->path);
    return CLV_OK;
}

/* Reads until the buffer holds `wanted` bytes, or the input ends. */
static clv_status fill(clv_lines *l, size_t wanted)
{
    while (!l->ended && l->used - l->start < wanted) {
        if (l->start) {
            memmove(l->buffer, l->buffer + l->start, l->used - l->start);
            l->used -= l->start;
            l->start = 0;
        }
        if (!clv_reserve(&l->buffer, &l->room, l->used + READ_BYTES, 1))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory after %zu bytes of a line", l->path,
                            l->used);
        CLV_TRY(await(l));
        const ssize_t got = read(l->descriptor, l->buffer + l->used, READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return clv_fail(CLV_E_IO, "%s: cannot read: %s", l->path, strerror(errno));
        l->ended = got == 0;
        l->used += (size_t)got;
    }
    return CLV_OK;
}

/* Narrows the line at *text to its tab-separated field `column`, from 1; 0 leaves the whole line. Returns false if the
 * line has fewer fields. */
static bool pick(size_t column, const char **text, size_t *length)
{
    for (size_t i = 1; i < column; ++i) {
        const char *tab = memchr(*text, '\t', *length);
        if (!tab) return false;
        *length -= (size_t)(tab + 1 - *text);
        *text = tab + 1;
    }
    const char *tab = column ? memchr(*text, '\t', *length) : NULL;
    if (tab) *length = (size_t)(tab - *text);
    return true;
}

static bool is_table(const clv_lines *l)
{
    return l->kind == CLV_LINES_CSV || l->kind == CLV_LINES_TSV;
}

static char between(const clv_lines *l)
{
    return l->kind == CLV_LINES_CSV ? ',' : '\t';
}

static void name_record(const clv_lines *l, char what[320])
{
    snprintf(what, 320, "%.280s: %s %llu", l->path, is_table(l) ? "row" : "line",
             (unsigned long long)(l->first + l->count + l->blank));
}

/* Appends the text of a record to `decoded`, after the prefix. */
static clv_status decode(clv_lines *l, const char *text, size_t length)
{
    char what[320];
    bool missing = false;
    name_record(l, what);
    if (l->prefix) clv_text_bytes(&l->decoded, l->prefix, strlen(l->prefix));
    if (l->kind == CLV_LINES_JSON)
        CLV_TRY(clv_record_json(what, text, length, l->field.data, &l->decoded, &missing));
    else if (!is_table(l))
        clv_text_bytes(&l->decoded, text, length);
    else if (l->header && clv_record_fields(between(l), text, length) > l->header)
        return clv_fail(
            CLV_E_FORMAT,
            "%s has %zu fields, but the header has %zu; texts that contain a %s must be "
            "in quotes",
            what, clv_record_fields(between(l), text, length), l->header,
            between(l) == ',' ? "comma" : "tab");
    else if (!clv_record_field(between(l), text, length, l->column - 1, &l->decoded))
        return clv_fail(CLV_E_FORMAT, "%s has no column %zu", what, l->column);
    if (missing && !l->warned) {
        l->warned = true;
        clv_log(CLV_LOG_WARN,
                "%s: the member \"%.100s\" is null; this text and other missing ones are read as "
                "empty texts",
                what, l->field.data);
    }
    return l->decoded.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", what) : CLV_OK;
}

static clv_status add(clv_lines *l, const char *text, size_t length)
{
    if (l->kind != CLV_LINES_PLAIN && clv_record_blank(text, length)) {
        l->blank += l->kind == CLV_LINES_JSON;
        return CLV_OK;
    }
    if (l->kind == CLV_LINES_PLAIN && !pick(l->column, &text, &length))
        return clv_fail(CLV_E_FORMAT, "%s: line %llu has no column %zu", l->path,
                        (unsigned long long)(l->first + l->count), l->column);
    if (!clv_reserve(&l->texts, &l->text_room, l->count + 1, sizeof *l->texts) ||
        !clv_reserve(&l->lengths, &l->length_room, l->count + 1, sizeof *l->lengths))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu lines", l->path, l->count);
    if (l->kind != CLV_LINES_PLAIN || l->prefix) {
        const size_t before = l->decoded.length;
        CLV_TRY(decode(l, text, length));
        length = l->decoded.length - before;
    }
    l->texts[l->count] = text;
    l->lengths[l->count++] = length;
    return CLV_OK;
}

/* Returns the end of the record at `text`; NULL if the record does not end within `length` bytes. *quoted is whether a
 * table's bytes end inside a quoted field. */
static const char *end_of(const clv_lines *l, const char *text, size_t length, bool *quoted)
{
    *quoted = false;
    if (is_table(l)) return clv_record_end(between(l), text, length, quoted);
    return length ? memchr(text, l->end, length) : NULL;
}

/* Reads until the buffer holds a whole record, or the rest of the input. */
static clv_status whole_record(clv_lines *l, size_t wanted)
{
    for (;;) {
        bool quoted;
        CLV_TRY(fill(l, wanted));
        const size_t there = l->used - l->start;
        const bool whole = there && end_of(l, l->buffer + l->start, there, &quoted);
        if (!whole && there > CLV_LINE_MAX)
            return clv_fail(CLV_E_FORMAT, "%s: line %llu is longer than %d bytes", l->path,
                            (unsigned long long)l->first, CLV_LINE_MAX);
        if (whole || l->ended) return CLV_OK;
        wanted = CLV_MIN(2 * there, (size_t)CLV_LINE_MAX + 1);
    }
}

/* Moves past a byte-order mark at the start of the input. Fails if the mark is that of UTF-16. The buffer must hold a
 * whole record. */
static clv_status pass_mark(clv_lines *l)
{
    const unsigned char *b = (const unsigned char *)l->buffer + l->start;
    const size_t there = l->used - l->start;
    if (l->begun) return CLV_OK;
    l->begun = true;
    if (there >= 4 &&
        ((b[0] == 0xFF && b[1] == 0xFE && !b[3]) || (b[0] == 0xFE && b[1] == 0xFF && !b[2])))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the text is UTF-16, expected UTF-8; \"iconv -f UTF-16 -t UTF-8\" "
                        "converts it",
                        l->path);
    if (there >= 3 && memcmp(b, "\xEF\xBB\xBF", 3) == 0) l->start += 3;
    return CLV_OK;
}

/* Finds the next record in the buffer; *text is NULL if the buffer has no more. */
static clv_status next_record(clv_lines *l, const char **text, size_t *length)
{
    const size_t there = l->used - l->start;
    bool quoted = false;
    const char *start = l->buffer + l->start,
               *end = there ? end_of(l, start, there, &quoted) : NULL;
    *text = NULL;
    if (!there || (!end && !l->ended)) return CLV_OK;
    if (!end && quoted) {
        char what[320];
        name_record(l, what);
        return clv_fail(CLV_E_FORMAT, "%s: a quoted field has no closing quote", what);
    }
    *text = start;
    *length = end ? (size_t)(end - start) : there;
    l->start += *length + (end != NULL);
    if (l->kind == CLV_LINES_PLAIN && end && l->end == '\n' && *length)
        *length -= start[*length - 1] == '\r'; /* a line end of Windows */
    return CLV_OK;
}

clv_status clv_lines_choose(clv_lines *l, clv_lines_kind kind, const char *name, size_t column,
                            const char **chosen)
{
    const char *text = NULL;
    size_t length = 0;
    l->kind = kind;
    l->column = column;
    *chosen = "";
    if (kind == CLV_LINES_PLAIN) return CLV_OK;
    CLV_TRY(whole_record(l, 1));
    CLV_TRY(pass_mark(l));
    size_t first = l->start;
    do {
        CLV_TRY(whole_record(l, 1));
        first = l->start;
        CLV_TRY(next_record(l, &text, &length));
        if (!text) return CLV_OK;
        l->blank += kind == CLV_LINES_JSON && clv_record_blank(text, length);
    } while (clv_record_blank(text, length));
    const bool header = is_table(l) && !column;
    char what[320];
    name_record(l, what);
    if (kind == CLV_LINES_JSON)
        CLV_TRY(clv_record_find_json(what, text, length, name, &l->field));
    else if (header)
        CLV_TRY(clv_record_find(l->path, between(l), text, length, name, &l->column, &l->field));
    else if (!clv_record_field(between(l), text, length, column - 1, &l->field))
        return clv_fail(CLV_E_FORMAT, "%s has no column %zu", what, column);
    if (l->field.failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
    l->header = header ? clv_record_fields(between(l), text, length) : 0;
    if (header)
        ++l->column, ++l->first;
    else
        l->start = first;
    *chosen = clv_text_get(&l->field);
    return CLV_OK;
}

clv_status clv_lines_next(clv_lines *l, size_t most_lines, size_t most_bytes)
{
    size_t taken = 0;
    l->first += l->count;
    l->count = 0;
    clv_text_restart(&l->decoded);
    CLV_TRY(whole_record(l, CLV_MAX(most_bytes, (size_t)1)));
    CLV_TRY(pass_mark(l));
    while (l->count < most_lines && (!l->count || taken < most_bytes)) {
        const char *text;
        size_t length = 0;
        CLV_TRY(next_record(l, &text, &length));
        if (text) {
            CLV_TRY(add(l, text, length));
            taken += length + 1;
        } else if (l->count || l->ended) {
            break;
        } else { /* all lines in the buffer were blank */
            CLV_TRY(whole_record(l, CLV_MAX(most_bytes, (size_t)1)));
        }
    }
    if (l->decoded.length) { /* l->decoded is not reallocated from here on */
        const char *at = l->decoded.data;
        for (size_t i = 0; i < l->count; at += l->lengths[i++])
            l->texts[i] = at;
    }
    return CLV_OK;
}
