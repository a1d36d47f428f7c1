/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tables of named values to text with commas: JSON (an array of flat objects, one object after the other, an
 * object of columns, or an object of rows), and the spots of TrackMate's XML (the attributes of each element "Spot").
 * The columns are all names that occur, in order of first occurrence. */
#include "host/io/tables/any.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "host/io/stream.h"
#include "host/io/xml.h"

#include <ctype.h>
#include <string.h>

/* Limits. A row may lack columns, but a small file must not become a large table: MOST_EMPTY values may be missing, and
 * beyond that EMPTY_EACH for each value that is present. */
enum { MOST_NAMES = 4096, SLOTS = 4 * MOST_NAMES, MOST_EMPTY = 10000000, EMPTY_EACH = 7 };

/* A name and its value, as the file has them. */
typedef struct pair {
    const char *name, *value;
    size_t name_length, value_length;
    bool text;
} pair;

/* A column of JSON's object of columns: its name, and where its next value is. */
typedef struct json_column {
    const char *name, *at;
    size_t name_length;
    char close; /* '}': each value has a key, which is that of its row; ']': a list of values */
} json_column;

typedef struct source source;
typedef clv_status reader(source *s, bool *more); /* reads the next record */
struct source {
    const char *path, *begin, *at, *end;
    pair *pairs; /* names and values of the current record */
    size_t count, room;
    json_column *columns;
    size_t column_count, column_room;
    reader *next;
    clv_status (*decode)(const source *s, const pair *p,
                         clv_text *out); /* appends a text and decodes its escapes */
};

static clv_status wrong(const source *s, const char *expected)
{
    size_t line = 1;
    char found[40];
    for (const char *c = s->begin; c < s->at; ++c)
        line += *c == '\n';
    return clv_fail(
        CLV_E_FORMAT, "%s: line %zu: found \"%s\", expected %s", s->path, line,
        clv_printable(s->at, CLV_MIN((size_t)(s->end - s->at), 20), found, sizeof found), expected);
}

static void skip_space(source *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        ++s->at;
}

static bool accept(source *s, char wanted)
{
    skip_space(s);
    if (s->at == s->end || *s->at != wanted) return false;
    ++s->at;
    return true;
}

static clv_status add_pair(source *s, pair p)
{
    if (!clv_reserve(&s->pairs, &s->room, s->count + 1, sizeof *s->pairs))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    s->pairs[s->count++] = p;
    return CLV_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

#define ACCEPTED                                                                                   \
    "(a table in JSON is a list of records, records one after the other, or an object of columns " \
    "or of rows)"

/* Reads a JSON string from after its opening quote to after its closing quote. */
static clv_status json_string(source *s, const char **at, size_t *length)
{
    *at = s->at;
    for (; s->at < s->end && *s->at != '"'; ++s->at) {
        if (*s->at != '\\' || s->at + 1 == s->end) continue;
        if (s->end - s->at >= 6 && memcmp(s->at, "\\u0000", 6) == 0)
            return wrong(s, "a text without the character NUL (\\u0000), which no table may hold; "
                            "remove it");
        ++s->at;
    }
    if (s->at == s->end) return wrong(s, "a closing quote");
    *length = (size_t)(s->at++ - *at);
    return CLV_OK;
}

static clv_status json_value(source *s, pair *p)
{
    if (accept(s, '"')) {
        p->text = true;
        return json_string(s, &p->value, &p->value_length);
    }
    skip_space(s);
    p->value = s->at;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || strchr("+-.", *s->at)) && *s->at)
        ++s->at;
    p->value_length = (size_t)(s->at - p->value);
    if (!p->value_length) return wrong(s, "a number, a text, true, false or null " ACCEPTED);
    if (p->value_length == 4 && memcmp(p->value, "null", 4) == 0) p->value_length = 0;
    return CLV_OK;
}

static clv_status json_key(source *s, const char **name, size_t *length)
{
    if (!accept(s, '"')) return wrong(s, "a name in quotes");
    CLV_TRY(json_string(s, name, length));
    return accept(s, ':') ? CLV_OK : wrong(s, ":");
}

/* Reads an object, the pairs of one row. */
static clv_status json_object(source *s)
{
    if (!accept(s, '{')) return wrong(s, "an object, { ... }, for each row");
    while (!accept(s, '}')) {
        pair p = { 0 };
        CLV_TRY(json_key(s, &p.name, &p.name_length));
        CLV_TRY(json_value(s, &p));
        CLV_TRY(add_pair(s, p));
        if (!accept(s, ',') && (s->at == s->end || *s->at != '}')) return wrong(s, ", or }");
    }
    return CLV_OK;
}

static clv_status json_next(source *s, bool *more)
{
    if (s->at == s->begin && !accept(s, '[')) return wrong(s, "[");
    s->count = 0;
    if ((*more = !accept(s, ']')) == false) {
        skip_space(s);
        return s->at == s->end ? CLV_OK : wrong(s, "the end of the file");
    }
    CLV_TRY(json_object(s));
    if (!accept(s, ',') && (s->at == s->end || *s->at != ']')) return wrong(s, ", or ]");
    return CLV_OK;
}

/* Reads the next record of JSON lines. */
static clv_status json_line_next(source *s, bool *more)
{
    s->count = 0;
    skip_space(s);
    *more = s->at < s->end;
    return *more ? json_object(s) : CLV_OK;
}

/* Reads the next value of a column, and its key if the values have keys. */
static clv_status json_cell(source *s, char close, pair *cell, bool *more)
{
    *cell = (pair){ 0 };
    if ((*more = !accept(s, close)) == false) return CLV_OK;
    if (close == '}') CLV_TRY(json_key(s, &cell->name, &cell->name_length));
    CLV_TRY(json_value(s, cell));
    if (!accept(s, ',') && (s->at == s->end || *s->at != close))
        return wrong(s, close == '}' ? ", or }" : ", or ]");
    return CLV_OK;
}

/* Finds where each column begins, and checks the whole text. */
static clv_status json_find_columns(source *s)
{
    s->column_count = 0;
    if (!accept(s, '{')) return wrong(s, "{");
    while (!accept(s, '}')) {
        json_column c = { 0 };
        pair cell;
        CLV_TRY(json_key(s, &c.name, &c.name_length));
        c.close = accept(s, '{') ? '}' : accept(s, '[') ? ']' : '\0';
        if (!c.close) return wrong(s, "[ or { before the values of a column");
        c.at = s->at;
        for (bool more = true; more;)
            CLV_TRY(json_cell(s, c.close, &cell, &more));
        if (s->column_count == MOST_NAMES)
            return clv_fail(CLV_E_FORMAT, "%s: there are more than %d columns", s->path,
                            MOST_NAMES);
        if (!clv_reserve(&s->columns, &s->column_room, s->column_count + 1, sizeof c))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
        s->columns[s->column_count++] = c;
        if (!accept(s, ',') && (s->at == s->end || *s->at != '}')) return wrong(s, ", or }");
    }
    skip_space(s);
    return s->at == s->end ? CLV_OK : wrong(s, "the end of the file");
}

/* Reads the next row of an object of columns. */
static clv_status json_row_next(source *s, bool *more)
{
    pair first = { 0 };
    if (s->at == s->begin) CLV_TRY(json_find_columns(s));
    s->count = 0, *more = false;
    for (size_t i = 0; i < s->column_count; ++i) {
        json_column *c = &s->columns[i];
        bool there;
        pair cell;
        s->at = c->at;
        CLV_TRY(json_cell(s, c->close, &cell, &there));
        c->at = s->at;
        if (!i) first = cell, *more = there;
        if (there != *more || cell.name_length != first.name_length ||
            (cell.name_length && memcmp(cell.name, first.name, cell.name_length) != 0)) {
            char one[60], other[60];
            return clv_fail(
                CLV_E_FORMAT,
                "%s: the columns '%s' and '%s' differ in their rows; expected the same number of "
                "values in all columns, with the same keys in the same order",
                s->path,
                clv_printable(s->columns[0].name, s->columns[0].name_length, one, sizeof one),
                clv_printable(c->name, c->name_length, other, sizeof other));
        }
        if (!there) continue;
        cell.name = c->name, cell.name_length = c->name_length;
        CLV_TRY(add_pair(s, cell));
    }
    return CLV_OK;
}

/* Reads the next row of an object of rows, whose keys are the rows' numbers. */
static clv_status json_numbered_next(source *s, bool *more)
{
    const char *number;
    size_t length;
    if (s->at == s->begin && !accept(s, '{')) return wrong(s, "{");
    s->count = 0;
    if ((*more = !accept(s, '}')) == false) {
        skip_space(s);
        return s->at == s->end ? CLV_OK : wrong(s, "the end of the file");
    }
    CLV_TRY(json_key(s, &number, &length));
    CLV_TRY(json_object(s));
    if (!accept(s, ',') && (s->at == s->end || *s->at != '}')) return wrong(s, ", or }");
    return CLV_OK;
}

/* Reads a key, and tells whether it is a whole number. Returns false if there is no key. */
static bool find_key(source *s, bool *number)
{
    const char *key;
    size_t length, digits = 0;
    if (!accept(s, '"') || json_string(s, &key, &length) || !accept(s, ':')) return false;
    while (digits < length && isdigit((unsigned char)key[digits]))
        ++digits;
    *number = length && digits == length;
    return true;
}

/* Returns how to read a text that begins with an object: it is a record, or an object of columns or of rows. An object
 * of objects has rows if only its own first key is a number, and not that of its first object. */
static reader *form_of_object(source s)
{
    bool outer, inner;
    if (!accept(&s, '{') || !find_key(&s, &outer)) return json_line_next;
    if (accept(&s, '[')) return json_row_next;
    if (!accept(&s, '{')) return json_line_next;
    return outer && find_key(&s, &inner) && !inner ? json_numbered_next : json_row_next;
}

/* Decodes a text, whose quotes are left out, as the only element of an array: the parser takes no text alone. */
static clv_status json_decode(const source *s, const pair *p, clv_text *out)
{
    clv_json *list = NULL;
    clv_text array = { 0 };
    clv_text_add(&array, "[\"");
    clv_text_bytes(&array, p->value, p->value_length);
    clv_text_add(&array, "\"]");
    clv_status status = array.failed ? clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path)
                                     : clv_json_parse(s->path, array.data, array.length, &list);
    const char *text = clv_json_string(clv_json_at(list, 0), "");
    clv_text_bytes(out, text, strlen(text));
    clv_json_free(list);
    clv_text_clear(&array);
    return status;
}

/* ---- XML --------------------------------------------------------------------------------------------- */

static clv_status xml_next(source *s, bool *more)
{
    static const char tag[] = "<Spot";
    *more = false, s->count = 0;
    for (; s->at + sizeof tag < s->end && !*more; ++s->at)
        if (*s->at == '<' && memcmp(s->at, tag, sizeof tag - 1) == 0 &&
            memchr(" \t\r\n", s->at[sizeof tag - 1], 4))
            *more = true;
    if (!*more) return CLV_OK;
    s->at += sizeof tag - 2;
    for (;;) {
        pair p = { .text = true };
        skip_space(s);
        if (s->at < s->end && (*s->at == '/' || *s->at == '>')) return CLV_OK;
        p.name = s->at;
        while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_' || *s->at == '-'))
            ++s->at;
        p.name_length = (size_t)(s->at - p.name);
        if (!p.name_length || !accept(s, '=')) return wrong(s, "NAME=\"VALUE\" in an element Spot");
        const char quote = accept(s, '"') ? '"' : '\'';
        if (quote == '\'' && !accept(s, '\'')) return wrong(s, "a value in quotes");
        p.value = s->at;
        while (s->at < s->end && *s->at != quote)
            ++s->at;
        if (s->at == s->end) return wrong(s, "a closing quote");
        p.value_length = (size_t)(s->at++ - p.value);
        CLV_TRY(add_pair(s, p));
    }
}

static clv_status xml_decode(const source *s, const pair *p, clv_text *out)
{
    (void)s;
    clv_xml_decode(p->value, p->value_length, out);
    return CLV_OK;
}

/* ---- both -------------------------------------------------------------------------------------------- */

typedef struct names {
    char **items;
    size_t count, room;
    uint16_t slots[SLOTS]; /* hash table of names: 1 + the column; 0: free */
} names;

/* Returns the slot that holds the name, or else the free slot in which to store it. */
static size_t slot_of(const names *n, const pair *p)
{
    uint32_t digest = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < p->name_length; ++i)
        digest = (digest ^ (unsigned char)p->name[i]) * 16777619u;
    size_t slot = (digest ^ digest >> 15) % SLOTS;
    for (; n->slots[slot]; slot = (slot + 1) % SLOTS) {
        const char *name = n->items[n->slots[slot] - 1];
        if (strlen(name) == p->name_length && memcmp(name, p->name, p->name_length) == 0) break;
    }
    return slot;
}

static clv_status add_name(const source *s, names *n, const pair *p)
{
    char *name = NULL;
    const size_t slot = slot_of(n, p);
    if (n->slots[slot]) return CLV_OK;
    if (n->count == MOST_NAMES)
        return clv_fail(CLV_E_FORMAT, "%s: there are more than %d columns", s->path, MOST_NAMES);
    if (memchr(p->name, '\0', p->name_length))
        return clv_fail(CLV_E_FORMAT, "%s: the name of column %zu has a NUL byte", s->path,
                        n->count + 1);
    if (!clv_reserve(&n->items, &n->room, n->count + 1, sizeof name) ||
        !(name = clv_zalloc(p->name_length + 1, 1)))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    memcpy(name, p->name, p->name_length);
    n->items[n->count++] = name;
    n->slots[slot] = (uint16_t)n->count;
    return CLV_OK;
}

static clv_status find_names(source *s, names *n)
{
    size_t rows = 0, values = 0;
    for (bool more = true;;) {
        CLV_TRY(s->next(s, &more));
        if (!more) break;
        for (size_t i = 0; i < s->count; ++i)
            CLV_TRY(add_name(s, n, &s->pairs[i]));
        ++rows, values += s->count;
        if (rows * n->count > values + MOST_EMPTY + EMPTY_EACH * values)
            return clv_fail(CLV_E_FORMAT,
                            "%s: of the %zu values (%zu rows, %zu columns) only %zu are present; "
                            "at most %d may be absent, plus %d for each value that is present",
                            s->path, rows * n->count, rows, n->count, values, MOST_EMPTY,
                            EMPTY_EACH);
    }
    return n->count ? CLV_OK : clv_fail(CLV_E_FORMAT, "%s: the table has no rows", s->path);
}

static clv_status add_value(const source *s, const pair *p, clv_csv *csv)
{
    clv_text text = { 0 };
    clv_status status = CLV_OK;
    if (!p || !p->value_length) {
        clv_csv_missing(csv);
        return CLV_OK;
    }
    if (p->text &&
        (memchr(p->value, '\\', p->value_length) || memchr(p->value, '&', p->value_length)))
        status = s->decode(s, p, &text);
    else
        clv_text_bytes(&text, p->value, p->value_length);
    clv_csv_string(csv, clv_text_get(&text));
    csv->text.failed |= text.failed;
    clv_text_clear(&text);
    return status;
}

/* Writes the names with their escapes decoded. Before, they are compared as the file has them. */
static clv_status write_header(const source *s, const names *n, clv_csv *csv)
{
    *csv = (clv_csv){ .columns = n->count };
    for (size_t i = 0; i < n->count; ++i) {
        const pair name = { .text = true,
                            .value = n->items[i],
                            .value_length = strlen(n->items[i]) };
        CLV_TRY(add_value(s, &name, csv));
    }
    clv_csv_end_row(csv);
    csv->rows = 0;
    return CLV_OK;
}

static clv_status write_rows(source *s, const names *n, clv_csv *csv)
{
    const pair **cells = clv_alloc(n->count, sizeof *cells);
    clv_status status = cells ? CLV_OK : clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    for (bool more = true; !status;) {
        if ((status = s->next(s, &more)) || !more) break;
        memset(cells, 0, n->count * sizeof *cells);
        for (size_t i = 0; i < s->count && !status; ++i) {
            const size_t column = n->slots[slot_of(n, &s->pairs[i])] - 1u;
            if (cells[column])
                status = clv_fail(CLV_E_FORMAT, "%s: row %zu: the key '%s' occurs twice", s->path,
                                  csv->rows + 1, n->items[column]);
            cells[column] = &s->pairs[i];
        }
        for (size_t i = 0; i < n->count && !status; ++i)
            status = add_value(s, cells[i], csv);
        if (!status) clv_csv_end_row(csv);
    }
    clv_free(cells);
    return status;
}

static clv_status read_all(source *s, clv_text *text)
{
    names *n = clv_zalloc(1, sizeof *n);
    clv_csv csv = { .columns = 0 };
    if (!n) return clv_fail(CLV_E_MEMORY, "%s: out of memory", s->path);
    clv_status status = find_names(s, n);
    if (!status) {
        status = write_header(s, n, &csv);
        s->at = s->begin;
        if (!status) status = write_rows(s, n, &csv);
        *text = csv.text;
    }
    for (size_t i = 0; i < n->count; ++i)
        clv_free(n->items[i]);
    clv_free(n->items), clv_free(n), clv_free(s->pairs), clv_free(s->columns);
    return status;
}

clv_status clv_json_records(const char *path, const char *data, size_t length, clv_text *text)
{
    source s = { .path = path,
                 .begin = data,
                 .at = data,
                 .end = data + length,
                 .next = json_next,
                 .decode = json_decode };
    source start = s;
    if (accept(&start, '{')) s.next = form_of_object(s);
    return read_all(&s, text);
}

clv_status clv_xml_records(const char *path, char *data, size_t length, clv_text *text)
{
    clv_xml_blank(data, length);
    source s = { .path = path,
                 .begin = data,
                 .at = data,
                 .end = data + length,
                 .next = xml_next,
                 .decode = xml_decode };
    return read_all(&s, text);
}
