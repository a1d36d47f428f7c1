/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the header of an .npy file: dtype, order and shape in a Python dict literal. */
#include "host/io/formats/npy_header.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/stream.h"

#include <ctype.h>
#include <string.h>

/* longest accepted key or dtype; the known ones have at most 13 characters */
enum { MAX_STRING = 64 };

/* ---- types --------------------------------------------------------------------------------- */

static const clv_npy_dtype dtypes[] = {
    { "u1", 1, CLV_U8, CLV_NPY_AS_IT_IS },   { "b1", 1, CLV_U8, CLV_NPY_AS_IT_IS },
    { "i1", 1, CLV_I16, CLV_NPY_FROM_INT8 }, { "i2", 2, CLV_I16, CLV_NPY_AS_IT_IS },
    { "u2", 2, CLV_U16, CLV_NPY_AS_IT_IS },  { "i4", 4, CLV_I32, CLV_NPY_AS_IT_IS },
    { "u4", 4, CLV_U32, CLV_NPY_AS_IT_IS },  { "i8", 8, CLV_I64, CLV_NPY_AS_IT_IS },
    { "f2", 2, CLV_F32, CLV_NPY_FROM_HALF }, { "f4", 4, CLV_F32, CLV_NPY_AS_IT_IS },
    { "f8", 8, CLV_F64, CLV_NPY_AS_IT_IS },
};

static const char *const expected_types = "bool, i1, u1, i2, u2, i4, u4, i8, f2, f4 or f8";

/* What a dtype holds that Cleave does not read, by the dtype's first letter. */
static const struct {
    char kind;
    const char *holds;
} strangers[] = {
    { 'c', "complex numbers" },
    { 'O', "Python objects" },
    { 'S', "byte strings" },
    { 'a', "byte strings" },
    { 'U', "text" },
    { 'V', "records or raw bytes" },
    { 'M', "dates" },
    { 'm', "time spans" },
    { 'u', "unsigned integers" },
    { 'f', "floating-point numbers" },
};

static clv_status find_dtype(const char *path, const char *descr, clv_npy_header *out)
{
    const bool has_order = *descr && strchr("<>=|", *descr);
    const char order = has_order ? *descr : '=';
    const char *code = descr + has_order;
    for (size_t i = 0; i < CLV_LEN(dtypes); ++i) {
        if (strcmp(code, dtypes[i].code) != 0) continue;
        /* '|' means "no byte order", but elements of several bytes need one */
        if (order == '|' && dtypes[i].size > 1) break;
        out->dtype = &dtypes[i];
        out->swap = order == CLV_NPY_FOREIGN && dtypes[i].size > 1;
        return CLV_OK;
    }
    const char *holds = "an unknown type";
    for (size_t i = 0; i < CLV_LEN(strangers); ++i)
        if (*code == strangers[i].kind) holds = strangers[i].holds;
    return clv_fail(CLV_E_FORMAT, "%s: dtype '%s' (%s) cannot be read; expected %s", path, descr,
                    holds, expected_types);
}

const char *clv_npy_code(clv_type type)
{
    size_t i = 0;
    while (dtypes[i].type != type || dtypes[i].widen != CLV_NPY_AS_IT_IS)
        ++i;
    return dtypes[i].code;
}

/* ---- the dict: a Python dict literal ----------------------------------------------------- */

typedef struct parser {
    const char *path, *begin, *at, *end;
} parser;

static clv_status bad_header(const parser *p, const char *expected)
{
    char found[40];
    if (p->at == p->end)
        return clv_fail(CLV_E_FORMAT, "%s: NPY header ends where %s was expected", p->path,
                        expected);
    return clv_fail(CLV_E_FORMAT, "%s: NPY header, byte %zu: found \"%s\", expected %s", p->path,
                    (size_t)(p->at - p->begin),
                    clv_printable(p->at, (size_t)(p->end - p->at), found, sizeof found), expected);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at)
        ++p->at;
}

/* Returns the next character that is not a space; 0 at the end. A NUL in the text also ends parsing, since no rule
 * accepts it. */
static char peek(parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool accept(parser *p, char wanted)
{
    if (peek(p) != wanted || p->at == p->end) return false;
    ++p->at;
    return true;
}

static bool accept_word(parser *p, const char *word)
{
    const size_t length = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    const char *after = p->at + length;
    if (after < p->end && (isalnum((unsigned char)*after) || *after == '_')) return false;
    p->at = after;
    return true;
}

static clv_status parse_string(parser *p, const char *what, char out[MAX_STRING])
{
    const char quote = peek(p);
    if (quote != '\'' && quote != '"') return bad_header(p, what);
    size_t length = 0;
    for (const char *c = p->at + 1; c < p->end && length < MAX_STRING - 1; ++c) {
        if (*c == quote) {
            out[length] = '\0';
            p->at = c + 1;
            return CLV_OK;
        }
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7F || *c == '\\') break;
        out[length++] = *c;
    }
    return bad_header(p, what);
}

static clv_status parse_extent(parser *p, size_t *out)
{
    size_t value = 0;
    if (!isdigit((unsigned char)peek(p)))
        return bad_header(p, "an extent (decimal digits) or the end of the shape");
    for (; p->at < p->end && isdigit((unsigned char)*p->at); ++p->at)
        if (!clv_size_mul(value, 10, &value) ||
            !clv_size_add(value, (size_t)(*p->at - '0'), &value))
            return clv_fail(
                CLV_E_SHAPE,
                "%s: an extent of the NPY shape needs more memory than can be addressed", p->path);
    if (p->at < p->end && *p->at == 'L') ++p->at; /* Python 2 wrote long integers this way */
    *out = value;
    return CLV_OK;
}

/* Parses a Python tuple: "()", "(3,)", "(3, 4)" or "(3, 4, )". "(3)" is a number in Python and is refused. */
static clv_status parse_shape(parser *p, clv_npy_header *out)
{
    bool comma = true;
    if (!accept(p, '(')) return bad_header(p, "the shape's \"(\"");
    for (out->rank = 0; !accept(p, ')');) {
        if (!comma) return bad_header(p, "\",\" or \")\" in the shape");
        size_t extent = 0;
        CLV_TRY(parse_extent(p, &extent));
        if (out->rank == CLV_MAX_RANK)
            return clv_fail(CLV_E_SHAPE, "%s: the array has more than %d axes", p->path,
                            CLV_MAX_RANK);
        out->shape[out->rank++] = extent;
        comma = accept(p, ',');
    }
    if (out->rank == 1 && !comma) return bad_header(p, "\",\" after the only extent");
    return CLV_OK;
}

static clv_status parse_descr(parser *p, clv_npy_header *out)
{
    char descr[MAX_STRING];
    if (peek(p) == '[' || peek(p) == '(')
        return clv_fail(CLV_E_FORMAT, "%s: the dtype is structured (records); expected %s", p->path,
                        expected_types);
    CLV_TRY(parse_string(p, "a quoted dtype", descr));
    return find_dtype(p->path, descr, out);
}

static clv_status parse_order(parser *p, clv_npy_header *out)
{
    out->fortran = accept_word(p, "True");
    if (!out->fortran && !accept_word(p, "False")) return bad_header(p, "True or False");
    return CLV_OK;
}

clv_status clv_npy_header_parse(const char *path, const char *text, size_t length,
                                clv_npy_header *out)
{
    static const struct {
        const char *key;
        clv_status (*parse)(parser *p, clv_npy_header *out);
    } members[] = { { "descr", parse_descr },
                    { "fortran_order", parse_order },
                    { "shape", parse_shape } };
    *out = (clv_npy_header){ 0 };
    bool seen[CLV_LEN(members)] = { false }, comma = true;
    parser p = { path, text, text, text + length };
    char key[MAX_STRING];

    if (!accept(&p, '{')) return bad_header(&p, "\"{\"");
    while (!accept(&p, '}')) {
        if (!comma) return bad_header(&p, "\",\" or \"}\"");
        CLV_TRY(parse_string(&p, "a quoted key", key));
        size_t m = 0;
        while (m < CLV_LEN(members) && strcmp(key, members[m].key) != 0)
            ++m;
        if (m == CLV_LEN(members) || seen[m])
            return clv_fail(CLV_E_FORMAT,
                            "%s: NPY header: %s key '%s'; expected descr, fortran_order and shape",
                            path, m == CLV_LEN(members) ? "unknown" : "repeated", key);
        if (!accept(&p, ':')) return bad_header(&p, "\":\"");
        CLV_TRY(members[m].parse(&p, out));
        seen[m] = true;
        comma = accept(&p, ',');
    }
    if (peek(&p) || p.at < p.end) return bad_header(&p, "nothing after \"}\"");
    for (size_t m = 0; m < CLV_LEN(members); ++m)
        if (!seen[m])
            return clv_fail(CLV_E_FORMAT, "%s: NPY header: the key '%s' is missing", path,
                            members[m].key);
    return CLV_OK;
}
