/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the statements of Jinja's grammar into a tree, by recursive descent. */
#include "host/chat/parser.h"

#include "base/alloc.h"

#include <string.h>

static chat_node *statements(chat_parser *p);

/* ---- statements ---------------------------------------------------------------------------------- */

static void end_tag(chat_parser *p)
{
    if (chat_parse_failed(p)) return;
    if (p->t->kind == CHAT_T_END)
        ++p->t;
    else
        chat_parse_fail(p, "the end of the tag");
}

/* Returns whether the next tag is {% name ... %}. */
static bool at_tag(const chat_parser *p, const char *name)
{
    return p->t->kind == CHAT_T_BEGIN && chat_parse_token_is(p->t + 1, CHAT_T_NAME, name);
}

/* Moves past {% name %}, the required end of a statement, or fails. */
static void need_tag(chat_parser *p, const char *name)
{
    if (chat_parse_failed(p)) return;
    if (!at_tag(p, name)) {
        chat_parse_fail(p, name);
        return;
    }
    p->t += 2;
    end_tag(p);
}

static chat_node *names(chat_parser *p)
{
    chat_node *first = NULL, **end = &first;
    const bool bracketed = chat_parse_take_sign(p, "(");
    do {
        chat_node *n = chat_node_make(p, CHAT_N_NAME);
        if (!n) return NULL;
        n->name = chat_parse_need_name(p);
        *end = n, end = &n->next;
    } while (!chat_parse_failed(p) && chat_parse_take_sign(p, ","));
    if (bracketed) chat_parse_need_sign(p, ")");
    return first;
}

static chat_node *if_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_IF);
    if (!n) return NULL;
    n->a = chat_parse_expression(p);
    end_tag(p);
    n->body = statements(p);
    if (chat_parse_failed(p)) return NULL;
    if (at_tag(p, "elif")) {
        p->t += 2;
        if (!chat_parse_enter(p)) return NULL;
        n->other = if_statement(p); /* moves past {% endif %} */
        chat_parse_leave(p);
        return n;
    }
    if (at_tag(p, "else")) {
        need_tag(p, "else");
        n->other = statements(p);
    }
    need_tag(p, "endif");
    return n;
}

static chat_node *for_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_FOR);
    if (!n) return NULL;
    n->names = names(p);
    if (chat_parse_failed(p) || !chat_parse_take_name(p, "in"))
        return chat_parse_failed(p) ? NULL : chat_parse_fail(p, "in");
    n->a = chat_parse_condition(p, true); /* an "if" that follows is the loop's condition */
    if (!chat_parse_failed(p) && chat_parse_take_name(p, "if"))
        n->b = chat_parse_condition(p, true);
    if (!chat_parse_failed(p) && chat_parse_at_name(p, "recursive")) {
        p->run->line = p->t->line;
        chat_fail(p->run, CLV_E_UNSUPPORTED, "loops that call themselves (recursive)");
    }
    end_tag(p);
    n->body = statements(p);
    if (!chat_parse_failed(p) && at_tag(p, "else")) {
        need_tag(p, "else");
        n->other = statements(p);
    }
    need_tag(p, "endfor");
    return n;
}

/* Parses filters of a statement, whose input is not part of the expression: {% filter trim|upper %}, {% set x | trim
 * %}. */
static chat_node *filters_of_body(chat_parser *p, bool first)
{
    chat_node *n = chat_node_make(p, CHAT_N_WAITING);
    if (n && first) n = chat_parse_filter(p, n);
    while (n && !chat_parse_failed(p) && chat_parse_take_sign(p, "|"))
        n = chat_parse_filter(p, n);
    return n;
}

static chat_node *set_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_SET);
    if (!n) return NULL;
    if (chat_parse_token_is(p->t + 1, CHAT_T_SIGN, ".")) {
        n->a = chat_parse_member(p);
        if (n->a && n->a->kind != CHAT_N_MEMBER) return chat_parse_fail(p, "a member");
    } else {
        n->names = names(p);
    }
    if (chat_parse_failed(p)) return NULL;
    if (chat_parse_take_sign(p, "=")) {
        n->b = chat_parse_expression(p);
        if (!chat_parse_failed(p) && chat_parse_at_sign(p, ","))
            n->b = chat_parse_tuple(p, n->b, NULL);
        end_tag(p);
        return n;
    }
    n->kind = CHAT_N_SET_TEXT;
    n->b = filters_of_body(p, false);
    end_tag(p);
    n->body = statements(p);
    need_tag(p, "endset");
    return n;
}

static chat_node *macro_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_MACRO);
    if (!n) return NULL;
    n->name = chat_parse_need_name(p);
    chat_node **end = &n->arguments;
    chat_parse_need_sign(p, "(");
    for (size_t count = 0; !chat_parse_failed(p) && !chat_parse_at_sign(p, ")"); ++count) {
        if (count && !chat_parse_need_sign(p, ",")) break;
        if (count == CHAT_ARGUMENTS_MOST) return chat_parse_fail(p, "fewer arguments");
        chat_node *argument = chat_node_make(p, CHAT_N_ARGUMENT);
        if (!argument) return NULL;
        argument->name = chat_parse_need_name(p);
        if (!chat_parse_failed(p) && chat_parse_take_sign(p, "="))
            argument->a = chat_parse_expression(p);
        *end = argument, end = &argument->next;
    }
    chat_parse_need_sign(p, ")");
    end_tag(p);
    n->body = statements(p);
    need_tag(p, "endmacro");
    return n;
}

static chat_node *filter_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_FILTER);
    if (!n) return NULL;
    n->b = filters_of_body(p, true);
    end_tag(p);
    n->body = statements(p);
    need_tag(p, "endfilter");
    return n;
}

/* Parses {% generation %}, which marks the text on which a model is trained. It has no other effect than its body. */
static chat_node *group_statement(chat_parser *p)
{
    chat_node *n = chat_node_make(p, CHAT_N_GROUP);
    if (!n) return NULL;
    end_tag(p);
    n->body = statements(p);
    need_tag(p, "endgeneration");
    return n;
}

static chat_node *simple_statement(chat_parser *p, chat_node_kind kind)
{
    chat_node *n = chat_node_make(p, kind);
    end_tag(p);
    return n;
}

/* Parses a statement after "{%". */
static chat_node *tag(chat_parser *p)
{
    if (chat_parse_take_name(p, "if")) return if_statement(p);
    if (chat_parse_take_name(p, "for")) return for_statement(p);
    if (chat_parse_take_name(p, "set")) return set_statement(p);
    if (chat_parse_take_name(p, "macro")) return macro_statement(p);
    if (chat_parse_take_name(p, "filter")) return filter_statement(p);
    if (chat_parse_take_name(p, "generation")) return group_statement(p);
    if (chat_parse_take_name(p, "break")) return simple_statement(p, CHAT_N_BREAK);
    if (chat_parse_take_name(p, "continue")) return simple_statement(p, CHAT_N_CONTINUE);
    p->run->line = p->t->line;
    chat_fail(p->run, CLV_E_UNSUPPORTED, "the statement \"%.*s\"",
              (int)CLV_MIN(p->t->length, (size_t)40), p->t->start);
    return NULL;
}

static bool at_end(const chat_parser *p)
{
    static const char *const ends[] = { "else",   "elif",     "endif",     "endfor",
                                        "endset", "endmacro", "endfilter", "endgeneration" };
    if (p->t->kind == CHAT_T_LAST) return true;
    for (size_t i = 0; i < CLV_LEN(ends); ++i)
        if (at_tag(p, ends[i])) return true;
    return false;
}

static chat_node *statement(chat_parser *p)
{
    chat_node *n;
    if (p->t->kind == CHAT_T_TEXT) {
        n = chat_node_make(p, CHAT_N_TEXT);
        if (n) n->value = chat_string_of((chat_string){ p->t->start, NULL, p->t->length });
        ++p->t;
        return n;
    }
    if (p->t->kind == CHAT_T_PRINT) {
        n = chat_node_make(p, CHAT_N_PRINT);
        ++p->t;
        if (n) n->a = chat_parse_expression(p);
        end_tag(p);
        return n;
    }
    ++p->t;
    return tag(p);
}

static chat_node *statements(chat_parser *p)
{
    chat_node *first = NULL, **end = &first;
    if (chat_parse_failed(p) || !chat_parse_enter(p)) return NULL;
    while (!chat_parse_failed(p) && !at_end(p)) {
        chat_node *n = statement(p);
        if (!n) break;
        *end = n, end = &n->next;
    }
    chat_parse_leave(p);
    return first;
}

chat_node *chat_parse(chat_run *run, const chat_token *tokens)
{
    chat_parser p = { run, tokens };
    chat_node *first = statements(&p);
    if (!run->status && p.t->kind != CHAT_T_LAST) chat_parse_fail(&p, "the end of the template");
    return run->status ? NULL : first;
}
