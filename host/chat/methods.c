/* SPDX-License-Identifier: Apache-2.0 */
/* Implements Python's methods of texts and dictionaries. */
#include "host/chat/calls.h"

#include "base/alloc.h"
#include "base/unicode.h"

#include <string.h>

/* ---- methods ------------------------------------------------------------------------------------- */

/* Splits at white space, `most` times; what follows the last split keeps the white space at its end. */
static chat_value split_at_spaces(chat_run *run, chat_string text, int64_t most)
{
    const chat_value list = chat_list_new(run);
    for (size_t at = 0; at < text.length && !run->status;) {
        uint32_t c;
        if (!most) {
            const chat_string rest = chat_part(text, at, text.length);
            const chat_string last = chat_strip(run, rest, chat_undefined, true, false);
            if (last.length) chat_list_add(run, list, chat_string_of(last));
            break;
        }
        const size_t start = at;
        while (at < text.length) {
            const size_t step = chat_character_at(text, at, &c);
            if (clv_char_is_space(c)) break;
            at += step;
        }
        if (at > start) {
            chat_list_add(run, list, chat_string_of(chat_part(text, start, at)));
            --most;
        }
        if (at < text.length) at += chat_character_at(text, at, &c);
    }
    return list;
}

static chat_value split(chat_run *run, chat_string text, const chat_arguments *a)
{
    const chat_value by = chat_argument(a, 0, "sep"), limit = chat_argument(a, 1, "maxsplit");
    if (!chat_step(run, text.length)) return chat_undefined;
    int64_t most = limit.kind == CHAT_INT && limit.as.whole >= 0 ? limit.as.whole : INT64_MAX;
    if (by.kind != CHAT_STRING) return split_at_spaces(run, text, most);
    if (!by.as.text.length) return chat_fail(run, CLV_E_ARGUMENT, "a split at an empty text");
    const chat_value list = chat_list_new(run);
    size_t kept = 0;
    for (size_t at = chat_find(text, 0, by.as.text); at < text.length && most && !run->status;
         --most) {
        chat_list_add(run, list, chat_string_of(chat_part(text, kept, at)));
        kept = at + by.as.text.length;
        at = chat_find(text, kept, by.as.text);
    }
    chat_list_add(run, list, chat_string_of(chat_part(text, kept, text.length)));
    return list;
}

/* Returns whether a text begins (with `end`: ends) with `part`, or with one of its items if `part` is a list. */
static chat_value has_end(chat_run *run, chat_string text, chat_value part, bool end)
{
    if (part.kind == CHAT_LIST) {
        bool any = false;
        for (size_t i = 0; i < part.as.list->count && !any; ++i)
            any = chat_truth(has_end(run, text, part.as.list->items[i], end));
        return chat_bool(any);
    }
    if (part.kind != CHAT_STRING)
        return chat_fail(run, CLV_E_UNSUPPORTED, "a text that begins with %s",
                         chat_kind_name(part));
    const chat_string p = part.as.text;
    return chat_bool(p.length <= text.length &&
                     (!p.length || memcmp(text.data + (end ? text.length - p.length : 0), p.data,
                                          p.length) == 0));
}

static chat_value join_list(chat_run *run, chat_string between, chat_value list)
{
    chat_arguments a = { .values = { chat_string_of(between) }, .count = 1 };
    return chat_list_join(run, list, &a);
}

/* Implements Python's format with "{}", "{0}" and "{name}"; format specifications like {:>8} are not supported. */
static chat_value format(chat_run *run, chat_string text, const chat_arguments *a)
{
    chat_out out = { 0 };
    size_t next = 0, kept = 0;
    for (size_t at = 0; at < text.length && !run->status; ++at) {
        const char c = text.data[at];
        if (c != '{' && c != '}') continue;
        chat_put(run, &out, chat_part(text, kept, at));
        kept = at + 1;
        if (kept < text.length && text.data[kept] == c) { /* a doubled brace */
            ++at;
            continue;
        }
        char name[40] = { 0 };
        const char *end = c == '{' ? memchr(text.data + kept, '}', text.length - kept) : NULL;
        const size_t length = end ? (size_t)(end - text.data) - kept : sizeof name;
        if (length < sizeof name) memcpy(name, text.data + kept, length);
        if (length >= sizeof name || strpbrk(name, ":!.["))
            return chat_fail(run, CLV_E_UNSUPPORTED, "format with more than names in braces");
        const bool place = *name >= '0' && *name <= '9';
        const chat_value v = *name && !place
                                 ? chat_argument(a, SIZE_MAX, name)
                                 : chat_argument(a, *name ? (size_t)(*name - '0') : next++, NULL);
        if (v.kind == CHAT_UNDEFINED || (place && name[1]))
            return chat_fail(run, CLV_E_ARGUMENT, "format: no argument \"%s\"", name);
        chat_put(run, &out, chat_written(run, v));
        at = kept + length;
        kept = at + 1;
    }
    chat_put(run, &out, chat_part(text, kept, text.length));
    return chat_string_of(chat_put_end(&out));
}

static chat_value text_method(chat_run *run, chat_string text, const char *name,
                              const chat_arguments *a)
{
    const chat_value first = chat_argument(a, 0, NULL), second = chat_argument(a, 1, NULL);
    if (strcmp(name, "strip") == 0) return chat_string_of(chat_strip(run, text, first, true, true));
    if (strcmp(name, "lstrip") == 0)
        return chat_string_of(chat_strip(run, text, first, true, false));
    if (strcmp(name, "rstrip") == 0)
        return chat_string_of(chat_strip(run, text, first, false, true));
    if (strcmp(name, "split") == 0) return split(run, text, a);
    if (strcmp(name, "format") == 0) return format(run, text, a);
    if (strcmp(name, "startswith") == 0) return has_end(run, text, first, false);
    if (strcmp(name, "endswith") == 0) return has_end(run, text, first, true);
    if (strcmp(name, "upper") == 0) return chat_string_of(chat_case(run, text, 'u'));
    if (strcmp(name, "lower") == 0) return chat_string_of(chat_case(run, text, 'l'));
    if (strcmp(name, "title") == 0) return chat_string_of(chat_case(run, text, 't'));
    if (strcmp(name, "capitalize") == 0) return chat_string_of(chat_case(run, text, 'c'));
    if (strcmp(name, "join") == 0) return join_list(run, text, first);
    if (first.kind == CHAT_STRING && strcmp(name, "find") == 0) {
        const size_t at = first.as.text.length ? chat_find(text, 0, first.as.text) : 0;
        const bool none = at == text.length && first.as.text.length;
        return chat_int(none ? -1 : (int64_t)chat_characters(chat_part(text, 0, at)));
    }
    if (first.kind == CHAT_STRING && second.kind == CHAT_STRING && strcmp(name, "replace") == 0) {
        const chat_value most = chat_argument(a, 2, "count");
        return chat_string_of(chat_replace(run, text, first.as.text, second.as.text,
                                           most.kind == CHAT_INT ? most.as.whole : -1));
    }
    return chat_fail(run, CLV_E_UNSUPPORTED, "the method \"%.40s\" of a text", name);
}

static chat_value dict_method(chat_run *run, chat_value dict, const char *name,
                              const chat_arguments *a)
{
    if (strcmp(name, "get") == 0) {
        const chat_value found = chat_dict_get(dict.as.dict, chat_argument(a, 0, "key"));
        const chat_value fallback = chat_argument(a, 1, "default");
        if (found.kind != CHAT_UNDEFINED) return found;
        return fallback.kind == CHAT_UNDEFINED ? chat_none : fallback;
    }
    const bool keys = strcmp(name, "keys") == 0, values = strcmp(name, "values") == 0;
    if (keys || values || strcmp(name, "items") == 0) {
        const chat_value list = chat_list_new(run);
        for (size_t i = 0; i < dict.as.dict->count && !run->status; ++i) {
            const chat_pair *p = &dict.as.dict->pairs[i];
            chat_value item = keys ? p->key : p->value;
            if (!keys && !values) {
                item = chat_list_new(run);
                chat_list_add(run, item, p->key);
                chat_list_add(run, item, p->value);
            }
            chat_list_add(run, list, item);
        }
        return list;
    }
    return chat_fail(run, CLV_E_UNSUPPORTED, "the method \"%.40s\" of a dictionary", name);
}

chat_value chat_method(chat_run *run, chat_value object, const char *name, const chat_arguments *a)
{
    if (object.kind == CHAT_STRING) return text_method(run, object.as.text, name, a);
    if (object.kind == CHAT_DICT) return dict_method(run, object, name, a);
    return chat_fail(run, CLV_E_UNSUPPORTED, "the method \"%.40s\" of %s", name,
                     chat_kind_name(object));
}
