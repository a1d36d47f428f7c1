/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a vector of numbers from a text file, such as a list of angles. */
#include "host/io/formats/table.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/stream.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_FILE = 256 << 20, MAX_WORD = 100 };

typedef struct reader {
    const char *path, *at, *end, *line_begin;
    size_t line;         /* number of the current line, from 1 */
    size_t lines;        /* lines that held numbers */
    size_t words;        /* words in the current line */
    size_t words_before; /* words in the last line that held numbers */
    bool separated;      /* a comma or semicolon was read, but not yet the word after it */
    double *values;
    size_t count, capacity;
} reader;

/* Fails with a message about the bytes at `at`; it counts columns in bytes from 1. */
static clv_status mistake(const reader *r, const char *at, size_t length, const char *what)
{
    char found[60];
    return clv_fail(CLV_E_FORMAT, "%s: line %zu, column %zu: \"%s\" %s", r->path, r->line,
                    (size_t)(at - r->line_begin) + 1,
                    clv_printable(at, length, found, sizeof found), what);
}

static bool ends_word(char c)
{
    return c != '\0' && strchr(" \t\r\n\v\f,;#", c);
}

static clv_status read_number(reader *r, const char *word, size_t length)
{
    char text[MAX_WORD + 1];
    double value;
    if (length > MAX_WORD) return mistake(r, word, length, "is too long for a number");
    memcpy(text, word, length);
    text[length] = '\0';
    for (char *c = text; *c; ++c) /* Fortran writes the exponent of doubles with D */
        if (*c == 'D' || *c == 'd') *c = 'e';
    /* a NUL inside the word would end `text` too early */
    if (strlen(text) != length || !clv_parse_double(text, &value))
        return mistake(r, word, length, "is not a finite number");

    ++r->words;
    if (r->words == 1) ++r->lines;
    if (r->lines > 1 && (r->words > 1 || r->words_before > 1))
        return mistake(r, word, length,
                       "makes it a table; expected one column or one row of numbers");
    if (!clv_reserve(&r->values, &r->capacity, r->count + 1, sizeof *r->values))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory after %zu numbers", r->path, r->count);
    r->values[r->count++] = value;
    r->separated = false;
    return CLV_OK;
}

static void begin_line(reader *r)
{
    if (r->words) r->words_before = r->words;
    r->words = 0;
    r->separated = false;
    r->line_begin = r->at;
    ++r->line;
}

static clv_status read_all(reader *r)
{
    while (r->at < r->end) {
        const char *word = r->at;
        if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n')
                ++r->at;
        } else if (*r->at == '\n') {
            ++r->at;
            begin_line(r);
        } else if (*r->at == ',' || *r->at == ';') {
            if (r->separated || !r->words) return mistake(r, word, 1, "has no number before it");
            r->separated = true;
            ++r->at;
        } else if (ends_word(*r->at)) {
            ++r->at;
        } else {
            while (r->at < r->end && !ends_word(*r->at))
                ++r->at;
            CLV_TRY(read_number(r, word, (size_t)(r->at - word)));
        }
    }
    return CLV_OK;
}

clv_status clv_text_vector_read(const char *path, double **values, size_t *count)
{
    char *text = NULL;
    size_t length = 0;
    *values = NULL;
    *count = 0;
    CLV_TRY(clv_file_read(path, MAX_FILE, &text, &length));
    reader r = { .path = path, .at = text, .end = text + length, .line = 1 };
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) r.at += 3; /* byte-order mark */
    r.line_begin = r.at;

    clv_status status = read_all(&r);
    if (!status && !r.count) status = clv_fail(CLV_E_FORMAT, "%s: the file has no numbers", path);
    if (!status) {
        *values = r.values;
        *count = r.count;
        r.values = NULL;
    }
    clv_free(r.values);
    clv_free(text);
    return status;
}
