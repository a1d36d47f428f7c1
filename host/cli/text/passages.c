/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the texts whose vectors are searched. */
#include "host/cli/text/passages.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LINES = 8192, CHUNK_BYTES = 1 << 20 };

/* Receives one text of the file. */
typedef clv_status take_text(void *user, size_t row, const char *text, size_t length);

/* Passes all texts to `take` (NULL: only counts them). Returns 0, else the exit code. */
static int each_text(const cli_passages *p, bool quiet, take_text *take, void *user, size_t *count)
{
    const cli_texts texts = { .input = p->path };
    clv_lines lines;
    clv_status status = CLV_OK;
    *count = 0;
    int code = cli_texts_open(p->command, &texts, quiet, &lines);
    while (!code && !status) {
        status = clv_lines_next(&lines, CHUNK_LINES, CHUNK_BYTES);
        if (status || !lines.count) break;
        for (size_t i = 0; i < lines.count && take && !status; ++i)
            status = take(user, *count + i, lines.texts[i], lines.lengths[i]);
        *count += lines.count;
        if (!status && cli_interrupted())
            status = clv_fail(CLV_E_CANCELLED, "%s: reading was cancelled", p->path);
    }
    clv_lines_close(&lines);
    return code ? code : cli_input_status(p->command, status);
}

int cli_passages_check(cli_passages *p, size_t rows, bool quiet)
{
    size_t count;
    const int code = each_text(p, quiet, NULL, NULL, &count);
    if (code || count == rows) return code;
    return cli_error(p->command, CLI_USAGE,
                     "--passages %s has %zu texts, but VECTORS has %zu rows; expected the file "
                     "that was embedded",
                     p->path, count, rows);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the rows and drops repetitions and -1. */
static void sort_rows(cli_passages *p)
{
    size_t kept = 0;
    qsort(p->rows, p->count, sizeof *p->rows, compare);
    for (size_t i = 0; i < p->count; ++i)
        if (p->rows[i] >= 0 && (!kept || p->rows[i] != p->rows[kept - 1]))
            p->rows[kept++] = p->rows[i];
    p->count = kept;
}

typedef struct fetching {
    cli_passages *passages;
    size_t next;
} fetching;

static clv_status keep_wanted(void *user, size_t row, const char *text, size_t length)
{
    fetching *f = user;
    cli_passages *p = f->passages;
    if (f->next == p->count || (int64_t)row != p->rows[f->next]) return CLV_OK;
    char *copy = clv_alloc(length + 1, 1);
    if (!copy) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for a text", p->path);
    for (size_t i = 0; i < length; ++i) /* a table's cell ends at the first NUL */
        copy[i] = text[i] ? text[i] : ' ';
    copy[length] = '\0';
    p->texts[f->next++] = copy;
    return CLV_OK;
}

int cli_passages_fetch(cli_passages *p, const int64_t *rows, size_t count)
{
    fetching f = { .passages = p };
    size_t there;
    p->rows = clv_alloc(count + 1, sizeof *p->rows);
    p->texts = clv_zalloc(count + 1, sizeof *p->texts);
    if (!p->rows || !p->texts)
        return cli_status(p->command,
                          clv_fail(CLV_E_MEMORY, "not enough memory for %zu texts", count));
    if (count) memcpy(p->rows, rows, count * sizeof *rows);
    p->count = count;
    sort_rows(p);
    const int code = each_text(p, true, keep_wanted, &f, &there);
    if (!code && f.next < p->count)
        return cli_error(p->command, CLI_FAILED, "%s: the file changed while it was read", p->path);
    return code;
}

const char *cli_passages_text(const cli_passages *p, int64_t row)
{
    const int64_t *at = bsearch(&row, p->rows, p->count, sizeof row, compare);
    return at ? p->texts[at - p->rows] : "";
}

void cli_passages_clear(cli_passages *p)
{
    for (size_t i = 0; i < p->count && p->texts; ++i)
        clv_free(p->texts[i]);
    clv_free(p->texts), clv_free(p->rows);
    p->texts = NULL, p->rows = NULL, p->count = 0;
}
