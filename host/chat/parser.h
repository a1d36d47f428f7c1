/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the two halves of the parser share: its position in the tokens, and functions that test the next
 * token. */
#ifndef CLEAVE_HOST_CHAT_PARSER_H
#define CLEAVE_HOST_CHAT_PARSER_H

#include "host/chat/template.h"

typedef struct chat_parser {
    chat_run *run;
    const chat_token *t; /* the next token */
} chat_parser;

chat_node *chat_node_make(chat_parser *parser, chat_node_kind kind);
bool chat_parse_failed(const chat_parser *parser);
/* Fails with the message "found X, expected Y"; returns NULL. */
chat_node *chat_parse_fail(chat_parser *parser, const char *expected);
/* chat_parse_enter counts a level of nesting and returns false beyond the limit, since the parser recurses on the
 * machine's stack. chat_parse_leave ends the level. */
bool chat_parse_enter(chat_parser *parser);
void chat_parse_leave(chat_parser *parser);

bool chat_parse_token_is(const chat_token *token, chat_token_kind kind, const char *text);
bool chat_parse_at_sign(const chat_parser *parser, const char *text);
bool chat_parse_at_name(const chat_parser *parser, const char *text);
bool chat_parse_take_sign(chat_parser *parser, const char *text);
bool chat_parse_take_name(chat_parser *parser, const char *text);
bool chat_parse_need_sign(chat_parser *parser, const char *text);
const char *chat_parse_need_name(chat_parser *parser);
/* Returns a NUL-terminated copy of a token's text. */
const char *chat_parse_text_of(chat_parser *parser, const chat_token *token);

chat_node *chat_parse_expression(chat_parser *parser);
/* Parses operands that are joined by "and", and also by "or" if `or` is set, but not "a if b else c". */
chat_node *chat_parse_condition(chat_parser *parser, bool or);
/* Parses an operand with its members, indexes and calls, such as a.b[c](d), but without filters. */
chat_node *chat_parse_member(chat_parser *parser);
/* Parses a filter after "|"; `object` is the filter's input. */
chat_node *chat_parse_filter(chat_parser *parser, chat_node *object);
/* Parses the rest of a tuple, such as ", b, c", after its first item `first`; `close` (may be NULL) ends it. */
chat_node *chat_parse_tuple(chat_parser *parser, chat_node *first, const char *close);

#endif
