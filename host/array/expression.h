/* SPDX-License-Identifier: Apache-2.0 */
/* Declares an expression as a list of steps, each of which computes one number from the results of earlier steps. */
#ifndef CLEAVE_HOST_ARRAY_EXPRESSION_H
#define CLEAVE_HOST_ARRAY_EXPRESSION_H

#include "base/text.h"

#include <cleave/status.h>

enum { EXPRESSION_STEPS = 256 };

typedef enum clv_step_kind {
    STEP_NUMBER,
    STEP_INPUT,
    STEP_NEGATE,
    STEP_NOT,
    STEP_ADD,
    STEP_SUBTRACT,
    STEP_MULTIPLY,
    STEP_DIVIDE,
    STEP_REMAINDER,
    STEP_LESS,
    STEP_LESS_EQUAL,
    STEP_EQUAL,
    STEP_NOT_EQUAL,
    STEP_AND,
    STEP_OR,
    STEP_CHOOSE,
    STEP_CALL, /* calls functions[which] */
} clv_step_kind;

typedef struct clv_step {
    clv_step_kind kind;
    unsigned argument[3]; /* indices of earlier steps */
    unsigned which;       /* index of the function or of the input */
    float number;
} clv_step;

typedef struct clv_expression {
    clv_step step[EXPRESSION_STEPS];
    unsigned count, result;
    double flops; /* per element, roughly */
} clv_expression;

/* Parses an expression. `names` are the inputs' names, and none of them may be the name of a function. *position is set
 * to the place of an error; `position` may be NULL. */
clv_status clv_expression_parse(const char *text, const char *const *names, size_t count,
                                clv_expression *out, size_t *position);

/* A function that expressions may call; see expression_functions.c. */
typedef struct clv_function {
    const char *name;
    unsigned arguments;
    double flops;
    const char *cl; /* its name in OpenCL C: "sin", or a macro of array/map.clh */
    void (*host)(float *out, const float *a, const float *b, const float *c, size_t count);
} clv_function;
extern const clv_function clv_functions[];
extern const unsigned clv_function_count;

/* The numbers of an expression that a kernel takes as arguments k0, k1, ..., at most EXPRESSION_NUMBERS; `step` lists
 * their steps. Expressions that differ only in these numbers share one kernel. A number remains a constant of the
 * kernel where the compiler makes better code with it: divisors with an exact reciprocal, exponents, and operands of
 * steps that have only numbers as operands. */
enum { EXPRESSION_NUMBERS = 16 };
typedef struct clv_numbers {
    unsigned step[EXPRESSION_NUMBERS], count;
} clv_numbers;
clv_numbers clv_expression_numbers(const clv_expression *expression);

/* Writes the expression as OpenCL C, one line per step: "const fvec t3 = t1 + t2;". A step that reads an input calls
 * IN<which>. */
void clv_expression_write(const clv_expression *expression, const clv_numbers *numbers,
                          clv_text *text);
/* Returns a hash of the lines that clv_expression_write writes. Names and the values of `numbers` do not change it. */
uint64_t clv_expression_hash(const clv_expression *expression, const clv_numbers *numbers);

/* clv_expression_compute computes out[i] from inputs[which][i * stride[which]] on the host. Strides are 0 or 1, and
 * `room` has space for clv_expression_room floats. */
enum { EXPRESSION_BLOCK = 256 };
size_t clv_expression_room(const clv_expression *expression); /* size of `room`, in floats */
void clv_expression_compute(const clv_expression *expression, const float *const *inputs,
                            const size_t *stride, size_t count, float *out, float *room);

#endif
