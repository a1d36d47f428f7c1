/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end and the fields of one record: a row of a table (RFC 4180, with commas or tabs) or a line of JSON. */
#include "host/io/records.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* The names of columns or members that usually hold texts, in order of preference. */
static const char *const usual[] = { "text",    "sentence", "content", "document",
                                     "passage", "query",    "title" };

enum { SHOWN = 300, MOST_FIELDS = 4096 };

/* ---- tables ------------------------------------------------------------------------------------ */

const char *clv_record_end(char between, const char *text, size_t length, bool *quoted)
{
    bool begins = true; /* whether a field begins here; elsewhere quotes are ordinary characters */
    *quoted = false;
    for (size_t i = 0; i < length; ++i) {
        const char c = text[i];
        if (*quoted) {
            *quoted = c != '"'; /* the second of two quotes opens the field again */
            begins = !*quoted && i + 1 < length && text[i + 1] == '"';
        } else if (c == '\n') {
            return text + i;
        } else {
            *quoted = c == '"' && begins;
            begins = c == between;
        }
    }
    return NULL;
}

/* Reads the field that begins at *at, and moves *at past its separator. Returns false for the record's last field. */
static bool next_field(char between, const char *text, size_t length, size_t *at, clv_text *out)
{
    size_t i = *at;
    bool quoted = i < length && text[i] == '"';
    for (i += quoted; i < length; ++i) {
        if (quoted && text[i] == '"') {
            quoted = i + 1 < length && text[i + 1] == '"';
            if (!quoted) continue;
            ++i;
        } else if (!quoted && text[i] == between) {
            *at = i + 1;
            return true;
        }
        if (out) clv_text_bytes(out, text + i, 1);
    }
    *at = length;
    return false;
}

static size_t without_return(const char *text, size_t length)
{
    return length - (length && text[length - 1] == '\r');
}

bool clv_record_field(char between, const char *text, size_t length, size_t column, clv_text *out)
{
    size_t at = 0;
    length = without_return(text, length);
    for (size_t i = 0; i < column; ++i)
        if (!next_field(between, text, length, &at, NULL)) return false;
    next_field(between, text, length, &at, out);
    return true;
}

size_t clv_record_fields(char between, const char *text, size_t length)
{
    size_t at = 0, count = 1;
    length = without_return(text, length);
    while (next_field(between, text, length, &at, NULL))
        ++count;
    return count;
}

bool clv_record_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if (!memchr(" \t\r", text[i], 3)) return false;
    return true;
}

/* ---- which field ------------------------------------------------------------------------------- */

/* The names of a record's fields, in the order of the record. */
typedef struct names {
    char **items;
    size_t count, room;
} names;

static void clear_names(names *n)
{
    for (size_t i = 0; i < n->count; ++i)
        clv_free(n->items[i]);
    clv_free(n->items);
}

static clv_status add_name(const char *what, names *n, const char *name)
{
    char *copy = clv_strdup(name);
    if (copy && clv_reserve(&n->items, &n->room, n->count + 1, sizeof *n->items)) {
        n->items[n->count++] = copy;
        return CLV_OK;
    }
    clv_free(copy);
    return clv_fail(CLV_E_MEMORY, "%s: not enough memory for its names", what);
}

static clv_status choose(const char *what, const char *kind, const char *option, const names *n,
                         const char *name, size_t *place)
{
    const bool alone = !name && n->count == 1;
    for (size_t u = 0; !name && !alone && u < CLV_LEN(usual); ++u)
        for (size_t i = 0; i < n->count && !name; ++i)
            if (strcmp(n->items[i], usual[u]) == 0) name = usual[u];
    size_t same = 0;
    *place = 0;
    for (size_t i = 0; name && i < n->count; ++i)
        if (strcmp(n->items[i], name) == 0) {
            if (!same++) *place = i;
        }
    if (same == 1 || alone) return CLV_OK;
    char list[SHOWN] = "";
    for (size_t i = 0, used = 0; i < n->count && used < sizeof list; ++i)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s\"%.60s\"", i ? ", " : "",
                                 n->items[i]);
    const char *there = n->count ? list : "none";
    if (!name)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: it is not clear which %s holds the texts; there are %s; choose one with %s NAME",
            what, kind, there, option);
    return clv_fail(CLV_E_FORMAT, "%s: %s \"%.100s\" is %s; there are %s", what, kind, name,
                    same ? "there more than once" : "missing", there);
}

/* Refuses a name that holds lines which end with CR alone: all rows of the table would be its header. */
static clv_status check_ends(const char *what, const char *name)
{
    for (const char *c = name; (c = strchr(c, '\r'));)
        if (*++c != '\n') return clv_fail(CLV_E_FORMAT, "%s: line 1 %s", what, CLV_LONE_RETURN);
    return CLV_OK;
}

clv_status clv_record_find(const char *what, char between, const char *text, size_t length,
                           const char *name, size_t *column, clv_text *found)
{
    names n = { 0 };
    clv_status status = CLV_OK;
    const size_t count = clv_record_fields(between, text, length);
    if (count > MOST_FIELDS)
        return clv_fail(CLV_E_FORMAT, "%s has %zu columns; expected at most %d", what, count,
                        MOST_FIELDS);
    length = without_return(text, length);
    size_t at = 0;
    for (bool more = true; more && !status;) {
        clv_text one = { 0 };
        more = next_field(between, text, length, &at, &one);
        status = one.failed ? clv_fail(CLV_E_MEMORY, "%s: not enough memory for its header", what)
                            : add_name(what, &n, clv_text_get(&one));
        if (!status) status = check_ends(what, clv_text_get(&one));
        clv_text_clear(&one);
    }
    if (!status) status = choose(what, "column", "--column", &n, name, column);
    if (!status && !name && n.count == 1 && strpbrk(n.items[0], between == ',' ? ";\t" : ";,"))
        status = clv_fail(CLV_E_FORMAT,
                          "%s: the only column is \"%.60s\", so its fields seem to be separated by "
                          "something other than %s; convert the table, or take the column as it is "
                          "with --column NAME",
                          what, n.items[0], between == ',' ? "commas" : "tabs");
    if (!status) clv_text_add(found, "%s", n.items[*column]);
    clear_names(&n);
    return status;
}

/* ---- JSON lines -------------------------------------------------------------------------------- */

/* Returns whether the member `key` may hold the texts: it is a string, or it is null, as where pandas has no text, and
 * has the name that is looked for or a usual one. */
static bool may_hold(const clv_json *value, const char *key, const char *name)
{
    bool likely = name && strcmp(key, name) == 0;
    for (size_t i = 0; i < CLV_LEN(usual) && !name && !likely; ++i)
        likely = strcmp(key, usual[i]) == 0;
    return clv_json_is_string(value) || (likely && clv_folder_absent(value));
}

clv_status clv_record_find_json(const char *what, const char *text, size_t length, const char *name,
                                clv_text *found)
{
    clv_json *root = NULL;
    names n = { 0 };
    size_t place = 0;
    CLV_TRY(clv_json_parse(what, text, length, &root));
    clv_status status = CLV_OK;
    if (!clv_json_is_object(root))
        status =
            clv_fail(CLV_E_FORMAT,
                     "%s: not a JSON object; expected {\"text\": \"...\"} on every line", what);
    for (const char *key = NULL; !status && (key = clv_json_next_key(root, key));)
        if (may_hold(clv_json_get(root, key), key, name)) status = add_name(what, &n, key);
    if (!status) status = choose(what, "member", "--field", &n, name, &place);
    if (!status) clv_text_add(found, "%s", n.items[place]);
    if (!status && found->failed) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", what);
    clear_names(&n);
    clv_json_free(root);
    return status;
}

clv_status clv_record_json(const char *what, const char *text, size_t length, const char *name,
                           clv_text *out, bool *missing)
{
    clv_json *root = NULL;
    CLV_TRY(clv_json_parse(what, text, length, &root));
    const clv_json *value = clv_json_get(root, name);
    const char *string = clv_json_string(value, NULL);
    clv_status status = CLV_OK;
    *missing = value && clv_folder_absent(value);
    if (string)
        clv_text_bytes(out, string, strlen(string));
    else if (!*missing)
        status = clv_fail(CLV_E_FORMAT, "%s: the member \"%.100s\" is %s, expected a string", what,
                          name, value ? clv_folder_kind(value) : "missing");
    clv_json_free(root);
    return status;
}
