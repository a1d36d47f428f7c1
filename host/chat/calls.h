/* SPDX-License-Identifier: Apache-2.0 */
/* Texts by characters, which signs, filters and methods share. */
#ifndef CLEAVE_HOST_CHAT_CALLS_H
#define CLEAVE_HOST_CHAT_CALLS_H

#include "host/chat/template.h"

size_t chat_characters(chat_string text);
/* `count` characters from number `at` on. */
chat_string chat_character(chat_string text, size_t at, size_t count);
/* Without these characters at its ends; undefined: without white space. */
chat_string chat_strip(chat_run *run, chat_string text, chat_value characters, bool left,
                       bool right);
chat_string chat_replace(chat_run *run, chat_string text, chat_string from, chat_string to,
                         int64_t most);
/* In another case: 'u', 'l', 't' (every word's first letter) or 'c' (the text's). */
chat_string chat_case(chat_run *run, chat_string text, char to);

#endif
