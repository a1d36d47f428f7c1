/* SPDX-License-Identifier: Apache-2.0 */
/* Converts values to lists, and lists to texts. */
#include "host/chat/calls.h"

chat_value chat_list_of(chat_run *run, chat_value v)
{
    const chat_value list = chat_list_new(run);
    if (v.kind == CHAT_LIST)
        for (size_t i = 0; i < v.as.list->count; ++i)
            chat_list_add(run, list, v.as.list->items[i]);
    else if (v.kind == CHAT_DICT)
        for (size_t i = 0; i < v.as.dict->count; ++i)
            chat_list_add(run, list, v.as.dict->pairs[i].key);
    else if (v.kind == CHAT_STRING)
        for (chat_string rest = v.as.text; rest.length && chat_step(run, 0);) {
            const chat_string one = chat_character(rest, 0, 1);
            chat_list_add(run, list, chat_string_of(one));
            rest = chat_part(rest, one.length, rest.length);
        }
    else if (v.kind != CHAT_UNDEFINED)
        return chat_fail(run, CLV_E_UNSUPPORTED, "the filter \"list\" of %s", chat_kind_name(v));
    return list;
}

/* Returns a part of an attribute's name as a key: a whole number if it consists of digits. */
static chat_value key_of(chat_string part)
{
    int64_t whole = 0;
    size_t i = 0;
    for (; i < part.length && i < 9 && part.data[i] >= '0' && part.data[i] <= '9'; ++i)
        whole = 10 * whole + (part.data[i] - '0');
    return i && i == part.length ? chat_int(whole) : chat_string_of(part);
}

chat_value chat_attribute_of(chat_run *run, chat_value item, chat_value name)
{
    if (name.kind != CHAT_STRING) return item;
    chat_string rest = name.as.text;
    for (bool more = true; more && !run->status;) {
        const size_t dot = chat_find(rest, 0, (chat_string){ ".", NULL, 1 });
        const chat_string part = chat_part(rest, 0, dot);
        more = dot < rest.length;
        rest = chat_part(rest, dot + 1, rest.length);
        item = chat_member(run, item, key_of(part));
    }
    return item;
}

chat_value chat_list_join(chat_run *run, chat_value v, const chat_arguments *a)
{
    const chat_value between = chat_argument(a, 0, "d"), name = chat_argument(a, 1, "attribute");
    const chat_value list = chat_list_of(run, v);
    chat_out out = { 0 };
    for (size_t i = 0; !run->status && i < list.as.list->count; ++i) {
        if (i && between.kind == CHAT_STRING) chat_put(run, &out, between.as.text);
        chat_put(run, &out,
                 chat_written(run, chat_attribute_of(run, list.as.list->items[i], name)));
    }
    return chat_string_of(chat_put_end(&out));
}
