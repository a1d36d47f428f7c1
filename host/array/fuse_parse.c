/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the statements of a program (clv_fuse_parse). Of the text, only numbers reach a compiler. */
#include "host/array/fuse_parse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 65536, LONGEST_NAME = 63 };

static clv_status assign(clv_parser *p, const char *at, clv_variable *v, const clv_fuse_term *term)
{
    v->term = *term;
    if (v->typed)
        CLV_TRY(clv_parser_placed(p, at, clv_fuse_convert(p->out, term, v->type, &v->term)));
    v->assigned = true;
    return CLV_OK;
}

/* Parses the rest of a declaration after its type: one or several names, each with its value. */
static clv_status declaration(clv_parser *p, bool typed, clv_dtype type)
{
    do {
        const clv_word w = clv_parser_word(p);
        clv_fuse_term term;
        clv_dtype other;
        if (!w.length) return clv_parser_wrong(p, p->at, "the name of a variable is expected");
        if (clv_parser_variable(p, w))
            return clv_parser_wrong(p, p->at, "this name is already in use");
        if (clv_parser_type(p, w, &other))
            return clv_parser_wrong(p, p->at, "this name is that of a type");
        if (p->variables == FUSE_VARIABLES)
            return clv_parser_wrong(p, p->at, "a program may have at most 288 names");
        p->at += w.length;
        clv_parser_skip(p);
        const char *at = p->at;
        if (!clv_parser_take(p, '='))
            return clv_parser_wrong(p, p->at, "\"=\" and the variable's value are expected");
        CLV_TRY(clv_parser_expression(p, &term));
        clv_variable *v = &p->variable[p->variables++];
        *v = (clv_variable){ .name = w, .typed = typed, .type = type, .output = -1 };
        CLV_TRY(assign(p, at, v, &term));
    } while (clv_parser_take(p, ','));
    return CLV_OK;
}

static clv_status assignment(clv_parser *p, clv_word w)
{
    static const char signs[] = "+-*/";
    static const clv_op ops[] = { CLV_OP_ADD, CLV_OP_SUBTRACT, CLV_OP_MULTIPLY, CLV_OP_DIVIDE };
    clv_variable *v = clv_parser_variable(p, w);
    clv_fuse_term term[2];
    if (!v)
        return clv_parser_wrong(p, w.at,
                                "an output, a variable or a type is expected (\"auto\" declares a "
                                "variable)");
    if (v->input)
        return clv_parser_wrong(
            p, w.at, "an input cannot be assigned to; an output or a variable is expected");
    p->at += w.length;
    clv_parser_skip(p);
    const char *at = p->at, *sign = *at ? strchr(signs, *at) : NULL;
    if (sign && at[1] == '=') {
        if (!v->assigned) return clv_parser_wrong(p, w.at, "this name has no value yet");
        p->at += 2;
        CLV_TRY(clv_parser_expression(p, &term[1]));
        term[0] = v->term;
        const clv_op op = ops[sign - signs];
        CLV_TRY(clv_parser_placed(p, at,
                                  op == CLV_OP_DIVIDE
                                      ? clv_fuse_quotient(p->out, term, &term[0])
                                      : clv_fuse_apply(p->out, op, term, 2, &term[0])));
    } else if (*at == '=' && at[1] != '=') {
        ++p->at;
        CLV_TRY(clv_parser_expression(p, &term[0]));
    } else {
        return clv_parser_wrong(p, at, "=, +=, -=, *= or /= is expected");
    }
    return assign(p, at, v, &term[0]);
}

static clv_status statement(clv_parser *p)
{
    static const char *const flow[] = { "if", "for", "while", "do", "return", "switch" };
    clv_word w = clv_parser_word(p);
    clv_dtype type = CLV_F32;
    for (size_t i = 0; i < CLV_LEN(flow); ++i)
        if (clv_word_is(w, flow[i]))
            return clv_parser_wrong(p, w.at,
                                    "an assignment is expected (condition ? a : b chooses; "
                                    "clv_items_run and cleave.Kernel take OpenCL C of any kind)");
    if (!w.length) return clv_parser_wrong(p, p->at, "an assignment is expected");
    const bool fixed = clv_word_is(w, "const");
    if (fixed) {
        p->at += w.length;
        w = clv_parser_word(p);
    }
    if (clv_word_is(w, "auto") || clv_parser_type(p, w, &type)) {
        const bool typed = !clv_word_is(w, "auto");
        p->at += w.length;
        return declaration(p, typed, type);
    }
    return fixed ? clv_parser_wrong(p, p->at, "a type is expected") : assignment(p, w);
}

static clv_status statements(clv_parser *p)
{
    for (;;) {
        while (clv_parser_take(p, ';'))
            ;
        if (!*p->at) return CLV_OK;
        CLV_TRY(statement(p));
        clv_parser_skip(p);
        if (*p->at && *p->at != ';')
            return clv_parser_wrong(p, p->at, "an operator, \";\" or the end is expected");
    }
}

/* ---- the program --------------------------------------------------------------------------------- */

static clv_status check_name(const clv_fuse_name *names, size_t i)
{
    const char *const text = names[i].name;
    const clv_word w = text ? clv_word_at(text) : (clv_word){ 0 };
    const clv_parser none = { 0 };
    clv_dtype type;
    if (!w.length || text[w.length] || w.length > LONGEST_NAME)
        return clv_fail(CLV_E_ARGUMENT, "fuse: name %zu must consist of letters, digits and _", i);
    if (!clv_dtype_bytes(names[i].type) || (unsigned)names[i].role > CLV_FUSE_TYPE)
        return clv_fail(CLV_E_ARGUMENT, "fuse: %s has role %d and type %d, which do not exist",
                        text, (int)names[i].role, (int)names[i].type);
    if (clv_parser_type(&none, w, &type))
        return clv_fail(CLV_E_ARGUMENT, "fuse: \"%s\" is the name of a type", text);
    for (size_t k = 0; k < i; ++k)
        if (!strcmp(names[k].name, text))
            return clv_fail(CLV_E_ARGUMENT, "fuse: \"%s\" is the name of two values", text);
    return CLV_OK;
}

static clv_status add_names(clv_parser *p)
{
    clv_fused *f = p->out;
    for (size_t i = 0; i < p->name_count; ++i) {
        const clv_fuse_name *n = &p->names[i];
        CLV_TRY(check_name(p->names, i));
        if (n->role == CLV_FUSE_TYPE) continue;
        clv_variable *v = &p->variable[p->variables++];
        *v = (clv_variable){
            .name = clv_word_at(n->name), .typed = true, .type = n->type, .output = -1
        };
        if (n->role == CLV_FUSE_OUTPUT) {
            if (f->outputs == CLV_FUSE_OUTPUTS)
                return clv_fail(CLV_E_ARGUMENT, "fuse: at most %d outputs are possible",
                                CLV_FUSE_OUTPUTS);
            v->output = (int)f->outputs;
            f->output_type[f->outputs++] = n->type;
            continue;
        }
        if (f->inputs == CLV_FUSE_INPUTS)
            return clv_fail(CLV_E_ARGUMENT, "fuse: at most %d inputs are possible",
                            CLV_FUSE_INPUTS);
        v->input = v->assigned = true;
        v->term = (clv_fuse_term){ .is = TERM_VALUE, .value = (unsigned)f->count };
        f->value[f->count++] =
            (clv_fuse_value){ .kind = FUSE_INPUT, .type = n->type, .which = (unsigned)f->inputs };
        f->input_type[f->inputs++] = n->type;
    }
    return f->outputs ? CLV_OK
                      : clv_fail(CLV_E_ARGUMENT, "fuse: there is no output; expected 1 to %d",
                                 CLV_FUSE_OUTPUTS);
}

static clv_status parse(clv_parser *p)
{
    CLV_TRY(add_names(p));
    CLV_TRY(statements(p));
    for (size_t i = 0; i < p->variables; ++i) {
        const clv_variable *v = &p->variable[i];
        if (v->output < 0) continue;
        if (!v->assigned) {
            p->fault = strlen(p->text);
            return clv_fail(CLV_E_FORMAT,
                            "fuse: the program assigns nothing to its output \"%.*s\"",
                            (int)v->name.length, v->name.at);
        }
        p->out->output[v->output] = v->term.value;
    }
    clv_fuse_close(p->out);
    return CLV_OK;
}

clv_status clv_fuse_parse(const char *text, const clv_fuse_name *names, size_t count,
                          clv_fused **program, size_t *position)
{
    if (position) *position = 0;
    if (program) *program = NULL;
    if (!text || !names || !program)
        return clv_fail(CLV_E_ARGUMENT, "fuse: text, names or result is NULL");
    if (count > CLV_FUSE_NAMES)
        return clv_fail(CLV_E_ARGUMENT, "fuse: got %zu names, but at most %d are possible", count,
                        CLV_FUSE_NAMES);
    if (strlen(text) > LONGEST)
        return clv_fail(CLV_E_FORMAT,
                        "fuse: the program has %zu bytes, but at most %d are possible",
                        strlen(text), LONGEST);
    clv_parser *p = clv_zalloc(1, sizeof *p);
    clv_fused *made = clv_zalloc(1, sizeof *made);
    clv_status status = CLV_OK;
    if (!p || !made) {
        status = clv_fail(CLV_E_MEMORY, "fuse: out of memory");
    } else {
        *p = (clv_parser){
            .text = text, .at = text, .names = names, .name_count = count, .out = made
        };
        p->fault = SIZE_MAX;
        status = parse(p);
        if (position && p->fault != SIZE_MAX) *position = p->fault;
    }
    clv_free(p);
    if (status)
        clv_free(made);
    else
        *program = made;
    return status;
}

void clv_fuse_free(clv_fused *program)
{
    clv_free(program);
}
