/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser of programs share. */
#ifndef CLEAVE_HOST_ARRAY_FUSE_PARSE_H
#define CLEAVE_HOST_ARRAY_FUSE_PARSE_H

#include "host/array/fuse.h"

enum { FUSE_VARIABLES = FUSE_VALUES + CLV_FUSE_NAMES, FUSE_DEPTH = 100 };

/* A part of the text: a name. */
typedef struct clv_word {
    const char *at;
    size_t length;
} clv_word;

/* A name that stands for a number: an input, an output or a variable. */
typedef struct clv_variable {
    clv_word name;
    bool typed, assigned, input;
    int output; /* or -1 */
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

/* Reports what was expected at a position, and what is there. Returns CLV_E_FORMAT. */
clv_status clv_parser_wrong(clv_parser *p, const char *at, const char *expected);
/* Puts the position in front of an error that fuse_build.c has found. */
clv_status clv_parser_placed(clv_parser *p, const char *at, clv_status status);
void clv_parser_skip(clv_parser *p); /* spaces and comments */
bool clv_parser_take(clv_parser *p, char token);
clv_word clv_word_at(const char *at);    /* of length 0: there is none */
clv_word clv_parser_word(clv_parser *p); /* the next one, which stays */
bool clv_word_is(clv_word w, const char *name);
bool clv_parser_type(const clv_parser *p, clv_word w, clv_dtype *type);
bool clv_word_function(clv_word w, clv_op *op);
clv_variable *clv_parser_variable(clv_parser *p, clv_word w); /* NULL: there is none */

/* ---- fuse_expression.c ---- */
clv_status clv_parser_expression(clv_parser *p, clv_fuse_term *out);

#endif
