/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions on lists and on texts (character by character) that operators, filters and methods share. */
#ifndef CLEAVE_HOST_CHAT_CALLS_H
#define CLEAVE_HOST_CHAT_CALLS_H

#include "host/chat/template.h"

/* Returns the length in bytes of the character at text[at]; an invalid byte counts as a character of one byte.
 * *character is its code point. */
size_t chat_character_at(chat_string text, size_t at, uint32_t *character);
size_t chat_characters(chat_string text);
/* Returns where `part` begins in the text at or after position `at`; the text's length if it does not occur. */
size_t chat_find(chat_string text, size_t at, chat_string part);
/* Returns the `count` characters of the text that begin at character number `at`. */
chat_string chat_character(chat_string text, size_t at, size_t count);
/* Returns the text without the given characters at the chosen ends; if `characters` is undefined, without white
 * space. */
chat_string chat_strip(chat_run *run, chat_string text, chat_value characters, bool left,
                       bool right);
chat_string chat_replace(chat_run *run, chat_string text, chat_string from, chat_string to,
                         int64_t most);
/* Returns the text in another case. `to` is 'u' for upper, 'l' for lower, 'c' for an upper first letter of the text,
 * 't' for upper letters where Python's method title has them (behind all that is no letter), 'w' for upper letters
 * where Jinja's filter title has them (behind white space, dashes and opening brackets). */
chat_string chat_case(chat_run *run, chat_string text, char to);

chat_value chat_list_of(chat_run *run, chat_value value);
/* Returns the item's member called `name`, which may be a path such as "function.name"; the item itself if `name` is
 * not a text. */
chat_value chat_attribute_of(chat_run *run, chat_value item, chat_value name);
/* Applies the filter "join". Its arguments are the text between the items, then the attribute that replaces each
 * item. */
chat_value chat_list_join(chat_run *run, chat_value list, const chat_arguments *arguments);

#endif
