/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises by a file's first bytes which kind of table it holds, and by a text table's header which separator it
 * uses. */
#include "host/io/tables/any.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "host/io/tables/parquet.h"

#include <string.h>

enum { MAX_FILE = 1 << 30 };

/* Counts the character `c` in the table's first line, outside quotes. */
static size_t count_in_header(const char *text, char c)
{
    size_t count = 0;
    bool quoted = false;
    for (; *text && (quoted || *text != '\n'); ++text) {
        if (*text == '"') quoted = !quoted;
        count += !quoted && *text == c;
    }
    return count;
}

static clv_status find_between(const char *path, const char *text, char *between)
{
    static const char separators[] = ",;\t";
    size_t most = 0, second = 0;
    *between = ',';
    for (const char *s = separators; *s; ++s) {
        const size_t count = count_in_header(text, *s);
        if (count > most)
            second = most, most = count, *between = *s;
        else if (count > second)
            second = count;
    }
    if (!most || most != second) return CLV_OK;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the header has equal numbers of commas, semicolons or tabs, so the "
                    "separator of the columns is unclear; use one kind only, or quote the names",
                    path);
}

clv_status clv_table_read(const char *path, char decimal, clv_csv_table **table, const char **kind)
{
    char *data, between = ',', (*codes)[3] = NULL;
    size_t length, at;
    clv_text text = { 0 };
    *table = NULL;
    CLV_TRY(clv_file_read(path, MAX_FILE, &data, &length));
    const size_t mark = length >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    for (at = mark; at < length && strchr(" \t\r\n", data[at]) && data[at];)
        ++at;
    clv_status status = CLV_OK;
    if (length >= 6 && memcmp(data, "\x93NUMPY", 6) == 0)
        *kind = "NumPy records", status = clv_npy_records(path, data, length, &text, &codes);
    else if (length >= 4 && memcmp(data, "PAR1", 4) == 0)
        *kind = "Parquet", status = clv_parquet_records(path, data, length, &text, &codes);
    else if (at < length && (data[at] == '[' || data[at] == '{'))
        *kind = "JSON", status = clv_json_records(path, data + mark, length - mark, &text);
    else if (at < length && data[at] == '<')
        *kind = "TrackMate XML", status = clv_xml_records(path, data + mark, length - mark, &text);
    else
        *kind = NULL;
    if (!*kind) {
        status = find_between(path, data, &between);
        *kind = between == ';'    ? "text with semicolons"
                : between == '\t' ? "text with tabs"
                                  : "text with commas";
        if (!status)
            status = clv_csv_take(path, data, length, between, table);
        else
            clv_free(data);
        if (status) return status;
        if (decimal)
            clv_csv_set_decimal(*table, decimal);
        else if (between != ',')
            clv_csv_find_decimal(*table);
        return CLV_OK;
    }
    clv_free(data);
    if (!status && text.failed) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    if (!status) {
        char *copy = clv_alloc(text.length + 1, 1);
        if (copy) memcpy(copy, clv_text_get(&text), text.length), copy[text.length] = '\0';
        status = copy ? clv_csv_take(path, copy, text.length, ',', table)
                      : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    clv_text_clear(&text);
    if (!status)
        clv_csv_set_codes(*table, codes);
    else
        clv_free(codes);
    return status;
}
