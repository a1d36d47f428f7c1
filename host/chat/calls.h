/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on texts (by character) and lists that operators, filters and methods share. */
#ifndef CLEAVE_HOST_CHAT_CALLS_H
#define CLEAVE_HOST_CHAT_CALLS_H

#include "host/chat/template.h"

/* Returns the bytes of the character at `at`; an invalid byte counts as a character of one byte. */
size_t chat_character_at(chat_string text, size_t at, uint32_t *character);
size_t chat_characters(chat_string text);
/* Returns where `part` begins in text[at ...); the length of the text if it does not occur. */
size_t chat_find(chat_string text, size_t at, chat_string part);
/* Returns `count` characters from character number `at` on. */
chat_string chat_character(chat_string text, size_t at, size_t count);
/* Returns the text without these characters at the chosen ends; if they are undefined, without white space. */
chat_string chat_strip(chat_run *run, chat_string text, chat_value characters, bool left,
                       bool right);
chat_string chat_replace(chat_run *run, chat_string text, chat_string from, chat_string to,
                         int64_t most);
/* Changes the case: 'u' upper, 'l' lower, 't' every word's first letter upper, 'c' the text's first letter. */
chat_string chat_case(chat_run *run, chat_string text, char to);

chat_value chat_list_of(chat_run *run, chat_value value);
/* Returns the item's member of that name, or the item itself if there is no name. */
chat_value chat_attribute_of(chat_run *run, chat_value item, chat_value name);
/* The filter "join"; its arguments are the text between items, then the attribute to take of each item. */
chat_value chat_list_join(chat_run *run, chat_value list, const chat_arguments *arguments);

#endif
