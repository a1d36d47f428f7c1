/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads structures according to their tables. */
#include "probe/report/fields.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

enum { LARGEST_LIST = 4096 };

static const char *const cache_types[][2] = { { "d", "data" },
                                              { "i", "instruction" },
                                              { "u", "unified" } };

/* Writes a text as a JSON list: "8 16 32" becomes [8, 16, 32]. */
static void write_list(clv_json *object, const char *key, const char *text, const char *separator,
                       bool numbers)
{
    if (!text) {
        clv_json_add_null(object, key);
        return;
    }
    clv_json *list = clv_json_add_array(object, key);
    for (const char *at = text; *at;) {
        char word[256];
        uint64_t number;
        const size_t length = strcspn(at, separator);
        if (length && length < sizeof word) {
            memcpy(word, at, length);
            word[length] = '\0';
            if (!numbers)
                clv_json_add_string(list, NULL, word);
            else if (clv_parse_u64(word, &number))
                clv_json_add_bytes(list, NULL, number);
        }
        at += length;
        at += strspn(at, separator);
    }
}

static void write_or_null(clv_json *object, const char *key, bool known, uint64_t value)
{
    if (known)
        clv_json_add_bytes(object, key, value);
    else
        clv_json_add_null(object, key);
}

static void write_row(clv_json *object, const clv_field *row, const void *record)
{
    const void *at = (const char *)record + row->offset;
    const char *const *text = at;
    switch (row->kind) {
    case CLV_FIELD_TEXT:
        clv_json_add_string(object, row->key, *text);
        break;
    case CLV_FIELD_WORDS:
        write_list(object, row->key, *text, " ", false);
        break;
    case CLV_FIELD_NUMBERS:
        write_list(object, row->key, *text, " ", true);
        break;
    case CLV_FIELD_TYPES:
        write_list(object, row->key, *text, "|", false);
        break;
    case CLV_FIELD_UNSIGNED:
        clv_json_add_int(object, row->key, *(const unsigned *)at);
        break;
    case CLV_FIELD_COUNT:
        write_or_null(object, row->key, *(const unsigned *)at, *(const unsigned *)at);
        break;
    case CLV_FIELD_INT:
        write_or_null(object, row->key, *(const int *)at > 0, (uint64_t) * (const int *)at);
        break;
    case CLV_FIELD_SIZE:
        write_or_null(object, row->key, *(const size_t *)at, *(const size_t *)at);
        break;
    case CLV_FIELD_SIZES3: {
        clv_json *list = clv_json_add_array(object, row->key);
        for (int i = 0; i < 3; ++i)
            clv_json_add_bytes(list, NULL, ((const size_t *)at)[i]);
        break;
    }
    case CLV_FIELD_INDEX:
        write_or_null(object, row->key, *(const size_t *)at != SIZE_MAX, *(const size_t *)at);
        break;
    case CLV_FIELD_BYTES:
        write_or_null(object, row->key, *(const uint64_t *)at != CLV_UNKNOWN,
                      *(const uint64_t *)at);
        break;
    case CLV_FIELD_LIMIT:
        write_or_null(object, row->key, *(const uint64_t *)at, *(const uint64_t *)at);
        break;
    case CLV_FIELD_LOCAL:
        clv_json_add_string(object, row->key, *(const bool *)at ? "global" : "local");
        break;
    case CLV_FIELD_REAL:
        if (*(const double *)at < 0)
            clv_json_add_null(object, row->key);
        else
            clv_json_add_number(object, row->key, *(const double *)at);
        break;
    case CLV_FIELD_BOOL:
        clv_json_add_bool(object, row->key, *(const bool *)at);
        break;
    case CLV_FIELD_MAYBE:
        if (*(const clv_tristate *)at == CLV_MAYBE)
            clv_json_add_null(object, row->key);
        else
            clv_json_add_bool(object, row->key, *(const clv_tristate *)at == CLV_YES);
        break;
    case CLV_FIELD_CACHE:
        for (size_t i = 0; i < CLV_LEN(cache_types); ++i)
            if (*(const char *)at == *cache_types[i][0])
                clv_json_add_string(object, row->key, cache_types[i][1]);
        break;
    case CLV_FIELD_CLASS:
        clv_json_add_string(object, row->key, clv_device_class_name(*(const clv_device_class *)at));
        break;
    case CLV_FIELD_VENDOR:
        clv_json_add_string(object, row->key, clv_vendor_name(*(const clv_vendor *)at));
        break;
    case CLV_FIELD_MODE:
        clv_json_add_string(object, row->key, clv_mode_name(*(const clv_mode *)at));
        break;
    }
}

/* Returns the object at a path of member names separated by dots; creates it if it is missing. */
static clv_json *open_group(clv_json *object, const char *group)
{
    while (group && *group) {
        char name[32];
        const size_t length = CLV_MIN(strcspn(group, "."), sizeof name - 1);
        memcpy(name, group, length);
        name[length] = '\0';
        clv_json *inner = (clv_json *)(uintptr_t)clv_json_get(object, name);
        object = inner ? inner : clv_json_add_object(object, name);
        group += length + (group[length] == '.');
    }
    return object;
}

void clv_fields_write(clv_json *object, clv_fields fields, const void *record, bool facts_only)
{
    for (size_t i = 0; i < fields.count; ++i)
        if (fields.rows[i].fact || !facts_only)
            write_row(open_group(object, fields.rows[i].group), &fields.rows[i], record);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    clv_machine *machine;
    const char *where;
    const clv_field *row;
} reader;

static clv_status wrong(const reader *r, const char *expected)
{
    return clv_fail(CLV_E_FORMAT, "%s.%s%s%s: expected %s or null", r->where,
                    r->row->group ? r->row->group : "", r->row->group ? "." : "", r->row->key,
                    expected);
}

static bool whole_number(const clv_json *value, uint64_t limit, uint64_t *out)
{
    if (clv_json_is_string(value)) /* numbers beyond 2^53 are written as strings */
        return clv_parse_u64(clv_json_string(value, ""), out) && *out <= limit;
    const int64_t number = clv_json_int(value, -1);
    if (!clv_json_is_int(value) || number < 0 || (uint64_t)number > limit) return false;
    *out = (uint64_t)number;
    return true;
}

static clv_status read_text(const reader *r, const clv_json *value, const char **out)
{
    if (!clv_json_is_string(value)) return wrong(r, "a text");
    const char *text = clv_json_string(value, "");
    *out = clv_machine_foreign(r->machine, text, strlen(text));
    return CLV_OK;
}

static clv_status read_list(const reader *r, const clv_json *value, char separator, bool numbers,
                            const char **out)
{
    clv_text joined = { 0 };
    clv_status status = CLV_OK;
    if (!clv_json_is_array(value) || clv_json_count(value) > LARGEST_LIST)
        return wrong(r, "a list");
    for (size_t i = 0; !status && i < clv_json_count(value); ++i) {
        const clv_json *entry = clv_json_at(value, i);
        uint64_t number = 0;
        if (numbers ? !whole_number(entry, UINT64_MAX - 1, &number) : !clv_json_is_string(entry))
            status = wrong(r, numbers ? "a list of whole numbers" : "a list of texts");
        else if (numbers)
            clv_text_add(&joined, "%s%llu", i ? " " : "", (unsigned long long)number);
        else if (joined.length < CLV_TEXT_LIMIT)
            clv_text_add(&joined, "%.*s%s", i ? 1 : 0, &separator, clv_json_string(entry, ""));
    }
    if (!status && joined.length)
        *out = clv_machine_foreign(r->machine, joined.data, joined.length);
    else if (!status)
        *out = clv_machine_keep(r->machine, ""); /* an empty list differs from an unknown one */
    if (joined.failed) r->machine->failed = true;
    clv_text_clear(&joined);
    return status;
}

static clv_status read_types(const reader *r, const clv_json *value, const char **out)
{
    static const char *const known[] = { "GPU", "CPU", "ACCELERATOR", "CUSTOM" };
    for (size_t i = 0; i < clv_json_count(value); ++i) {
        const char *word = clv_json_string(clv_json_at(value, i), "");
        bool found = false;
        for (size_t k = 0; k < CLV_LEN(known); ++k)
            found |= strcmp(word, known[k]) == 0;
        if (!found) return wrong(r, "a list of GPU, CPU, ACCELERATOR, CUSTOM");
    }
    return read_list(r, value, '|', false, out);
}

static clv_status read_sizes3(const reader *r, const clv_json *value, size_t *out)
{
    uint64_t number;
    if (!clv_json_is_array(value) || clv_json_count(value) != 3) return wrong(r, "three numbers");
    for (size_t i = 0; i < 3; ++i) {
        if (!whole_number(clv_json_at(value, i), SIZE_MAX - 1, &number))
            return wrong(r, "three numbers");
        out[i] = (size_t)number;
    }
    return CLV_OK;
}

static clv_status read_number(const reader *r, const clv_json *value, void *at)
{
    uint64_t number;
    const clv_field_kind kind = r->row->kind;
    const uint64_t limit = kind == CLV_FIELD_UNSIGNED || kind == CLV_FIELD_COUNT ? UINT32_MAX
                           : kind == CLV_FIELD_INT                               ? INT32_MAX
                                                                                 : UINT64_MAX - 1;
    if (!whole_number(value, limit, &number)) return wrong(r, "a whole number");
    if (kind == CLV_FIELD_UNSIGNED || kind == CLV_FIELD_COUNT)
        *(unsigned *)at = (unsigned)number;
    else if (kind == CLV_FIELD_INT)
        *(int *)at = (int)number;
    else if (kind == CLV_FIELD_BYTES || kind == CLV_FIELD_LIMIT)
        *(uint64_t *)at = number;
    else
        *(size_t *)at = (size_t)number;
    return CLV_OK;
}

static clv_status read_row(const reader *r, const clv_json *value, void *record)
{
    void *at = (char *)record + r->row->offset;
    switch (r->row->kind) {
    case CLV_FIELD_TEXT:
        return read_text(r, value, at);
    case CLV_FIELD_WORDS:
        return read_list(r, value, ' ', false, at);
    case CLV_FIELD_NUMBERS:
        return read_list(r, value, ' ', true, at);
    case CLV_FIELD_TYPES:
        return read_types(r, value, at);
    case CLV_FIELD_SIZES3:
        return read_sizes3(r, value, at);
    case CLV_FIELD_UNSIGNED:
    case CLV_FIELD_COUNT:
    case CLV_FIELD_INT:
    case CLV_FIELD_SIZE:
    case CLV_FIELD_INDEX:
    case CLV_FIELD_BYTES:
    case CLV_FIELD_LIMIT:
        return read_number(r, value, at);
    case CLV_FIELD_LOCAL:
        if (!clv_json_is_string(value)) return wrong(r, "local, global");
        *(bool *)at = strcmp(clv_json_string(value, ""), "global") == 0;
        return CLV_OK;
    case CLV_FIELD_REAL:
        if (!clv_json_is_number(value) || !(clv_json_number(value, -1) >= 0))
            return wrong(r, "a number from 0 up");
        *(double *)at = clv_json_number(value, -1);
        return CLV_OK;
    case CLV_FIELD_BOOL:
        if (!clv_json_is_bool(value)) return wrong(r, "true or false");
        *(bool *)at = clv_json_bool(value, false);
        return CLV_OK;
    case CLV_FIELD_MAYBE:
        if (!clv_json_is_bool(value)) return wrong(r, "true, false");
        *(clv_tristate *)at = clv_json_bool(value, false) ? CLV_YES : CLV_NO;
        return CLV_OK;
    case CLV_FIELD_CACHE:
        for (size_t i = 0; i < CLV_LEN(cache_types); ++i)
            if (strcmp(clv_json_string(value, ""), cache_types[i][1]) == 0) {
                *(char *)at = *cache_types[i][0];
                return CLV_OK;
            }
        return wrong(r, "data, instruction, unified");
    case CLV_FIELD_CLASS: /* judgements are never read */
    case CLV_FIELD_VENDOR:
    case CLV_FIELD_MODE:
        break;
    }
    return CLV_OK;
}

static bool is_null(const clv_json *value)
{
    return !value ||
           !(clv_json_is_object(value) || clv_json_is_array(value) || clv_json_is_string(value) ||
             clv_json_is_number(value) || clv_json_is_bool(value));
}

static const clv_json *find_group(const clv_json *object, const char *group)
{
    const char *dot = group ? strchr(group, '.') : NULL;
    char outer[32];
    if (!group) return object;
    if (!dot) return clv_json_get(object, group);
    clv_copy_string(outer, CLV_MIN(sizeof outer, (size_t)(dot - group) + 1), group);
    return clv_json_get(clv_json_get(object, outer), dot + 1);
}

clv_status clv_fields_read(clv_machine *machine, const clv_json *object, clv_fields fields,
                           const char *where, void *record)
{
    if (!clv_json_is_object(object)) return clv_fail(CLV_E_FORMAT, "%s: expected an object", where);
    for (size_t i = 0; i < fields.count; ++i) {
        const reader r = { .machine = machine, .where = where, .row = &fields.rows[i] };
        if (!r.row->fact) continue;
        const clv_json *value = clv_json_get(find_group(object, r.row->group), r.row->key);
        if (!is_null(value)) CLV_TRY(read_row(&r, value, record));
    }
    if (machine->failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", where);
    return CLV_OK;
}
