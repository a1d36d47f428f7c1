/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the expressions of a program by recursive descent, one function per level of precedence. */
#include "host/array/fuse_parse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static clv_status unary(clv_parser *p, clv_fuse_term *out);

/* Parses a decimal number. A suffix f, as in C, is accepted and has no effect. */
static clv_status number(clv_parser *p, clv_fuse_term *out)
{
    const char *const start = p->at;
    const size_t length = clv_decimal_length(start);
    const char *const end = start + length;
    char digits[64];
    snprintf(digits, sizeof digits, "%.*s", (int)CLV_MIN(length, sizeof digits - 1), start);
    const bool whole = length == strspn(digits, "0123456789");
    const bool f = !whole && (*end == 'f' || *end == 'F');
    *out = (clv_fuse_term){ .is = whole ? TERM_WHOLE : TERM_REAL };
    if (length >= sizeof digits || isalnum((unsigned char)end[f]) || end[f] == '_' ||
        !(whole ? clv_parse_i64(digits, &out->whole) : clv_parse_double(digits, &out->real)))
        return clv_parser_wrong(p, start, "a number is expected");
    p->at = end + f;
    return CLV_OK;
}

static clv_status call_rsqrt(clv_parser *p, const clv_fuse_term *x, clv_fuse_term *out)
{
    clv_fuse_term root;
    CLV_TRY(clv_fuse_apply(p->out, CLV_OP_SQRT, x, 1, &root));
    return clv_fuse_apply(p->out, CLV_OP_RECIPROCAL, &root, 1, out);
}

static clv_status call_clamp(clv_parser *p, const clv_fuse_term *x, clv_fuse_term *out)
{
    clv_fuse_term above;
    CLV_TRY(clv_fuse_apply(p->out, CLV_OP_FMAX, x, 2, &above));
    return clv_fuse_apply(p->out, CLV_OP_FMIN, (clv_fuse_term[]){ above, x[2] }, 2, out);
}

static clv_status call(clv_parser *p, clv_word name, clv_op op, clv_fuse_term *out)
{
    clv_fuse_term term[CLV_OP_INPUTS];
    const bool clamps = clv_word_is(name, "clamp");
    const size_t count = clamps ? 3 : clv_op_inputs(op);
    char expected[96];
    if (!clv_parser_take(p, '('))
        return clv_parser_wrong(p, p->at, "\"(\" is expected after a function's name");
    for (size_t i = 0; i < count; ++i) {
        const char end = i + 1 < count ? ',' : ')';
        snprintf(expected, sizeof expected, "%.*s takes %zu argument%s, so \"%c\" is expected",
                 (int)CLV_MIN(name.length, (size_t)40), name.at, count, count == 1 ? "" : "s", end);
        CLV_TRY(clv_parser_expression(p, &term[i]));
        if (!clv_parser_take(p, end)) return clv_parser_wrong(p, p->at, expected);
    }
    const clv_status status = clamps                       ? call_clamp(p, term, out)
                              : clv_word_is(name, "rsqrt") ? call_rsqrt(p, term, out)
                              : op == CLV_OP_WHERE         ? clv_fuse_choose(p->out, term, out)
                              : op == CLV_OP_POW ? clv_fuse_power(p->out, &term[0], &term[1], out)
                                                 : clv_fuse_apply(p->out, op, term, count, out);
    return clv_parser_placed(p, name.at, status);
}

static bool constant(clv_word w, clv_fuse_term *out)
{
    static const struct {
        const char *name;
        double value;
    } constants[] = { { "pi", 3.14159265358979323846 },
                      { "M_PI", 3.14159265358979323846 },
                      { "e", 2.71828182845904523536 },
                      { "M_E", 2.71828182845904523536 },
                      { "inf", INFINITY },
                      { "INFINITY", INFINITY },
                      { "nan", NAN },
                      { "NAN", NAN } };
    *out = (clv_fuse_term){ .is = TERM_REAL };
    for (size_t i = 0; i < CLV_LEN(constants); ++i)
        if (clv_word_is(w, constants[i].name)) {
            out->real = constants[i].value;
            return true;
        }
    if (!clv_word_is(w, "true") && !clv_word_is(w, "false")) return false;
    *out = (clv_fuse_term){ .is = TERM_WHOLE, .whole = clv_word_is(w, "true") };
    return true;
}

static clv_status name(clv_parser *p, clv_fuse_term *out)
{
    const clv_word w = clv_word_at(p->at);
    const clv_variable *v = clv_parser_variable(p, w);
    clv_op op;
    if (v && !v->assigned) return clv_parser_wrong(p, w.at, "this name has no value yet");
    p->at += w.length;
    if (v) {
        *out = v->term;
        clv_parser_skip(p);
        if (*p->at == '[')
            return clv_parser_wrong(
                p, p->at,
                "indices are not supported (a program sees one element of each array; "
                "clv_items_run and cleave.Kernel take OpenCL C of any kind)");
        return CLV_OK;
    }
    if (clv_word_function(w, &op)) return call(p, w, op, out);
    if (constant(w, out)) return CLV_OK;
    return clv_parser_wrong(p, w.at, "the name of an input, a variable or a function is expected");
}

static clv_status primary(clv_parser *p, clv_fuse_term *out)
{
    clv_parser_skip(p);
    if (clv_parser_take(p, '(')) {
        CLV_TRY(clv_parser_expression(p, out));
        return clv_parser_take(p, ')') ? CLV_OK : clv_parser_wrong(p, p->at, "\")\" is expected");
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
        return number(p, out);
    if (clv_word_at(p->at).length) return name(p, out);
    return clv_parser_wrong(p, p->at, "a number, a name or \"(\" is expected");
}

static clv_status power(clv_parser *p, clv_fuse_term *out)
{
    clv_fuse_term base, exponent;
    CLV_TRY(primary(p, &base));
    clv_parser_skip(p);
    const char *at = p->at;
    *out = base;
    if (at[0] != '*' || at[1] != '*') return CLV_OK;
    p->at += 2;
    CLV_TRY(unary(p, &exponent));
    return clv_parser_placed(p, at, clv_fuse_power(p->out, &base, &exponent, out));
}

/* Parses a conversion "(type)". If the text does not continue with one, the position does not move. */
static bool take_cast(clv_parser *p, clv_dtype *type)
{
    const char *start = p->at;
    if (clv_parser_take(p, '(')) {
        const clv_word w = clv_parser_word(p);
        if (w.length && !clv_parser_variable(p, w) && clv_parser_type(p, w, type)) {
            p->at += w.length;
            if (clv_parser_take(p, ')')) return true;
        }
    }
    p->at = start;
    return false;
}

static clv_status prefixed(clv_parser *p, clv_fuse_term *out)
{
    clv_parser_skip(p);
    const char *at = p->at;
    clv_fuse_term a;
    clv_dtype type;
    if (take_cast(p, &type)) {
        CLV_TRY(unary(p, &a));
        return clv_parser_placed(p, at, clv_fuse_convert(p->out, &a, type, out));
    }
    if (!*at || !strchr("-+!~", *at)) return power(p, out);
    ++p->at;
    CLV_TRY(unary(p, &a));
    *out = a;
    if (*at == '+') return CLV_OK;
    const clv_op op = *at == '-' ? CLV_OP_NEGATE : *at == '!' ? CLV_OP_LOGICAL_NOT : CLV_OP_BIT_NOT;
    return clv_parser_placed(p, at, clv_fuse_apply(p->out, op, &a, 1, out));
}

static clv_status unary(clv_parser *p, clv_fuse_term *out)
{
    if (++p->depth > FUSE_DEPTH)
        return clv_parser_wrong(p, p->at, "an expression may be nested at most 100 levels deep");
    const clv_status status = prefixed(p, out);
    --p->depth;
    return status;
}

/* The operators by precedence, lowest first. Within one precedence, an operator comes before any operator that is a
 * prefix of it. */
static const struct rank {
    struct {
        const char *token;
        clv_op op;
    } of[4];
} ranks[] = {
    { { { "||", CLV_OP_LOGICAL_OR } } },
    { { { "&&", CLV_OP_LOGICAL_AND } } },
    { { { "|", CLV_OP_BIT_OR } } },
    { { { "^", CLV_OP_BIT_XOR } } },
    { { { "&", CLV_OP_BIT_AND } } },
    { { { "==", CLV_OP_EQUAL }, { "!=", CLV_OP_NOT_EQUAL } } },
    { { { "<=", CLV_OP_LESS_EQUAL },
        { ">=", CLV_OP_GREATER_EQUAL },
        { "<", CLV_OP_LESS },
        { ">", CLV_OP_GREATER } } },
    { { { "<<", CLV_OP_SHIFT_LEFT }, { ">>", CLV_OP_SHIFT_RIGHT } } },
    { { { "+", CLV_OP_ADD }, { "-", CLV_OP_SUBTRACT } } },
    { { { "*", CLV_OP_MULTIPLY }, { "/", CLV_OP_DIVIDE }, { "%", CLV_OP_REMAINDER } } },
};

/* Returns whether the text at `at` is this operator and not a longer one with the same beginning. */
static bool stands(const char *at, const char *token)
{
    const size_t length = strlen(token);
    if (strncmp(at, token, length) != 0) return false;
    const char next = at[length];
    if (length == 2) return true;
    if (*token == '|' || *token == '&' || *token == '<' || *token == '>' || *token == '*')
        if (next == *token) return false;
    return next != '=' || *token == '<' || *token == '>';
}

static clv_status binary(clv_parser *p, size_t rank, clv_fuse_term *out)
{
    if (rank == CLV_LEN(ranks)) return unary(p, out);
    CLV_TRY(binary(p, rank + 1, out));
    for (;;) {
        size_t i = 0;
        clv_parser_skip(p);
        const char *at = p->at;
        while (i < CLV_LEN(ranks[rank].of) && ranks[rank].of[i].token &&
               !stands(at, ranks[rank].of[i].token))
            ++i;
        if (i == CLV_LEN(ranks[rank].of) || !ranks[rank].of[i].token) return CLV_OK;
        clv_fuse_term term[2] = { *out };
        p->at += strlen(ranks[rank].of[i].token);
        CLV_TRY(binary(p, rank + 1, &term[1]));
        const clv_op op = ranks[rank].of[i].op;
        CLV_TRY(clv_parser_placed(p, at,
                                  op == CLV_OP_DIVIDE ? clv_fuse_quotient(p->out, term, out)
                                                      : clv_fuse_apply(p->out, op, term, 2, out)));
    }
}

clv_status clv_parser_expression(clv_parser *p, clv_fuse_term *out)
{
    clv_fuse_term term[3];
    if (++p->depth > FUSE_DEPTH)
        return clv_parser_wrong(p, p->at, "an expression may be nested at most 100 levels deep");
    CLV_TRY(binary(p, 0, &term[0]));
    clv_parser_skip(p);
    const char *at = p->at;
    *out = term[0];
    if (clv_parser_take(p, '?')) {
        CLV_TRY(clv_parser_expression(p, &term[1]));
        if (!clv_parser_take(p, ':')) return clv_parser_wrong(p, p->at, "\":\" is expected");
        CLV_TRY(clv_parser_expression(p, &term[2]));
        CLV_TRY(clv_parser_placed(p, at, clv_fuse_choose(p->out, term, out)));
    }
    --p->depth;
    return CLV_OK;
}
