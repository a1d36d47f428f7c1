/* SPDX-License-Identifier: Apache-2.0 */
/* Parses expressions, from the operators that bind least to those that bind most. Also implements the parser's
 * functions on tokens. */
#include "host/chat/parser.h"

#include "base/alloc.h"

#include <string.h>

chat_node *chat_node_make(chat_parser *p, chat_node_kind kind)
{
    chat_node *n = chat_take(p->run, sizeof *n);
    if (!n) return NULL;
    *n = (chat_node){ .kind = kind, .line = p->t->line };
    return n;
}

bool chat_parse_failed(const chat_parser *p)
{
    return p->run->status != CLV_OK;
}

chat_node *chat_parse_fail(chat_parser *p, const char *expected)
{
    p->run->line = p->t->line;
    if (p->t->kind == CHAT_T_LAST)
        chat_fail(p->run, CLV_E_FORMAT, "the template ends where %s was expected", expected);
    else
        chat_fail(p->run, CLV_E_FORMAT, "found \"%.*s\", expected %s",
                  (int)CLV_MIN(p->t->length, (size_t)40), p->t->start, expected);
    return NULL;
}

bool chat_parse_enter(chat_parser *p)
{
    if (++p->run->depth <= CHAT_DEPTH_MOST) return true;
    p->run->line = p->t->line;
    chat_fail(p->run, CLV_E_SHAPE, "nested more than %d deep", CHAT_DEPTH_MOST);
    return false;
}

void chat_parse_leave(chat_parser *p)
{
    --p->run->depth;
}

bool chat_parse_token_is(const chat_token *t, chat_token_kind kind, const char *text)
{
    return t->kind == kind && t->length == strlen(text) && memcmp(t->start, text, t->length) == 0;
}

bool chat_parse_at_sign(const chat_parser *p, const char *text)
{
    return chat_parse_token_is(p->t, CHAT_T_SIGN, text);
}

bool chat_parse_at_name(const chat_parser *p, const char *text)
{
    return chat_parse_token_is(p->t, CHAT_T_NAME, text);
}

bool chat_parse_take_sign(chat_parser *p, const char *text)
{
    if (!chat_parse_at_sign(p, text)) return false;
    ++p->t;
    return true;
}

bool chat_parse_take_name(chat_parser *p, const char *text)
{
    if (!chat_parse_at_name(p, text)) return false;
    ++p->t;
    return true;
}

bool chat_parse_need_sign(chat_parser *p, const char *text)
{
    if (!chat_parse_failed(p) && chat_parse_take_sign(p, text)) return true;
    if (!chat_parse_failed(p)) chat_parse_fail(p, text);
    return false;
}

const char *chat_parse_text_of(chat_parser *p, const chat_token *t)
{
    char *copy = chat_take(p->run, t->length + 1);
    if (!copy) return "";
    memcpy(copy, t->start, t->length);
    copy[t->length] = '\0';
    return copy;
}

const char *chat_parse_need_name(chat_parser *p)
{
    if (p->t->kind != CHAT_T_NAME) {
        chat_parse_fail(p, "a name");
        return "";
    }
    return chat_parse_text_of(p, p->t++);
}

/* ---- expressions --------------------------------------------------------------------------------- */

/* Parses the arguments of a call, such as "a, b=c)", after the opening bracket. */
static chat_node *arguments(chat_parser *p)
{
    chat_node *first = NULL, **end = &first;
    for (size_t count = 0; !chat_parse_failed(p) && !chat_parse_at_sign(p, ")"); ++count) {
        if (count && !chat_parse_need_sign(p, ",")) break;
        if (chat_parse_at_sign(p, ")")) break;
        if (chat_parse_at_sign(p, "*") || chat_parse_at_sign(p, "**"))
            return chat_parse_fail(p, "no star in a call");
        chat_node *n = chat_node_make(p, CHAT_N_ARGUMENT);
        if (!n) break;
        if (p->t->kind == CHAT_T_NAME && chat_parse_token_is(p->t + 1, CHAT_T_SIGN, "=")) {
            n->name = chat_parse_text_of(p, p->t);
            p->t += 2;
        }
        n->a = chat_parse_expression(p);
        *end = n, end = &n->next;
        if (count == CHAT_ARGUMENTS_MOST) return chat_parse_fail(p, "fewer arguments");
    }
    chat_parse_need_sign(p, ")");
    return first;
}

/* Appends an item to a list, or a key `a` and its value `b` to a dictionary; *end is the link that gets the item. */
static bool add_item(chat_parser *p, chat_node ***end, chat_node *a, chat_node *b)
{
    chat_node *n = chat_parse_failed(p) ? NULL : chat_node_make(p, CHAT_N_ARGUMENT);
    if (!n) return false;
    n->a = a, n->b = b;
    **end = n, *end = &n->next;
    return true;
}

/* Parses the items of a list or a dictionary after "[" or "{", up to `close`. */
static chat_node *items(chat_parser *p, chat_node_kind kind, const char *close)
{
    chat_node *list = chat_node_make(p, kind), **end = list ? &list->arguments : NULL;
    while (list && !chat_parse_failed(p) && !chat_parse_at_sign(p, close)) {
        chat_node *a = chat_parse_expression(p), *b = NULL;
        if (kind == CHAT_N_DICT && chat_parse_need_sign(p, ":")) b = chat_parse_expression(p);
        if (!add_item(p, &end, a, b)) return NULL;
        if (!chat_parse_at_sign(p, close) && !chat_parse_need_sign(p, ",")) break;
    }
    chat_parse_need_sign(p, close);
    return list;
}

/* Parses the rest of a tuple, such as ", b, c", after its first item `first`. Tuples become lists. */
chat_node *chat_parse_tuple(chat_parser *p, chat_node *first, const char *close)
{
    chat_node *list = chat_node_make(p, CHAT_N_LIST), **end = list ? &list->arguments : NULL;
    if (!list || !add_item(p, &end, first, NULL)) return NULL;
    while (!chat_parse_failed(p) && chat_parse_take_sign(p, ",") &&
           !(close && chat_parse_at_sign(p, close)))
        if (!add_item(p, &end, chat_parse_expression(p), NULL)) return NULL;
    return list;
}

/* Parses an expression or a tuple in round brackets. */
static chat_node *bracket(chat_parser *p)
{
    if (chat_parse_take_sign(p, ")")) return chat_node_make(p, CHAT_N_LIST);
    chat_node *n = chat_parse_expression(p);
    if (!chat_parse_failed(p) && chat_parse_at_sign(p, ",")) n = chat_parse_tuple(p, n, ")");
    chat_parse_need_sign(p, ")");
    return n;
}

static chat_node *constant(chat_parser *p, chat_value value)
{
    chat_node *n = chat_node_make(p, CHAT_N_VALUE);
    if (n) n->value = value;
    ++p->t;
    return n;
}

static chat_node *named(chat_parser *p)
{
    static const struct {
        const char *name;
        int value; /* 2: the constant none */
    } known[] = { { "true", 1 },  { "True", 1 }, { "false", 0 },
                  { "False", 0 }, { "none", 2 }, { "None", 2 } };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (chat_parse_at_name(p, known[i].name))
            return constant(p, known[i].value == 2 ? chat_none : chat_bool(known[i].value));
    chat_node *n = chat_node_make(p, CHAT_N_NAME);
    if (n) n->name = chat_parse_need_name(p);
    return n;
}

static chat_node *primary(chat_parser *p)
{
    if (p->t->kind == CHAT_T_NUMBER) return constant(p, p->t->value);
    if (p->t->kind == CHAT_T_STRING) {
        chat_node *n = constant(p, p->t->value);
        while (n && p->t->kind == CHAT_T_STRING) /* adjacent strings are joined */
            n->value = chat_string_of(chat_join(p->run, n->value.as.text, (p->t++)->value.as.text));
        return n;
    }
    if (p->t->kind == CHAT_T_NAME) return named(p);
    if (chat_parse_take_sign(p, "[")) return items(p, CHAT_N_LIST, "]");
    if (chat_parse_take_sign(p, "{")) return items(p, CHAT_N_DICT, "}");
    if (chat_parse_take_sign(p, "(")) return bracket(p);
    return chat_parse_fail(p, "a value");
}

/* Parses an index or a slice after "[". */
static chat_node *subscript(chat_parser *p, chat_node *object)
{
    chat_node *n = chat_node_make(p, CHAT_N_INDEX);
    if (!n) return NULL;
    n->a = object;
    if (!chat_parse_at_sign(p, ":")) n->b = chat_parse_expression(p);
    if (!chat_parse_failed(p) && chat_parse_take_sign(p, ":")) {
        n->kind = CHAT_N_SLICE;
        if (!chat_parse_at_sign(p, ":") && !chat_parse_at_sign(p, "]"))
            n->c = chat_parse_expression(p);
        if (!chat_parse_failed(p) && chat_parse_take_sign(p, ":") && !chat_parse_at_sign(p, "]"))
            n->d = chat_parse_expression(p);
    }
    chat_parse_need_sign(p, "]");
    return n;
}

static chat_node *call(chat_parser *p, chat_node *object)
{
    chat_node *n = chat_node_make(p, CHAT_N_CALL);
    if (!n) return NULL;
    n->a = object;
    n->arguments = arguments(p);
    return n;
}

static chat_node *postfix(chat_parser *p, chat_node *n)
{
    for (size_t count = 0; n && !chat_parse_failed(p); ++count) {
        if (count == CHAT_DEPTH_MOST) return chat_parse_fail(p, "fewer members of members");
        if (chat_parse_take_sign(p, ".")) {
            chat_node *member = chat_node_make(p, CHAT_N_MEMBER);
            if (!member) return NULL;
            member->a = n;
            member->name = chat_parse_need_name(p);
            n = member;
        } else if (chat_parse_take_sign(p, "[")) {
            n = subscript(p, n);
        } else if (chat_parse_take_sign(p, "(")) {
            n = call(p, n);
        } else {
            break;
        }
    }
    return n;
}

chat_node *chat_parse_member(chat_parser *p)
{
    return postfix(p, primary(p));
}

chat_node *chat_parse_filter(chat_parser *p, chat_node *object)
{
    chat_node *n = chat_node_make(p, CHAT_N_APPLY);
    if (!n) return NULL;
    n->a = object;
    n->name = chat_parse_need_name(p);
    if (!chat_parse_failed(p) && chat_parse_take_sign(p, "(")) n->arguments = arguments(p);
    return n;
}

/* Parses a test after "is". An argument may follow without brackets, as in x is divisibleby 3. */
static chat_node *test(chat_parser *p, chat_node *object)
{
    const bool negated = chat_parse_take_name(p, "not");
    chat_node *n = chat_node_make(p, CHAT_N_TEST);
    if (!n) return NULL;
    n->a = object;
    n->name = chat_parse_need_name(p);
    const chat_token_kind kind = p->t->kind;
    if (chat_parse_failed(p)) return NULL;
    if (chat_parse_take_sign(p, "(")) {
        n->arguments = arguments(p);
    } else if (kind == CHAT_T_STRING || kind == CHAT_T_NUMBER || chat_parse_at_sign(p, "[") ||
               (kind == CHAT_T_NAME && !chat_parse_at_name(p, "else") &&
                !chat_parse_at_name(p, "or") && !chat_parse_at_name(p, "and") &&
                !chat_parse_at_name(p, "is") && !chat_parse_at_name(p, "if") &&
                !chat_parse_at_name(p, "in") && !chat_parse_at_name(p, "not"))) {
        chat_node *argument = chat_node_make(p, CHAT_N_ARGUMENT);
        if (!argument) return NULL;
        argument->a = chat_parse_member(p);
        n->arguments = argument;
    }
    if (!negated) return n;
    chat_node *not = chat_node_make(p, CHAT_N_NOT);
    if (not ) not ->a = n;
    return not ;
}

static chat_node *unary(chat_parser *p, bool filters)
{
    if (!chat_parse_enter(p)) return NULL;
    chat_node *n;
    if (chat_parse_at_sign(p, "-")) {
        n = chat_node_make(p, CHAT_N_MINUS);
        ++p->t;
        if (n) n->a = unary(p, false);
    } else if (chat_parse_take_sign(p, "+")) {
        n = unary(p, false);
    } else {
        n = chat_parse_member(p);
    }
    for (size_t count = 0; filters && n && !chat_parse_failed(p); ++count) {
        if (count == CHAT_DEPTH_MOST)
            n = chat_parse_fail(p, "fewer filters");
        else if (chat_parse_take_sign(p, "|"))
            n = chat_parse_filter(p, n);
        else if (chat_parse_take_name(p, "is"))
            n = test(p, n);
        else if (chat_parse_take_sign(p, "("))
            n = call(p, n);
        else
            break;
    }
    chat_parse_leave(p);
    return n;
}

/* The levels of binary operators, those that bind least first; the operands of the last level are unary expressions. */
static const char *const levels[][5] = { { "+", "-" }, { "~" }, { "*", "/", "//", "%" }, { "**" } };

static chat_node *binary(chat_parser *p, size_t level)
{
    if (level == CLV_LEN(levels)) return unary(p, true);
    chat_node *n = binary(p, level + 1);
    for (size_t count = 0; n && !chat_parse_failed(p); ++count) {
        const char *sign = NULL;
        for (size_t i = 0; i < CLV_LEN(levels[0]) && levels[level][i] && !sign; ++i)
            if (chat_parse_take_sign(p, levels[level][i])) sign = levels[level][i];
        if (!sign) break;
        if (count == 10 * CHAT_DEPTH_MOST) return chat_parse_fail(p, "a shorter sum");
        chat_node *both = chat_node_make(p, CHAT_N_BINARY);
        if (!both) return NULL;
        both->a = n;
        both->b = binary(p, level + 1);
        memcpy(both->sign, sign, strlen(sign) + 1);
        n = both;
    }
    return n;
}

/* Parses a comparison such as a < b, a in b or a not in b. Chains like a < b < c are not supported. */
static chat_node *comparison(chat_parser *p)
{
    static const char *const signs[] = { "==", "!=", "<=", ">=", "<", ">" };
    chat_node *n = binary(p, 0);
    if (chat_parse_failed(p)) return NULL;
    const char *sign = NULL;
    bool negated = false;
    for (size_t i = 0; i < CLV_LEN(signs) && !sign; ++i)
        if (chat_parse_take_sign(p, signs[i])) sign = signs[i];
    if (!sign && chat_parse_at_name(p, "not") && chat_parse_token_is(p->t + 1, CHAT_T_NAME, "in")) {
        negated = true;
        ++p->t;
    }
    if (!sign && chat_parse_take_name(p, "in")) sign = "in";
    if (!sign) return n;
    chat_node *both = chat_node_make(p, CHAT_N_BINARY);
    if (!both) return NULL;
    both->a = n;
    both->b = binary(p, 0);
    memcpy(both->sign, sign, strlen(sign) + 1);
    if (!negated) return both;
    chat_node *not = chat_node_make(p, CHAT_N_NOT);
    if (not ) not ->a = both;
    return not ;
}

static chat_node *negation(chat_parser *p)
{
    if (!chat_parse_at_name(p, "not")) return comparison(p);
    chat_node *n = chat_node_make(p, CHAT_N_NOT);
    ++p->t;
    if (!n || !chat_parse_enter(p)) return NULL;
    n->a = negation(p);
    chat_parse_leave(p);
    return n;
}

chat_node *chat_parse_condition(chat_parser *p, bool or)
{
    chat_node *n = or ? chat_parse_condition(p, false) : negation(p);
    for (size_t count = 0; n && !chat_parse_failed(p) && chat_parse_take_name(p, or ? "or" : "and");
         ++count) {
        if (count == 10 * CHAT_DEPTH_MOST) return chat_parse_fail(p, "a shorter condition");
        chat_node *both = chat_node_make(p, or ? CHAT_N_OR : CHAT_N_AND);
        if (!both) return NULL;
        both->a = n;
        both->b = or ? chat_parse_condition(p, false) : negation(p);
        n = both;
    }
    return n;
}

chat_node *chat_parse_expression(chat_parser *p)
{
    if (chat_parse_failed(p) || !chat_parse_enter(p)) return NULL;
    chat_node *n = chat_parse_condition(p, true);
    if (n && !chat_parse_failed(p) && chat_parse_take_name(p, "if")) {
        chat_node *choice = chat_node_make(p, CHAT_N_CHOICE);
        if (!choice) return NULL;
        choice->a = chat_parse_condition(p, true);
        choice->b = n;
        if (!chat_parse_failed(p) && chat_parse_take_name(p, "else"))
            choice->c = chat_parse_expression(p);
        n = choice;
    }
    chat_parse_leave(p);
    return chat_parse_failed(p) ? NULL : n;
}
