/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the values of a template: their memory, construction and comparison. */
#define _GNU_SOURCE
#include "host/chat/value.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

typedef struct chat_block {
    struct chat_block *before;
    size_t used, room;
    max_align_t bytes[];
} chat_block;

void *chat_take(chat_run *run, size_t bytes)
{
    chat_memory *m = &run->memory;
    const size_t wanted = clv_round_up(CLV_MAX(bytes, (size_t)1), sizeof(max_align_t));
    if (!m->latest || m->latest->room - m->latest->used < wanted) {
        const size_t room = CLV_MAX(wanted, (size_t)BLOCK);
        if (wanted > CHAT_MEMORY_MOST || m->used > CHAT_MEMORY_MOST - wanted) {
            chat_fail(run, CLV_E_SHAPE, "the template needs more than %d MB",
                      CHAT_MEMORY_MOST >> 20);
            return NULL;
        }
        chat_block *block = clv_alloc(1, sizeof *block + room);
        if (!block) {
            chat_fail(run, CLV_E_MEMORY, "out of memory");
            return NULL;
        }
        *block = (chat_block){ .before = m->latest, .room = room };
        m->latest = block;
        m->used += room;
    }
    void *out = (char *)m->latest->bytes + m->latest->used;
    m->latest->used += wanted;
    return out;
}

void chat_release(chat_memory *m)
{
    while (m->latest) {
        chat_block *block = m->latest;
        m->latest = block->before;
        clv_free(block);
    }
    m->used = 0;
}

chat_value chat_fail(chat_run *run, clv_status status, const char *format, ...)
{
    char message[400];
    va_list args;
    if (run->status) return chat_undefined; /* the first failure's message stays */
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    run->status = clv_fail(status, "chat template, line %u: %s", run->line, message);
    return chat_undefined;
}

bool chat_step(chat_run *run, size_t bytes)
{
    run->steps += 1 + bytes / 64;
    if (!run->status && run->steps > CHAT_STEPS_MOST)
        chat_fail(run, CLV_E_SHAPE, "more than %d steps", CHAT_STEPS_MOST);
    return !run->status;
}

/* ---- making -------------------------------------------------------------------------------------- */

const chat_value chat_undefined = { CHAT_UNDEFINED, { 0 } }, chat_none = { CHAT_NONE, { 0 } };

chat_value chat_bool(bool truth)
{
    return (chat_value){ CHAT_BOOL, { .truth = truth } };
}

chat_value chat_int(int64_t whole)
{
    return (chat_value){ CHAT_INT, { .whole = whole } };
}

chat_value chat_float(double number)
{
    return (chat_value){ CHAT_FLOAT, { .number = number } };
}

chat_value chat_string_of(chat_string text)
{
    return (chat_value){ CHAT_STRING, { .text = text } };
}

chat_value chat_text(const char *text)
{
    return chat_string_of((chat_string){ text, NULL, strlen(text) });
}

chat_value chat_copy(chat_run *run, const char *data, size_t length, bool marked)
{
    char *bytes = chat_take(run, length);
    unsigned char *marks = marked ? chat_take(run, length) : NULL;
    if (!bytes || (marked && !marks)) return chat_undefined;
    if (length) memcpy(bytes, data, length);
    if (marked && length) memset(marks, 1, length);
    return chat_string_of((chat_string){ bytes, marks, length });
}

chat_string chat_part(chat_string text, size_t from, size_t to)
{
    from = CLV_MIN(from, text.length), to = CLV_MIN(to, text.length);
    if (to < from) to = from;
    return (chat_string){ text.data + from, text.marks ? text.marks + from : NULL, to - from };
}

chat_string chat_join(chat_run *run, chat_string a, chat_string b)
{
    chat_out out = { 0 };
    if (!a.length) return b;
    if (!b.length) return a;
    chat_put(run, &out, a);
    chat_put(run, &out, b);
    return chat_put_end(&out);
}

/* ---- text that grows ----------------------------------------------------------------------------- */

/* Makes room for `wanted` bytes by copying the text; the old bytes stay allocated until the memory is released. */
static bool grow(chat_run *run, chat_out *out, size_t wanted)
{
    if (wanted <= out->room) return true;
    const size_t room = CLV_MAX(2 * out->room, wanted + 256);
    char *data = chat_take(run, room);
    unsigned char *marks = chat_take(run, room);
    if (!data || !marks) return false;
    if (out->length) memcpy(data, out->data, out->length);
    if (out->length) memcpy(marks, out->marks, out->length);
    out->data = data, out->marks = marks, out->room = room;
    return true;
}

void chat_put(chat_run *run, chat_out *out, chat_string text)
{
    if (run->status || !text.length || !grow(run, out, out->length + text.length)) return;
    memcpy(out->data + out->length, text.data, text.length);
    if (text.marks)
        memcpy(out->marks + out->length, text.marks, text.length);
    else
        memset(out->marks + out->length, 0, text.length);
    out->length += text.length;
}

void chat_put_text(chat_run *run, chat_out *out, const char *text)
{
    chat_put(run, out, (chat_string){ text, NULL, strlen(text) });
}

chat_string chat_put_end(const chat_out *out)
{
    return (chat_string){ out->data ? out->data : "", out->marks, out->length };
}

/* ---- lists and dictionaries ---------------------------------------------------------------------- */

chat_value chat_list_new(chat_run *run)
{
    chat_list *list = chat_take(run, sizeof *list);
    if (!list) return chat_undefined;
    *list = (chat_list){ 0 };
    return (chat_value){ CHAT_LIST, { .list = list } };
}

/* Returns a longer copy of an array of `used` items of `size` bytes; NULL if memory runs out. */
static void *longer(chat_run *run, const void *items, size_t used, size_t *room, size_t size)
{
    const size_t wanted = CLV_MAX(2 * *room, (size_t)8);
    void *out = chat_take(run, wanted * size);
    if (!out) return NULL;
    if (used) memcpy(out, items, used * size);
    *room = wanted;
    return out;
}

void chat_list_add(chat_run *run, chat_value value, chat_value item)
{
    if (value.kind != CHAT_LIST || run->status) return;
    chat_list *list = value.as.list;
    if (list->count == list->room) {
        chat_value *items = longer(run, list->items, list->count, &list->room, sizeof *items);
        if (!items) return;
        list->items = items;
    }
    list->items[list->count++] = item;
}

chat_value chat_dict_new(chat_run *run)
{
    chat_dict *dict = chat_take(run, sizeof *dict);
    if (!dict) return chat_undefined;
    *dict = (chat_dict){ 0 };
    return (chat_value){ CHAT_DICT, { .dict = dict } };
}

/* Compares two numbers; whole numbers exactly, as a float64 would round those beyond 2^53. */
static int compare_numbers(chat_value a, chat_value b)
{
    if (a.kind == CHAT_INT && b.kind == CHAT_INT)
        return (a.as.whole > b.as.whole) - (a.as.whole < b.as.whole);
    const double x = chat_number(a), y = chat_number(b);
    return (x > y) - (x < y);
}

/* Returns whether two numbers are equal, which a NaN is with no number. */
static bool same_number(chat_value a, chat_value b)
{
    return !compare_numbers(a, b) && chat_number(a) == chat_number(b);
}

/* Returns whether two keys, which are texts or numbers, are equal. */
static bool same_key(chat_value a, chat_value b)
{
    if (a.kind == CHAT_STRING && b.kind == CHAT_STRING)
        return a.as.text.length == b.as.text.length &&
               memcmp(a.as.text.data, b.as.text.data, a.as.text.length) == 0;
    return chat_is_number(a) && chat_is_number(b) && same_number(a, b);
}

void chat_dict_set(chat_run *run, chat_value value, chat_value key, chat_value item)
{
    if (value.kind != CHAT_DICT || run->status) return;
    chat_dict *dict = value.as.dict;
    for (size_t i = 0; i < dict->count; ++i)
        if (same_key(dict->pairs[i].key, key)) {
            dict->pairs[i].value = item;
            return;
        }
    if (dict->count == dict->room) {
        chat_pair *pairs = longer(run, dict->pairs, dict->count, &dict->room, sizeof *pairs);
        if (!pairs) return;
        dict->pairs = pairs;
    }
    dict->pairs[dict->count++] = (chat_pair){ key, item };
}

chat_value chat_dict_get(const chat_dict *dict, chat_value key)
{
    for (size_t i = 0; i < dict->count; ++i)
        if (same_key(dict->pairs[i].key, key)) return dict->pairs[i].value;
    return chat_undefined;
}

/* ---- looking ------------------------------------------------------------------------------------- */

const char *chat_kind_name(chat_value v)
{
    static const char *const names[] = { "undefined", "none",         "a bool",
                                         "a number",  "a number",     "a text",
                                         "a list",    "a dictionary", "a macro" };
    return names[v.kind];
}

bool chat_is_text(chat_value v, const char *text)
{
    return v.kind == CHAT_STRING && v.as.text.length == strlen(text) &&
           memcmp(v.as.text.data, text, v.as.text.length) == 0;
}

bool chat_truth(chat_value v)
{
    switch (v.kind) {
    case CHAT_BOOL:
        return v.as.truth;
    case CHAT_INT:
        return v.as.whole != 0;
    case CHAT_FLOAT:
        return v.as.number != 0;
    case CHAT_STRING:
        return v.as.text.length > 0;
    case CHAT_LIST:
        return v.as.list->count > 0;
    case CHAT_DICT:
        return v.as.dict->changes || v.as.dict->count > 0;
    case CHAT_MACRO:
        return true;
    default:
        return false;
    }
}

bool chat_is_number(chat_value v)
{
    return v.kind == CHAT_BOOL || v.kind == CHAT_INT || v.kind == CHAT_FLOAT;
}

double chat_number(chat_value v)
{
    return v.kind == CHAT_BOOL  ? (double)v.as.truth
           : v.kind == CHAT_INT ? (double)v.as.whole
                                : v.as.number;
}

static int compare_texts(chat_string a, chat_string b)
{
    const size_t both = CLV_MIN(a.length, b.length);
    const int order = both ? memcmp(a.data, b.data, both) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static bool same_dicts(chat_run *run, const chat_dict *a, const chat_dict *b)
{
    if (a == b) return true;
    if (a->changes || b->changes || a->count != b->count) return false;
    for (size_t i = 0; i < a->count; ++i) {
        const chat_pair *p = &a->pairs[i];
        if (!chat_equals(run, p->value, chat_dict_get(b, p->key))) return false;
    }
    return true;
}

bool chat_equals(chat_run *run, chat_value a, chat_value b)
{
    if (chat_is_number(a) && chat_is_number(b)) return same_number(a, b);
    if (a.kind != b.kind || !chat_step(run, 0)) return false;
    if (a.kind == CHAT_STRING) return compare_texts(a.as.text, b.as.text) == 0;
    if (a.kind == CHAT_LIST) {
        if (a.as.list->count != b.as.list->count) return false;
        for (size_t i = 0; i < a.as.list->count; ++i)
            if (!chat_equals(run, a.as.list->items[i], b.as.list->items[i])) return false;
        return true;
    }
    if (a.kind == CHAT_DICT) return same_dicts(run, a.as.dict, b.as.dict);
    if (a.kind == CHAT_MACRO) return a.as.macro == b.as.macro;
    return true;
}

int chat_compare(chat_run *run, chat_value a, chat_value b)
{
    if (chat_is_number(a) && chat_is_number(b)) return compare_numbers(a, b);
    if (a.kind == CHAT_STRING && b.kind == CHAT_STRING) return compare_texts(a.as.text, b.as.text);
    chat_fail(run, CLV_E_UNSUPPORTED, "%s and %s have no order", chat_kind_name(a),
              chat_kind_name(b));
    return 0;
}

bool chat_contains(chat_run *run, chat_value all, chat_value one)
{
    if (all.kind == CHAT_STRING && one.kind == CHAT_STRING) {
        const chat_string a = all.as.text, b = one.as.text;
        return chat_step(run, a.length) &&
               (!b.length || memmem(a.data, a.length, b.data, b.length));
    }
    if (all.kind == CHAT_LIST) {
        for (size_t i = 0; i < all.as.list->count; ++i)
            if (chat_equals(run, all.as.list->items[i], one)) return true;
        return false;
    }
    if (all.kind == CHAT_DICT) return chat_dict_get(all.as.dict, one).kind != CHAT_UNDEFINED;
    if (all.kind == CHAT_UNDEFINED) return false;
    chat_fail(run, CLV_E_UNSUPPORTED, "nothing can be in %s", chat_kind_name(all));
    return false;
}
