/* SPDX-License-Identifier: Apache-2.0 */
/* Implements filters, the names after a bar in a template. */
#include "host/chat/calls.h"

#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static chat_value wrong(chat_run *run, const char *filter, chat_value v)
{
    return chat_fail(run, CLV_E_UNSUPPORTED, "the filter \"%.40s\" of %s", filter,
                     chat_kind_name(v));
}

static chat_value length_of(chat_run *run, chat_value v)
{
    if (v.kind == CHAT_STRING) return chat_int((int64_t)chat_characters(v.as.text));
    if (v.kind == CHAT_LIST) return chat_int((int64_t)v.as.list->count);
    if (v.kind == CHAT_DICT) return chat_int((int64_t)v.as.dict->count);
    if (v.kind == CHAT_UNDEFINED) return chat_int(0);
    return wrong(run, "length", v);
}

static chat_value number_of(chat_run *run, chat_value v, const chat_arguments *a, bool whole)
{
    const chat_value other = chat_argument(a, 0, "default");
    double number = 0;
    bool known = chat_is_number(v);
    if (whole && v.kind == CHAT_INT) return v; /* a float64 would round it */
    if (known) {
        number = chat_number(v);
    } else if (v.kind == CHAT_STRING) {
        char digits[64] = { 0 };
        const chat_string t = chat_strip(run, v.as.text, chat_undefined, true, true);
        memcpy(digits, t.data, CLV_MIN(t.length, sizeof digits - 1));
        int64_t exact;
        if (whole && t.length < sizeof digits && clv_parse_i64(digits, &exact))
            return chat_int(exact);
        known = t.length < sizeof digits && clv_parse_double(digits, &number);
    }
    known = known && !(whole && isnan(number));
    if (!known && other.kind != CHAT_UNDEFINED) return other;
    if (!known) number = 0;
    if (!whole) return chat_float(number);
    if (!(number >= -0x1p63 && number < 0x1p63))
        return chat_fail(run, CLV_E_SHAPE, "a number beyond 64 bits");
    return chat_int((int64_t)number);
}

static chat_value absolute(chat_run *run, chat_value v)
{
    if (v.kind == CHAT_FLOAT) return chat_float(fabs(v.as.number));
    const int64_t whole = v.kind == CHAT_BOOL ? v.as.truth : v.as.whole;
    if (whole == INT64_MIN) return chat_fail(run, CLV_E_SHAPE, "a number beyond 64 bits");
    return chat_int(whole < 0 ? -whole : whole);
}

static chat_value pairs_of(chat_run *run, chat_value v)
{
    const chat_arguments none = { .count = 0 };
    if (v.kind == CHAT_UNDEFINED) return chat_list_new(run);
    return v.kind == CHAT_DICT ? chat_method(run, v, "items", &none) : wrong(run, "items", v);
}

/* ---- order --------------------------------------------------------------------------------------- */

/* Returns the value by which an item is sorted: its attribute `name`, or the item itself. Texts are compared without
 * regard to case unless `exact`. */
static chat_value sort_key(chat_run *run, chat_value item, chat_value name, bool exact)
{
    const chat_value v = chat_attribute_of(run, item, name);
    return v.kind == CHAT_STRING && !exact ? chat_string_of(chat_case(run, v.as.text, 'l')) : v;
}

/* Sorts a list by insertion, which is stable and fast enough for short lists; `down` reverses the order. */
static void sort(chat_run *run, chat_list *list, chat_value name, bool exact, bool down)
{
    for (size_t i = 1; i < list->count; ++i) {
        const chat_value item = list->items[i], key = sort_key(run, item, name, exact);
        size_t at = i;
        for (; at && chat_step(run, 64); --at) {
            const chat_value before = sort_key(run, list->items[at - 1], name, exact);
            const int order = chat_compare(run, before, key);
            if (down ? order >= 0 : order <= 0) break;
            list->items[at] = list->items[at - 1];
        }
        list->items[at] = item;
        if (run->status) return;
    }
}

static chat_value sorted(chat_run *run, chat_value v, const chat_arguments *a)
{
    const chat_value list = chat_list_of(run, v);
    if (run->status) return list;
    sort(run, list.as.list, chat_argument(a, 2, "attribute"),
         chat_truth(chat_argument(a, 1, "case_sensitive")),
         chat_truth(chat_argument(a, 0, "reverse")));
    return list;
}

static chat_value dictsort(chat_run *run, chat_value v, const chat_arguments *a)
{
    const chat_value list = pairs_of(run, v);
    if (run->status) return list;
    const bool by_value = chat_is_text(chat_argument(a, 1, "by"), "value");
    const bool exact = chat_truth(chat_argument(a, 0, "case_sensitive"));
    const bool down = chat_truth(chat_argument(a, 2, "reverse"));
    /* replaces each pair by a list of its sort key and the pair */
    for (size_t i = 0; i < list.as.list->count; ++i) {
        chat_value *pair = list.as.list->items[i].as.list->items, key = pair[by_value];
        chat_value both = chat_list_new(run);
        chat_list_add(run, both, key);
        chat_list_add(run, both, list.as.list->items[i]);
        list.as.list->items[i] = both;
    }
    for (size_t i = 1; i < list.as.list->count && !run->status; ++i)
        for (size_t at = i; at && chat_step(run, 64); --at) {
            chat_value *x = &list.as.list->items[at - 1];
            const chat_value p = sort_key(run, x[0].as.list->items[0], chat_undefined, exact);
            const chat_value q = sort_key(run, x[1].as.list->items[0], chat_undefined, exact);
            const int order = chat_compare(run, p, q);
            if (down ? order >= 0 : order <= 0) break;
            const chat_value hold = x[0];
            x[0] = x[1], x[1] = hold;
        }
    for (size_t i = 0; i < list.as.list->count && !run->status; ++i)
        list.as.list->items[i] = list.as.list->items[i].as.list->items[1];
    return list;
}

/* ---- of every item ------------------------------------------------------------------------------- */

/* Returns the arguments from number `first` on. */
static chat_arguments rest_of(const chat_arguments *a, size_t first)
{
    chat_arguments rest = { .count = 0 };
    for (size_t i = first; i < a->count; ++i) {
        rest.names[rest.count] = a->names[i];
        rest.values[rest.count++] = a->values[i];
    }
    return rest;
}

static const char *name_of(chat_run *run, chat_value v)
{
    char *copy = v.kind == CHAT_STRING ? chat_take(run, v.as.text.length + 1) : NULL;
    if (!copy) return "";
    memcpy(copy, v.as.text.data, v.as.text.length);
    copy[v.as.text.length] = '\0';
    return copy;
}

/* Returns a value as a list, for filters that treat none as an empty list. */
static chat_value list_or_none(chat_run *run, chat_value v)
{
    return chat_list_of(run, v.kind == CHAT_NONE ? chat_undefined : v);
}

static chat_value map(chat_run *run, chat_value v, const chat_arguments *a)
{
    const chat_value source = list_or_none(run, v), out = chat_list_new(run);
    const chat_value name = chat_argument(a, SIZE_MAX, "attribute");
    const chat_value fallback = chat_argument(a, SIZE_MAX, "default");
    const char *filter = name_of(run, chat_argument(a, 0, NULL));
    const chat_arguments rest = rest_of(a, 1);
    for (size_t i = 0; !run->status && i < source.as.list->count; ++i) {
        chat_value item = source.as.list->items[i];
        item = name.kind == CHAT_STRING ? chat_attribute_of(run, item, name)
                                        : chat_apply(run, filter, item, &rest);
        chat_list_add(run, out, item.kind == CHAT_UNDEFINED ? fallback : item);
    }
    return out;
}

/* Returns the items that pass a test, or without `keeps` the items that fail it. With `by_attribute`, an attribute of
 * each item is tested instead of the item. */
static chat_value choose(chat_run *run, chat_value v, const chat_arguments *a, bool by_attribute,
                         bool keeps)
{
    const chat_value source = list_or_none(run, v), out = chat_list_new(run);
    const chat_value name = by_attribute ? chat_argument(a, 0, NULL) : chat_undefined;
    const size_t first = by_attribute ? 1 : 0;
    const chat_arguments rest = rest_of(a, first + 1);
    const char *test = a->count > first ? name_of(run, a->values[first]) : NULL;
    for (size_t i = 0; !run->status && i < source.as.list->count; ++i) {
        const chat_value item = chat_attribute_of(run, source.as.list->items[i], name);
        const bool passes = test ? chat_test(run, test, item, &rest) : chat_truth(item);
        if (passes == keeps) chat_list_add(run, out, source.as.list->items[i]);
    }
    return out;
}

/* Returns the first of all items that are equal, or whose attribute is; texts are compared as in sort_key. */
static chat_value unique(chat_run *run, chat_value v, const chat_arguments *a)
{
    const chat_value source = chat_list_of(run, v), out = chat_list_new(run);
    const chat_value keys = chat_list_new(run), name = chat_argument(a, 1, "attribute");
    const bool exact = chat_truth(chat_argument(a, 0, "case_sensitive"));
    for (size_t i = 0; !run->status && i < source.as.list->count; ++i) {
        const chat_value key = sort_key(run, source.as.list->items[i], name, exact);
        if (chat_contains(run, keys, key)) continue;
        chat_list_add(run, keys, key);
        chat_list_add(run, out, source.as.list->items[i]);
    }
    return out;
}

static chat_value reversed(chat_run *run, chat_value v)
{
    return chat_slice(run, v.kind == CHAT_STRING ? v : chat_list_of(run, v), chat_none, chat_none,
                      chat_int(-1));
}

/* ---- texts --------------------------------------------------------------------------------------- */

/* Appends `count` spaces. */
static void put_spaces(chat_run *run, chat_out *out, int64_t count)
{
    static const char spaces[] = "                                                                ";
    const int64_t most = sizeof spaces - 1;
    for (; count > 0 && !run->status; count -= most)
        chat_put(run, out,
                 chat_part((chat_string){ spaces, NULL, (size_t)most }, 0,
                           (size_t)CLV_MIN(count, most)));
}

static chat_value indent(chat_run *run, chat_string text, const chat_arguments *a)
{
    const chat_value width = chat_argument(a, 0, "width");
    const bool first = chat_truth(chat_argument(a, 1, "first"));
    const bool blank = chat_truth(chat_argument(a, 2, "blank"));
    const int64_t spaces = width.kind == CHAT_INT ? CLV_MAX(width.as.whole, 0) : 4;
    chat_out out = { 0 };
    bool begins = first;
    for (size_t at = 0; at <= text.length && !run->status;) {
        const char *end = at < text.length ? memchr(text.data + at, '\n', text.length - at) : NULL;
        const size_t to = end ? (size_t)(end - text.data) : text.length;
        if (begins && (blank || to > at || !at)) put_spaces(run, &out, spaces);
        chat_put(run, &out, chat_part(text, at, to + (end != NULL)));
        if (!end) break;
        begins = true;
        at = to + 1;
    }
    return chat_string_of(chat_put_end(&out));
}

static chat_value text_filter(chat_run *run, const char *filter, chat_string text,
                              const chat_arguments *a, bool *known)
{
    const chat_value first = chat_argument(a, 0, NULL), second = chat_argument(a, 1, NULL);
    *known = true;
    if (strcmp(filter, "trim") == 0)
        return chat_string_of(chat_strip(run, text, chat_argument(a, 0, "chars"), true, true));
    if (strcmp(filter, "upper") == 0) return chat_string_of(chat_case(run, text, 'u'));
    if (strcmp(filter, "lower") == 0) return chat_string_of(chat_case(run, text, 'l'));
    if (strcmp(filter, "title") == 0) return chat_string_of(chat_case(run, text, 'w'));
    if (strcmp(filter, "capitalize") == 0) return chat_string_of(chat_case(run, text, 'c'));
    if (strcmp(filter, "indent") == 0) return indent(run, text, a);
    if (strcmp(filter, "replace") == 0 && first.kind == CHAT_STRING && second.kind == CHAT_STRING)
        return chat_string_of(chat_replace(run, text, first.as.text, second.as.text, -1));
    *known = false;
    return chat_undefined;
}

/* ---- all of them --------------------------------------------------------------------------------- */

static chat_value end_of(chat_run *run, chat_value v, bool last)
{
    const chat_value list = chat_list_of(run, v);
    const size_t count = run->status ? 0 : list.as.list->count;
    return count ? list.as.list->items[last ? count - 1 : 0] : chat_undefined;
}

static chat_value fallback(chat_value v, const chat_arguments *a)
{
    const chat_value other = chat_argument(a, 0, "default_value");
    const bool falsy = chat_truth(chat_argument(a, 1, "boolean")) && !chat_truth(v);
    if (v.kind != CHAT_UNDEFINED && !falsy) return v;
    return other.kind == CHAT_UNDEFINED ? chat_text("") : other;
}

static chat_value json(chat_run *run, chat_value v, const chat_arguments *a)
{
    /* transformers' tojson has more arguments, which would change the text */
    const chat_value width = chat_argument(a, 0, "indent");
    static const char *const others[] = { "ensure_ascii", "separators", "sort_keys" };
    for (size_t i = 0; i < CLV_LEN(others); ++i)
        if (chat_truth(chat_argument(a, SIZE_MAX, others[i])))
            return chat_fail(run, CLV_E_UNSUPPORTED, "the filter \"tojson\" with %s", others[i]);
    const int spaces = width.kind == CHAT_INT && width.as.whole >= 0 && width.as.whole < 32
                           ? (int)width.as.whole
                           : -1;
    return v.kind == CHAT_UNDEFINED ? wrong(run, "tojson", v)
                                    : chat_string_of(chat_json(run, v, spaces));
}

chat_value chat_apply(chat_run *run, const char *filter, chat_value v, const chat_arguments *a)
{
    bool known = false;
    const size_t bytes = v.kind == CHAT_STRING ? v.as.text.length : 0;
    if (!chat_step(run, bytes)) return chat_undefined;
    if (strcmp(filter, "default") == 0 || strcmp(filter, "d") == 0) return fallback(v, a);
    if (strcmp(filter, "length") == 0 || strcmp(filter, "count") == 0) return length_of(run, v);
    if (strcmp(filter, "tojson") == 0) return json(run, v, a);
    if (strcmp(filter, "string") == 0) return chat_string_of(chat_written(run, v));
    if (strcmp(filter, "safe") == 0) return v;
    if (strcmp(filter, "list") == 0) return chat_list_of(run, v);
    if (strcmp(filter, "join") == 0) return chat_list_join(run, v, a);
    if (strcmp(filter, "first") == 0) return end_of(run, v, false);
    if (strcmp(filter, "last") == 0) return end_of(run, v, true);
    if (strcmp(filter, "int") == 0) return number_of(run, v, a, true);
    if (strcmp(filter, "float") == 0) return number_of(run, v, a, false);
    if (strcmp(filter, "abs") == 0 && chat_is_number(v)) return absolute(run, v);
    if (strcmp(filter, "items") == 0) return pairs_of(run, v);
    if (strcmp(filter, "dictsort") == 0) return dictsort(run, v, a);
    if (strcmp(filter, "sort") == 0) return sorted(run, v, a);
    if (strcmp(filter, "map") == 0) return map(run, v, a);
    if (strcmp(filter, "select") == 0) return choose(run, v, a, false, true);
    if (strcmp(filter, "reject") == 0) return choose(run, v, a, false, false);
    if (strcmp(filter, "selectattr") == 0) return choose(run, v, a, true, true);
    if (strcmp(filter, "rejectattr") == 0) return choose(run, v, a, true, false);
    if (strcmp(filter, "unique") == 0) return unique(run, v, a);
    if (strcmp(filter, "reverse") == 0) return reversed(run, v);
    /* the remaining filters work on texts; any other value is first written as a text */
    const chat_value out = text_filter(run, filter, chat_written(run, v), a, &known);
    return known || run->status ? out : wrong(run, filter, v);
}
