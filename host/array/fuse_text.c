/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tokens and names of programs and reports errors. */
#include "host/array/fuse_parse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* ---- errors -------------------------------------------------------------------------------------- */

static void find_line(const clv_parser *p, const char *at, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (const char *c = p->text; c < at; ++c)
        if (*c == '\n')
            ++*line, *column = 1;
        else
            ++*column;
}

clv_status clv_parser_wrong(clv_parser *p, const char *at, const char *expected)
{
    char seen[24];
    size_t length = 0;
    unsigned line, column;
    find_line(p, at, &line, &column);
    p->fault = (size_t)(at - p->text);
    while (length < sizeof seen - 1 && at[length] >= ' ' && at[length] <= '~')
        ++length;
    snprintf(seen, sizeof seen, "%.*s", (int)length, at);
    const char *const other = *at ? "a character that is not printable ASCII" : "the end";
    return clv_fail(CLV_E_FORMAT, "fuse: line %u, column %u: found %s%s%s, but %s", line, column,
                    *seen ? "\"" : "", *seen ? seen : other, *seen ? "\"" : "", expected);
}

/* Adds the position to the message of an error from fuse_build.c. */
clv_status clv_parser_placed(clv_parser *p, const char *at, clv_status status)
{
    char message[240];
    unsigned line, column;
    if (!status || p->fault != SIZE_MAX || status == CLV_E_MEMORY) return status;
    find_line(p, at, &line, &column);
    p->fault = (size_t)(at - p->text);
    snprintf(message, sizeof message, "%s", clv_error_message());
    return clv_fail(status, "fuse: line %u, column %u: %s", line, column, message);
}

/* ---- tokens -------------------------------------------------------------------------------------- */

void clv_parser_skip(clv_parser *p)
{
    for (;;) {
        while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
            ++p->at;
        if (p->at[0] == '/' && p->at[1] == '/') {
            p->at += strcspn(p->at, "\n");
        } else if (p->at[0] == '/' && p->at[1] == '*') {
            const char *end = strstr(p->at + 2, "*/");
            p->at = end ? end + 2 : p->at + strlen(p->at);
        } else {
            return;
        }
    }
}

bool clv_parser_take(clv_parser *p, char token)
{
    clv_parser_skip(p);
    if (*p->at != token) return false;
    ++p->at;
    return true;
}

clv_word clv_word_at(const char *at)
{
    return (clv_word){ .at = at, .length = clv_name_length(at) };
}

bool clv_word_is(clv_word w, const char *name)
{
    return strlen(name) == w.length && !strncmp(w.at, name, w.length);
}

clv_word clv_parser_word(clv_parser *p)
{
    clv_parser_skip(p);
    return clv_word_at(p->at);
}

/* ---- names --------------------------------------------------------------------------------------- */

bool clv_parser_type(const clv_parser *p, clv_word w, clv_dtype *type)
{
    static const struct {
        const char *name;
        clv_dtype type;
    } others[] = { { "char", CLV_I8 },    { "uchar", CLV_U8 },  { "short", CLV_I16 },
                   { "ushort", CLV_U16 }, { "int", CLV_I32 },   { "uint", CLV_U32 },
                   { "long", CLV_I64 },   { "ulong", CLV_U64 }, { "half", CLV_F16 },
                   { "float", CLV_F32 },  { "double", CLV_F64 } };
    for (size_t i = 0; i < p->name_count; ++i)
        if (p->names[i].role == CLV_FUSE_TYPE && clv_word_is(w, p->names[i].name)) {
            *type = p->names[i].type;
            return true;
        }
    for (int i = 0; i < CLV_DTYPES; ++i)
        if (clv_word_is(w, clv_dtype_name((clv_dtype)i))) {
            *type = (clv_dtype)i;
            return true;
        }
    for (size_t i = 0; i < CLV_LEN(others); ++i)
        if (clv_word_is(w, others[i].name)) {
            *type = others[i].type;
            return true;
        }
    return false;
}

clv_variable *clv_parser_variable(clv_parser *p, clv_word w)
{
    for (size_t i = p->variables; i-- > 0;)
        if (p->variable[i].name.length == w.length &&
            !strncmp(p->variable[i].name.at, w.at, w.length))
            return &p->variable[i];
    return NULL;
}

/* Functions whose names differ from those of clv_op. WHERE and POW have rules of their own. */
static const struct {
    const char *name;
    clv_op op;
} functions[] = { { "fabs", CLV_OP_ABS },   { "min", CLV_OP_FMIN },  { "max", CLV_OP_FMAX },
                  { "rint", CLV_OP_ROUND }, { "power", CLV_OP_POW }, { "clamp", CLV_OP_FMAX },
                  { "rsqrt", CLV_OP_SQRT } };

bool clv_word_function(clv_word w, clv_op *op)
{
    for (size_t i = 0; i < CLV_LEN(functions); ++i)
        if (clv_word_is(w, functions[i].name)) {
            *op = functions[i].op;
            return true;
        }
    for (int i = CLV_OP_ADD; i < CLV_OPS; ++i)
        if (i != CLV_OP_RAMP && clv_word_is(w, clv_op_name((clv_op)i))) {
            *op = (clv_op)i;
            return true;
        }
    return false;
}
