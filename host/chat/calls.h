/* SPDX-License-Identifier: Apache-2.0 */
/* Texts by characters and lists, which signs, filters and methods share. */
#ifndef CLEAVE_HOST_CHAT_CALLS_H
#define CLEAVE_HOST_CHAT_CALLS_H

#include "host/chat/template.h"

/* Bytes of the character at `at`; a byte that is none is one. */
size_t chat_character_at(chat_string text, size_t at, uint32_t *character);
size_t chat_characters(chat_string text);
/* Where `part` begins in text[at ...); the length of the text: nowhere. */
size_t chat_find(chat_string text, size_t at, chat_string part);
/* `count` characters from number `at` on. */
chat_string chat_character(chat_string text, size_t at, size_t count);
/* Without these characters at its ends; undefined: without white space. */
chat_string chat_strip(chat_run *run, chat_string text, chat_value characters, bool left,
                       bool right);
chat_string chat_replace(chat_run *run, chat_string text, chat_string from, chat_string to,
                         int64_t most);
/* In another case: 'u', 'l', 't' (every word's first letter) or 'c' (the text's). */
chat_string chat_case(chat_run *run, chat_string text, char to);

chat_value chat_list_of(chat_run *run, chat_value value);
/* Of an item: the member of that name, or the item itself where there is no name. */
chat_value chat_attribute_of(chat_run *run, chat_value item, chat_value name);
/* The filter of that name: a text between items, then the attribute that is taken. */
chat_value chat_list_join(chat_run *run, chat_value list, const chat_arguments *arguments);

#endif
