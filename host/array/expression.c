/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of an expression into steps. Steps hold only numbers and the indices of names and functions, never
 * pieces of the text. */
#include "host/array/expression.h"

#include "base/alloc.h"
#include "base/error.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 100, LONGEST = 4096 };

typedef struct parser {
    const char *text, *at;
    const char *const *names;
    size_t name_count;
    clv_expression *out;
    size_t fault; /* position of the error */
    int depth;
} parser;

static clv_status wrong(parser *p, const char *at, const char *expected)
{
    char seen[24];
    size_t length = 0;
    p->fault = (size_t)(at - p->text);
    while (length < sizeof seen - 1 && at[length] >= ' ' && at[length] <= '~')
        ++length;
    snprintf(seen, sizeof seen, "%.*s", (int)length, at);
    const char *const other = *at ? "a character that is not printable ASCII" : "the end";
    return clv_fail(CLV_E_FORMAT, "expression: position %zu: found %s%s%s, but %s", p->fault,
                    *seen ? "\"" : "", *seen ? seen : other, *seen ? "\"" : "", expected);
}

static void skip_space(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
        ++p->at;
}

static bool take(parser *p, const char *token)
{
    skip_space(p);
    const size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) return false;
    p->at += length;
    return true;
}

static clv_status put(parser *p, const char *at, clv_step step, double flops, unsigned *out)
{
    if (p->out->count >= EXPRESSION_STEPS)
        return wrong(p, at, "an expression may have at most 256 steps");
    p->out->flops += flops;
    p->out->step[p->out->count] = step;
    *out = p->out->count++;
    return CLV_OK;
}

static clv_status put_operation(parser *p, const char *at, clv_step_kind kind, unsigned a,
                                unsigned b, unsigned *out)
{
    const double flops = kind == STEP_DIVIDE ? 4 : kind == STEP_REMAINDER ? 12 : 1;
    return put(p, at, (clv_step){ .kind = kind, .argument = { a, b } }, flops, out);
}

static clv_status put_number(parser *p, const char *at, double value, unsigned *out)
{
    return put(p, at, (clv_step){ .kind = STEP_NUMBER, .number = (float)value }, 0, out);
}

static clv_status ternary(parser *p, unsigned *out);
static clv_status unary(parser *p, unsigned *out);

/* Parses a decimal number: digits, point and exponent. Characters that would continue the number are errors, as in
 * "1.5.2" and "3x". */
static clv_status number(parser *p, unsigned *out)
{
    const char *const start = p->at;
    const size_t length = clv_decimal_length(start);
    const char *const end = start + length;
    char word[64];
    double value;
    snprintf(word, sizeof word, "%.*s", (int)CLV_MIN(length, sizeof word - 1), start);
    if (length >= sizeof word || isalpha((unsigned char)*end) || *end == '_' ||
        !clv_parse_double(word, &value))
        return wrong(p, start, "a number is expected");
    p->at = end;
    return put_number(p, start, value, out);
}

static bool is_word(const char *at, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(at, name, length) == 0;
}

static clv_status call(parser *p, const char *start, unsigned which, unsigned *out)
{
    const clv_function *f = &clv_functions[which];
    clv_step step = { .kind = STEP_CALL, .which = which };
    char expected[80];
    if (!take(p, "(")) return wrong(p, p->at, "\"(\" is expected after the name of a function");
    for (unsigned i = 0; i < f->arguments; ++i) {
        snprintf(expected, sizeof expected, "%s takes %u argument%s, so \"%s\" is expected",
                 f->name, f->arguments, f->arguments == 1 ? "" : "s",
                 i + 1 < f->arguments ? "," : ")");
        CLV_TRY(ternary(p, &step.argument[i]));
        if (!take(p, i + 1 < f->arguments ? "," : ")")) return wrong(p, p->at, expected);
    }
    return put(p, start, step, f->flops, out);
}

static clv_status name(parser *p, unsigned *out)
{
    static const struct {
        const char *name;
        double value;
    } constants[] = { { "pi", 3.14159265358979323846 },
                      { "e", 2.71828182845904523536 },
                      { "inf", INFINITY },
                      { "nan", NAN } };
    const char *start = p->at;
    const size_t length = clv_name_length(start);
    p->at += length;
    for (size_t i = 0; i < p->name_count; ++i)
        if (is_word(start, length, p->names[i]))
            return put(p, start, (clv_step){ .kind = STEP_INPUT, .which = (unsigned)i }, 0, out);
    for (unsigned i = 0; i < clv_function_count; ++i)
        if (is_word(start, length, clv_functions[i].name)) return call(p, start, i, out);
    for (size_t i = 0; i < CLV_LEN(constants); ++i)
        if (is_word(start, length, constants[i].name))
            return put_number(p, start, constants[i].value, out);
    return wrong(p, start, "the name of an input or of a function is expected");
}

static clv_status primary(parser *p, unsigned *out)
{
    skip_space(p);
    if (take(p, "(")) {
        CLV_TRY(ternary(p, out));
        return take(p, ")") ? CLV_OK : wrong(p, p->at, "\")\" is expected");
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
        return number(p, out);
    if (clv_name_length(p->at)) return name(p, out);
    return wrong(p, p->at, "a number, a name or \"(\" is expected");
}

/* Adds the steps of a power: products for whole exponents up to 4, otherwise a call of pow. */
static clv_status put_power(parser *p, const char *at, unsigned base, unsigned power, unsigned *out)
{
    const clv_step *s = &p->out->step[power];
    const float x = s->kind == STEP_NUMBER ? s->number : 0;
    unsigned square = base;
    if (x == 1) {
        *out = base;
        return CLV_OK;
    }
    if (x == 2 || x == 3 || x == 4) {
        CLV_TRY(put_operation(p, at, STEP_MULTIPLY, base, base, &square));
        *out = square;
        return x == 2 ? CLV_OK
                      : put_operation(p, at, STEP_MULTIPLY, square, x == 3 ? base : square, out);
    }
    for (unsigned i = 0; i < clv_function_count; ++i)
        if (strcmp(clv_functions[i].name, "pow") == 0)
            return put(p, at,
                       (clv_step){ .kind = STEP_CALL, .which = i, .argument = { base, power } },
                       clv_functions[i].flops, out);
    return clv_fail(CLV_E_INTERNAL, "expression: the table of functions has no entry for pow");
}

static clv_status power(parser *p, unsigned *out)
{
    unsigned exponent = 0;
    CLV_TRY(primary(p, out));
    skip_space(p);
    const char *at = p->at;
    if (!take(p, "**")) return CLV_OK;
    CLV_TRY(unary(p, &exponent));
    return put_power(p, at, *out, exponent, out);
}

static clv_status unary(parser *p, unsigned *out)
{
    skip_space(p);
    const char *at = p->at;
    if (++p->depth > DEEPEST)
        return wrong(p, at, "an expression may be nested at most 100 levels deep");
    clv_status status;
    if (*at == '-' || (*at == '!' && at[1] != '=')) {
        unsigned a = 0;
        ++p->at;
        status = unary(p, &a);
        const clv_step step = { .kind = *at == '-' ? STEP_NEGATE : STEP_NOT, .argument = { a } };
        if (!status) status = put(p, at, step, 1, out);
    } else if (*at == '+') {
        ++p->at;
        status = unary(p, out);
    } else {
        status = power(p, out);
    }
    --p->depth;
    return status;
}

/* The operators by precedence, lowest first. Within one precedence, an operator comes before any operator that is a
 * prefix of it. */
static const struct rank {
    struct {
        const char *token;
        clv_step_kind kind;
        bool swapped; /* a > b is stored as b < a */
    } of[5];
} ranks[] = {
    { { { "||", STEP_OR, false } } },
    { { { "&&", STEP_AND, false } } },
    { { { "==", STEP_EQUAL, false }, { "!=", STEP_NOT_EQUAL, false } } },
    { { { "<=", STEP_LESS_EQUAL, false },
        { ">=", STEP_LESS_EQUAL, true },
        { "<", STEP_LESS, false },
        { ">", STEP_LESS, true } } },
    { { { "+", STEP_ADD, false }, { "-", STEP_SUBTRACT, false } } },
    { { { "*", STEP_MULTIPLY, false },
        { "/", STEP_DIVIDE, false },
        { "%", STEP_REMAINDER, false } } },
};

static clv_status binary(parser *p, size_t rank, unsigned *out)
{
    if (rank == CLV_LEN(ranks)) return unary(p, out);
    CLV_TRY(binary(p, rank + 1, out));
    for (;;) {
        size_t i = 0;
        unsigned right = 0;
        skip_space(p);
        const char *at = p->at;
        while (i < CLV_LEN(ranks[rank].of) && ranks[rank].of[i].token &&
               strncmp(at, ranks[rank].of[i].token, strlen(ranks[rank].of[i].token)) != 0)
            ++i;
        if (i == CLV_LEN(ranks[rank].of) || !ranks[rank].of[i].token) return CLV_OK;
        p->at += strlen(ranks[rank].of[i].token);
        CLV_TRY(binary(p, rank + 1, &right));
        const bool swapped = ranks[rank].of[i].swapped;
        CLV_TRY(put_operation(p, at, ranks[rank].of[i].kind, swapped ? right : *out,
                              swapped ? *out : right, out));
    }
}

static clv_status ternary(parser *p, unsigned *out)
{
    unsigned yes = 0, no = 0;
    if (++p->depth > DEEPEST)
        return wrong(p, p->at, "an expression may be nested at most 100 levels deep");
    CLV_TRY(binary(p, 0, out));
    skip_space(p);
    const char *at = p->at;
    if (take(p, "?")) {
        CLV_TRY(ternary(p, &yes));
        if (!take(p, ":")) return wrong(p, p->at, "\":\" is expected");
        CLV_TRY(ternary(p, &no));
        CLV_TRY(
            put(p, at, (clv_step){ .kind = STEP_CHOOSE, .argument = { *out, yes, no } }, 1, out));
    }
    --p->depth;
    return CLV_OK;
}

static clv_status check_names(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (!names[i] || !*names[i] || clv_name_length(names[i]) != strlen(names[i]) ||
            strlen(names[i]) > 63)
            return clv_fail(
                CLV_E_ARGUMENT,
                "expression: the name of input %zu must consist of letters, digits and _", i);
        for (unsigned f = 0; f < clv_function_count; ++f)
            if (strcmp(names[i], clv_functions[f].name) == 0)
                return clv_fail(
                    CLV_E_ARGUMENT,
                    "expression: an input is called \"%s\", which is the name of a function",
                    names[i]);
        for (size_t k = 0; k < i; ++k)
            if (strcmp(names[i], names[k]) == 0)
                return clv_fail(CLV_E_ARGUMENT, "expression: two inputs are called \"%s\"",
                                names[i]);
    }
    return CLV_OK;
}

clv_status clv_expression_parse(const char *text, const char *const *names, size_t count,
                                clv_expression *out, size_t *position)
{
    if (position) *position = 0;
    if (!text || (count && !names)) return clv_fail(CLV_E_ARGUMENT, "expression: the text is NULL");
    CLV_TRY(check_names(names, count));
    if (strlen(text) > LONGEST)
        return clv_fail(CLV_E_FORMAT,
                        "expression: the text has %zu bytes, but at most %d are possible",
                        strlen(text), LONGEST);
    *out = (clv_expression){ 0 };
    parser p = { .text = text, .at = text, .names = names, .name_count = count, .out = out };
    unsigned result = 0;
    clv_status status = ternary(&p, &result);
    skip_space(&p);
    if (!status && *p.at) status = wrong(&p, p.at, "an operator or the end is expected");
    out->result = result;
    if (position) *position = status ? p.fault : 0;
    return status;
}
