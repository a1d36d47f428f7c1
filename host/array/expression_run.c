/* SPDX-License-Identifier: Apache-2.0 */
/* Writes steps as OpenCL C and chooses which of their numbers become kernel arguments; executes steps on the host, one
 * block of elements at a time. */
#include "host/array/expression.h"

#include "base/digest.h"

#include <math.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------------------- */

static unsigned arguments_of(const clv_step *s)
{
    switch (s->kind) {
    case STEP_NUMBER:
    case STEP_INPUT:
        return 0;
    case STEP_NEGATE:
    case STEP_NOT:
        return 1;
    case STEP_CHOOSE:
        return 3;
    case STEP_CALL:
        return clv_functions[s->which].arguments;
    default:
        return 2;
    }
}

static bool has_exact_reciprocal(float x)
{
    int exponent;
    return isfinite(x) && fabsf(frexpf(x, &exponent)) == 0.5f && exponent > -120 && exponent < 120;
}

/* Returns whether a compiler makes better code if it knows the value of argument `which` of a step, a number. */
static bool is_better_known(const clv_step *s, unsigned which, float number)
{
    if (s->kind == STEP_DIVIDE) return which == 1 && has_exact_reciprocal(number);
    return s->kind == STEP_CALL && which == 1 && !strcmp(clv_functions[s->which].name, "pow");
}

clv_numbers clv_expression_numbers(const clv_expression *e)
{
    clv_numbers found = { .count = 0 };
    bool fixed[EXPRESSION_STEPS] = { false }; /* step has only numbers as operands */
    bool used[EXPRESSION_STEPS] = { false }, known[EXPRESSION_STEPS] = { false };
    for (unsigned i = 0; i < e->count; ++i) {
        const clv_step *s = &e->step[i];
        fixed[i] = s->kind != STEP_INPUT;
        for (unsigned k = 0; k < arguments_of(s); ++k)
            fixed[i] = fixed[i] && fixed[s->argument[k]];
        for (unsigned k = 0; k < arguments_of(s); ++k) {
            const unsigned a = s->argument[k];
            used[a] = true;
            known[a] |= fixed[i] || is_better_known(s, k, e->step[a].number);
        }
    }
    for (unsigned i = 0; i < e->count && found.count < EXPRESSION_NUMBERS; ++i)
        if (e->step[i].kind == STEP_NUMBER && used[i] && !known[i]) found.step[found.count++] = i;
    return found;
}

/* Returns the index of a step among the kernel's number arguments, or EXPRESSION_NUMBERS if the step is not one of
 * them. */
static unsigned place_of(const clv_numbers *numbers, unsigned step)
{
    for (unsigned i = 0; i < numbers->count; ++i)
        if (numbers->step[i] == step) return i;
    return EXPRESSION_NUMBERS;
}

uint64_t clv_expression_hash(const clv_expression *e, const clv_numbers *numbers)
{
    uint64_t h = clv_fnv1a(CLV_FNV1A, &e->result, sizeof e->result);
    for (unsigned i = 0; i < e->count; ++i) {
        const clv_step *s = &e->step[i];
        const unsigned kind = (unsigned)s->kind, place = place_of(numbers, i);
        h = clv_fnv1a(h, &kind, sizeof kind);
        h = clv_fnv1a(h, s->argument, arguments_of(s) * sizeof *s->argument);
        if (s->kind == STEP_INPUT || s->kind == STEP_CALL)
            h = clv_fnv1a(h, &s->which, sizeof s->which);
        if (s->kind == STEP_NUMBER && place == EXPRESSION_NUMBERS)
            h = clv_fnv1a(h, &s->number, sizeof s->number);
        else if (s->kind == STEP_NUMBER)
            h = clv_fnv1a(h, &place, sizeof place);
    }
    return h;
}

/* ---- as OpenCL C --------------------------------------------------------------------------------- */

/* Writes a constant as its bits: this avoids rounding, and no text of the caller's reaches the compiler. */
static void write_number(clv_text *text, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    clv_text_add(text, "(fvec)(as_float(0x%08xu))", (unsigned)bits);
}

static void write_step(const clv_step *s, clv_text *text)
{
    static const char *const forms[] = {
        [STEP_NEGATE] = "-t%u",
        [STEP_NOT] = "pick(t%u == ZERO, ONE, ZERO)",
        [STEP_ADD] = "t%u + t%u",
        [STEP_SUBTRACT] = "t%u - t%u",
        [STEP_MULTIPLY] = "t%u * t%u",
        [STEP_DIVIDE] = "t%u / t%u",
        [STEP_REMAINDER] = "remainder_of(t%u, t%u)",
        [STEP_LESS] = "pick(t%u < t%u, ONE, ZERO)",
        [STEP_LESS_EQUAL] = "pick(t%u <= t%u, ONE, ZERO)",
        [STEP_EQUAL] = "pick(t%u == t%u, ONE, ZERO)",
        [STEP_NOT_EQUAL] = "pick(t%u != t%u, ONE, ZERO)",
        [STEP_AND] = "pick((t%u != ZERO) & (t%u != ZERO), ONE, ZERO)",
        [STEP_OR] = "pick((t%u != ZERO) | (t%u != ZERO), ONE, ZERO)",
        [STEP_CHOOSE] = "WHERE(t%u, t%u, t%u)",
    };
    const unsigned *a = s->argument;
    switch (s->kind) {
    case STEP_NUMBER:
        write_number(text, s->number);
        break;
    case STEP_INPUT:
        clv_text_add(text, "IN%u", s->which);
        break;
    case STEP_CALL:
        clv_text_add(text, "%s(t%u", clv_functions[s->which].cl, a[0]);
        for (unsigned i = 1; i < clv_functions[s->which].arguments; ++i)
            clv_text_add(text, ", t%u", a[i]);
        clv_text_add(text, ")");
        break;
    case STEP_NEGATE:
    case STEP_NOT:
        clv_text_add(text, forms[s->kind], a[0]);
        break;
    case STEP_CHOOSE:
        clv_text_add(text, forms[s->kind], a[0], a[1], a[2]);
        break;
    default:
        clv_text_add(text, forms[s->kind], a[0], a[1]);
        break;
    }
}

void clv_expression_write(const clv_expression *e, const clv_numbers *numbers, clv_text *text)
{
    for (unsigned i = 0; i < e->count; ++i) {
        const unsigned place = place_of(numbers, i);
        clv_text_add(text, "        const fvec t%u = ", i);
        if (place < EXPRESSION_NUMBERS)
            clv_text_add(text, "(fvec)(k%u)", place);
        else
            write_step(&e->step[i], text);
        clv_text_add(text, ";\n");
    }
}

/* ---- on the host --------------------------------------------------------------------------------- */

size_t clv_expression_room(const clv_expression *e)
{
    return (size_t)e->count * EXPRESSION_BLOCK;
}

static float remainder_of(float x, float y)
{
    const float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

#define EACH(value)                    \
    for (size_t i = 0; i < count; ++i) \
        out[i] = (value);              \
    break

static void do_step(const clv_step *s, float *out, const float *a, const float *b, const float *c,
                    size_t count)
{
    switch (s->kind) {
    case STEP_NUMBER:
        EACH(s->number);
    case STEP_INPUT:
        break;
    case STEP_NEGATE:
        EACH(-a[i]);
    case STEP_NOT:
        EACH(a[i] == 0 ? 1.0f : 0.0f);
    case STEP_ADD:
        EACH(a[i] + b[i]);
    case STEP_SUBTRACT:
        EACH(a[i] - b[i]);
    case STEP_MULTIPLY:
        EACH(a[i] * b[i]);
    case STEP_DIVIDE:
        EACH(a[i] / b[i]);
    case STEP_REMAINDER:
        EACH(remainder_of(a[i], b[i]));
    case STEP_LESS:
        EACH(a[i] < b[i] ? 1.0f : 0.0f);
    case STEP_LESS_EQUAL:
        EACH(a[i] <= b[i] ? 1.0f : 0.0f);
    case STEP_EQUAL:
        EACH(a[i] == b[i] ? 1.0f : 0.0f);
    case STEP_NOT_EQUAL:
        EACH(a[i] != b[i] ? 1.0f : 0.0f);
    case STEP_AND:
        EACH(a[i] != 0 && b[i] != 0 ? 1.0f : 0.0f);
    case STEP_OR:
        EACH(a[i] != 0 || b[i] != 0 ? 1.0f : 0.0f);
    case STEP_CHOOSE:
        EACH(a[i] != 0 ? b[i] : c[i]);
    case STEP_CALL:
        clv_functions[s->which].host(out, a, b, c, count);
        break;
    }
}

static void do_block(const clv_expression *e, const float *const *inputs, const size_t *stride,
                     size_t first, size_t count, float *out, float *room)
{
    const float *at[EXPRESSION_STEPS];
    for (unsigned k = 0; k < e->count; ++k) {
        const clv_step *s = &e->step[k];
        float *to = k == e->result && s->kind != STEP_INPUT ? out : room + k * EXPRESSION_BLOCK;
        if (s->kind == STEP_INPUT && stride[s->which]) {
            at[k] = inputs[s->which] + first;
        } else if (s->kind == STEP_INPUT) {
            for (size_t i = 0; i < count; ++i)
                to[i] = *inputs[s->which];
            at[k] = to;
        } else {
            do_step(s, to, at[s->argument[0]], at[s->argument[1]], at[s->argument[2]], count);
            at[k] = to;
        }
    }
    if (at[e->result] != out) memmove(out, at[e->result], count * sizeof *out);
}

void clv_expression_compute(const clv_expression *e, const float *const *inputs,
                            const size_t *stride, size_t count, float *out, float *room)
{
    for (size_t first = 0; first < count; first += EXPRESSION_BLOCK) {
        const size_t rest = count - first;
        do_block(e, inputs, stride, first, rest < EXPRESSION_BLOCK ? rest : EXPRESSION_BLOCK,
                 out + first, room);
    }
}
