/* SPDX-License-Identifier: Apache-2.0 */
/* Declares a template as a tree of nodes: lexer.c and parse.c make it, run.c executes it, and calls.c, filters.c and
 * methods.c implement its functions. */
#ifndef CLEAVE_HOST_CHAT_TEMPLATE_H
#define CLEAVE_HOST_CHAT_TEMPLATE_H

#include "host/chat/value.h"

/* ---- tokens -------------------------------------------------------------------------------------- */

typedef enum chat_token_kind {
    CHAT_T_TEXT,  /* the text between tags */
    CHAT_T_BEGIN, /* {% */
    CHAT_T_PRINT, /* {{ */
    CHAT_T_END,   /* %} or }} */
    CHAT_T_NAME,
    CHAT_T_NUMBER,
    CHAT_T_STRING,
    CHAT_T_SIGN, /* an operator of one or two characters */
    CHAT_T_LAST,
} chat_token_kind;

typedef struct chat_token {
    chat_token_kind kind;
    unsigned line;
    const char *start;
    size_t length;
    chat_value value; /* the value of a NUMBER or a STRING */
} chat_token;

/* Returns all tokens of a template, the last of which is CHAT_T_LAST; NULL after a failure. */
chat_token *chat_tokens(chat_run *run, const char *source);

/* ---- nodes --------------------------------------------------------------------------------------- */

typedef enum chat_node_kind {
    /* statements; `next` links them */
    CHAT_N_TEXT,     /* value */
    CHAT_N_PRINT,    /* a */
    CHAT_N_IF,       /* a, body, other */
    CHAT_N_FOR,      /* names, a: the items, b: condition or NULL, body, other */
    CHAT_N_SET,      /* b: the value of `names`, or of `a`, a member of a namespace */
    CHAT_N_SET_TEXT, /* names, body: their value, b: filters over it or NULL */
    CHAT_N_MACRO,    /* name, arguments: names with defaults, body */
    CHAT_N_FILTER,   /* b: filters over body */
    CHAT_N_BREAK,
    CHAT_N_CONTINUE,
    CHAT_N_GROUP, /* body: of a tag without any other effect */
    /* expressions */
    CHAT_N_VALUE,  /* value */
    CHAT_N_NAME,   /* name */
    CHAT_N_LIST,   /* arguments */
    CHAT_N_DICT,   /* arguments: key a, value b */
    CHAT_N_MEMBER, /* a . name */
    CHAT_N_INDEX,  /* a [ b ] */
    CHAT_N_SLICE,  /* a [ b : c : d ], each may be NULL */
    CHAT_N_CALL,   /* a ( arguments ) */
    CHAT_N_APPLY,  /* a | name ( arguments ) */
    CHAT_N_TEST,   /* a is name ( arguments ) */
    CHAT_N_NOT,    /* a */
    CHAT_N_MINUS,  /* a */
    CHAT_N_AND,
    CHAT_N_OR,       /* a, b */
    CHAT_N_BINARY,   /* a sign b */
    CHAT_N_CHOICE,   /* b if a else c; c may be NULL */
    CHAT_N_ARGUMENT, /* an argument of a call: a, name: NULL if it has none */
    CHAT_N_WAITING,  /* the text to which CHAT_N_FILTER applies its filters */
} chat_node_kind;

typedef struct chat_node {
    chat_node_kind kind;
    unsigned line;
    const char *name; /* NUL-terminated */
    chat_value value;
    struct chat_node *a, *b, *c, *d, *body, *other, *arguments, *names, *next;
    char sign[3];
} chat_node;

/* Returns the first statement of the template; NULL after a failure, or if there are none. */
chat_node *chat_parse(chat_run *run, const chat_token *tokens);

/* ---- work ---------------------------------------------------------------------------------------- */

enum { CHAT_ARGUMENTS_MOST = 16 };

/* The arguments of a call, a filter or a test. */
typedef struct chat_arguments {
    chat_value values[CHAT_ARGUMENTS_MOST];
    const char *names[CHAT_ARGUMENTS_MOST]; /* NULL: the argument has no name */
    size_t count;
} chat_arguments;

/* Returns argument number `at`, or the argument called `name`; undefined if the call has neither. */
chat_value chat_argument(const chat_arguments *arguments, size_t at, const char *name);

chat_value chat_apply(chat_run *run, const char *filter, chat_value value,
                      const chat_arguments *arguments);
bool chat_test(chat_run *run, const char *test, chat_value value, const chat_arguments *arguments);
chat_value chat_method(chat_run *run, chat_value object, const char *method,
                       const chat_arguments *arguments);
chat_value chat_function(chat_run *run, const char *name, const chat_arguments *arguments);
bool chat_is_function(const char *name);
chat_value chat_binary(chat_run *run, const char *sign, chat_value a, chat_value b);
chat_value chat_member(chat_run *run, chat_value object, chat_value key);
chat_value chat_slice(chat_run *run, chat_value object, chat_value from, chat_value to,
                      chat_value step);

/* Executes the statements and appends their output to `out`. `globals` is a dictionary of variables. */
void chat_execute(chat_run *run, const chat_node *statements, chat_value globals, chat_out *out);

#endif
