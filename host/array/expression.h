/* SPDX-License-Identifier: Apache-2.0 */
/* An expression as a list of steps: each makes one number of numbers made before. */
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
    STEP_CALL, /* of functions[which] */
} clv_step_kind;

typedef struct clv_step {
    clv_step_kind kind;
    unsigned argument[3]; /* earlier steps */
    unsigned which;       /* function or input */
    float number;
} clv_step;

typedef struct clv_expression {
    clv_step step[EXPRESSION_STEPS];
    unsigned count, result;
    double flops; /* of one element, roughly */
} clv_expression;

/* `names` are the inputs; each a word that is no function's. `position` may be NULL. */
clv_status clv_expression_parse(const char *text, const char *const *names, size_t count,
                                clv_expression *out, size_t *position);

/* expression_functions.c: what may be called. */
typedef struct clv_function {
    const char *name;
    unsigned arguments;
    double flops;
    const char *cl; /* how OpenCL C calls it: "sin", or a macro of the generated text */
    void (*host)(float *out, const float *a, const float *b, const float *c, size_t count);
} clv_function;
extern const clv_function clv_functions[];
extern const unsigned clv_function_count;

/* The numbers that a kernel takes as arguments k0, k1, ..., so that expressions which differ in these
 * alone are one kernel: steps, at most EXPRESSION_NUMBERS. Not what a compiler makes something better
 * of when it knows it: divisors with an exact reciprocal, exponents, operands of numbers alone. */
enum { EXPRESSION_NUMBERS = 16 };
typedef struct clv_numbers {
    unsigned step[EXPRESSION_NUMBERS], count;
} clv_numbers;
clv_numbers clv_expression_numbers(const clv_expression *expression);

/* OpenCL C: "const fvec t3 = t1 + t2;" a line a step; an input's step calls IN<which>. */
void clv_expression_write(const clv_expression *expression, const clv_numbers *numbers,
                          clv_text *text);
/* Equal where the lines are; names and values of `numbers` are no part. */
uint64_t clv_expression_hash(const clv_expression *expression, const clv_numbers *numbers);

/* On the host: out[i] of inputs[which][i * stride[which]], stride 0 or 1; `room` as the next says. */
enum { EXPRESSION_BLOCK = 256 };
size_t clv_expression_room(const clv_expression *expression); /* floats */
void clv_expression_compute(const clv_expression *expression, const float *const *inputs,
                            const size_t *stride, size_t count, float *out, float *room);

#endif
