/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the parts of the program parser share. */
#ifndef CLEAVE_HOST_ARRAY_FUSE_PARSE_H
#define CLEAVE_HOST_ARRAY_FUSE_PARSE_H

#include "host/array/fuse.h"

enum { FUSE_VARIABLES = FUSE_VALUES + CLV_FUSE_NAMES, FUSE_DEPTH = 100 };

/* A name in the text. */
typedef struct clv_word {
    const char *at;
    size_t length;
} clv_word;

/* A name that stands for a value: an input, an output or a variable. */
typedef struct clv_variable {
    clv_word name;
    bool typed, assigned, input;
    int output; /* index of the output, or -1 */
    clv_dtype type;
    clv_fuse_term term;
} clv_variable;

typedef struct clv_parser {
    const char *text, *at;
    const clv_fuse_name *names;
    size_t name_count;
    clv_fused *out;
    clv_variable variable[FUSE_VARIABLES];
    size_t variables, fault; /* position of the first error, or SIZE_MAX */
    int depth;
} clv_parser;

/* ---- errors, tokens and names: fuse_text.c ---- */

/* Reports what was expected at a position and what the text has instead. Returns CLV_E_FORMAT. */
clv_status clv_parser_wrong(clv_parser *p, const char *at, const char *expected);
/* Adds the position to the message of an error from fuse_build.c. */
clv_status clv_parser_placed(clv_parser *p, const char *at, clv_status status);
void clv_parser_skip(clv_parser *p); /* skips spaces and comments */
bool clv_parser_take(clv_parser *p, char token);
clv_word clv_word_at(const char *at);    /* length 0: no name at `at` */
clv_word clv_parser_word(clv_parser *p); /* the next name; does not move past it */
bool clv_word_is(clv_word w, const char *name);
bool clv_parser_type(const clv_parser *p, clv_word w, clv_dtype *type);
bool clv_word_function(clv_word w, clv_op *op);
clv_variable *clv_parser_variable(clv_parser *p, clv_word w); /* NULL: no such variable */

/* ---- fuse_expression.c ---- */
clv_status clv_parser_expression(clv_parser *p, clv_fuse_term *out);

#endif
