/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the operators, members, functions and tests of templates. Filters are in filters.c, methods in
 * methods.c. */
#include "host/chat/calls.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>
#include <time.h>

chat_value chat_argument(const chat_arguments *a, size_t at, const char *name)
{
    for (size_t i = 0; i < a->count; ++i)
        if (a->names[i] ? name && strcmp(a->names[i], name) == 0 : i == at) return a->values[i];
    return chat_undefined;
}

/* ---- signs --------------------------------------------------------------------------------------- */

static chat_value whole_result(chat_run *run, char sign, int64_t a, int64_t b)
{
    int64_t r = 0;
    const bool wraps = sign == '+'   ? __builtin_add_overflow(a, b, &r)
                       : sign == '-' ? __builtin_sub_overflow(a, b, &r)
                                     : __builtin_mul_overflow(a, b, &r);
    return wraps ? chat_fail(run, CLV_E_SHAPE, "a number beyond 64 bits") : chat_int(r);
}

/* Divides as Python does: `/` gives a float, the quotient of `//` is rounded down, and the remainder has the divisor's
 * sign. */
static chat_value divide(chat_run *run, const char *sign, chat_value a, chat_value b)
{
    const double divisor = chat_number(b);
    if (divisor == 0) return chat_fail(run, CLV_E_ARGUMENT, "a division by zero");
    const bool whole = a.kind == CHAT_INT && b.kind == CHAT_INT;
    if (strcmp(sign, "/") == 0) return chat_float(chat_number(a) / divisor);
    if (whole && b.as.whole == -1) /* the quotient of INT64_MIN is beyond 64 bits */
        return strcmp(sign, "//") == 0 ? whole_result(run, '-', 0, a.as.whole) : chat_int(0);
    if (strcmp(sign, "//") == 0) {
        if (!whole) return chat_float(floor(chat_number(a) / divisor));
        const int64_t q = a.as.whole / b.as.whole, r = a.as.whole % b.as.whole;
        return chat_int(q - (r != 0 && (r < 0) != (b.as.whole < 0)));
    }
    if (!whole) {
        const double r = fmod(chat_number(a), divisor);
        return chat_float(r != 0 && (r < 0) != (divisor < 0) ? r + divisor : r);
    }
    const int64_t r = a.as.whole % b.as.whole;
    return chat_int(r != 0 && (r < 0) != (b.as.whole < 0) ? r + b.as.whole : r);
}

static chat_value count_up(chat_run *run, const char *sign, chat_value a, chat_value b)
{
    if (sign[0] == '/' || sign[0] == '%') return divide(run, sign, a, b);
    const bool whole = a.kind != CHAT_FLOAT && b.kind != CHAT_FLOAT;
    if (strcmp(sign, "**") == 0) {
        const double power = pow(chat_number(a), chat_number(b));
        const bool exact = whole && fabs(power) < 0x1p53 && chat_number(b) >= 0;
        return exact ? chat_int((int64_t)power) : chat_float(power);
    }
    if (whole)
        return whole_result(run, sign[0], a.kind == CHAT_INT ? a.as.whole : a.as.truth,
                            b.kind == CHAT_INT ? b.as.whole : b.as.truth);
    const double x = chat_number(a), y = chat_number(b);
    return chat_float(sign[0] == '+' ? x + y : sign[0] == '-' ? x - y : x * y);
}

static chat_value add_lists(chat_run *run, const chat_list *a, const chat_list *b)
{
    const chat_value list = chat_list_new(run);
    for (size_t i = 0; i < a->count; ++i)
        chat_list_add(run, list, a->items[i]);
    for (size_t i = 0; i < b->count; ++i)
        chat_list_add(run, list, b->items[i]);
    chat_step(run, (a->count + b->count) * sizeof *a->items);
    return list;
}

chat_value chat_binary(chat_run *run, const char *sign, chat_value a, chat_value b)
{
    if (strcmp(sign, "==") == 0) return chat_bool(chat_equals(run, a, b));
    if (strcmp(sign, "!=") == 0) return chat_bool(!chat_equals(run, a, b));
    if (strcmp(sign, "in") == 0) return chat_bool(chat_contains(run, b, a));
    if (sign[0] == '<' || sign[0] == '>') {
        const int order = chat_compare(run, a, b);
        const bool same = sign[1] == '=' && !order;
        return chat_bool(same || (sign[0] == '<' ? order < 0 : order > 0));
    }
    if (sign[0] == '~')
        return chat_string_of(chat_join(run, chat_written(run, a), chat_written(run, b)));
    if (chat_is_number(a) && chat_is_number(b)) return count_up(run, sign, a, b);
    if (sign[0] == '+' && a.kind == CHAT_STRING && b.kind == CHAT_STRING)
        return chat_string_of(chat_join(run, a.as.text, b.as.text));
    if (sign[0] == '+' && a.kind == CHAT_LIST && b.kind == CHAT_LIST)
        return add_lists(run, a.as.list, b.as.list);
    return chat_fail(run, CLV_E_UNSUPPORTED, "%s %s %s", chat_kind_name(a), sign,
                     chat_kind_name(b));
}

/* ---- members ------------------------------------------------------------------------------------- */

chat_value chat_member(chat_run *run, chat_value object, chat_value key)
{
    if (object.kind == CHAT_DICT) return chat_dict_get(object.as.dict, key);
    if (key.kind == CHAT_INT && (object.kind == CHAT_LIST || object.kind == CHAT_STRING)) {
        const int64_t count = object.kind == CHAT_LIST ? (int64_t)object.as.list->count
                                                       : (int64_t)chat_characters(object.as.text);
        const int64_t at = key.as.whole < 0 ? key.as.whole + count : key.as.whole;
        chat_step(run, object.kind == CHAT_STRING ? object.as.text.length : 0);
        if (at < 0 || at >= count) return chat_undefined;
        return object.kind == CHAT_LIST
                   ? object.as.list->items[at]
                   : chat_string_of(chat_character(object.as.text, (size_t)at, 1));
    }
    if (object.kind == CHAT_UNDEFINED)
        return chat_fail(run, CLV_E_UNSUPPORTED, "a member of something undefined");
    return chat_undefined;
}

/* Returns the first or last index of a slice of `count` items, by Python's rules for `v`; `back` is set if the slice's
 * step is negative. */
static int64_t border(chat_value v, int64_t count, int64_t fallback, bool back)
{
    if (v.kind != CHAT_INT && v.kind != CHAT_BOOL) return fallback;
    int64_t at = v.kind == CHAT_BOOL ? v.as.truth : v.as.whole;
    if (at < 0) at += count;
    const int64_t least = back ? -1 : 0, most = back ? count - 1 : count;
    return CLV_MIN(CLV_MAX(at, least), most);
}

chat_value chat_slice(chat_run *run, chat_value object, chat_value from, chat_value to,
                      chat_value step)
{
    const bool text = object.kind == CHAT_STRING;
    if (!text && object.kind != CHAT_LIST)
        return chat_fail(run, CLV_E_UNSUPPORTED, "a slice of %s", chat_kind_name(object));
    const int64_t by = step.kind == CHAT_INT ? step.as.whole : 1;
    if (!by) return chat_fail(run, CLV_E_ARGUMENT, "a slice by steps of 0");
    const int64_t count =
        text ? (int64_t)chat_characters(object.as.text) : (int64_t)object.as.list->count;
    const bool back = by < 0;
    const int64_t first = border(from, count, back ? count - 1 : 0, back);
    const int64_t last = border(to, count, back ? -1 : count, back);
    if (!chat_step(run, text ? object.as.text.length : (size_t)count)) return chat_undefined;
    if (text && by == 1)
        return chat_string_of(chat_character(object.as.text, (size_t)first,
                                             last > first ? (size_t)(last - first) : 0));
    if (text && by != -1)
        return chat_fail(run, CLV_E_UNSUPPORTED, "a text by steps of other than 1 and -1");
    chat_out out = { 0 };
    const chat_value list = text ? chat_undefined : chat_list_new(run);
    for (int64_t i = first; (back ? i > last : i < last) && !run->status; i += by) {
        if (!chat_step(run, 0)) break;
        if (text)
            chat_put(run, &out, chat_character(object.as.text, (size_t)i, 1));
        else
            chat_list_add(run, list, object.as.list->items[i]);
        if (by > count || by < -count) break;
    }
    return text ? chat_string_of(chat_put_end(&out)) : list;
}

/* ---- functions ----------------------------------------------------------------------------------- */

static chat_value make_namespace(chat_run *run, const chat_arguments *a)
{
    const chat_value dict = chat_dict_new(run);
    for (size_t i = 0; i < a->count && !run->status; ++i) {
        if (!a->names[i])
            return chat_fail(run, CLV_E_UNSUPPORTED, "a namespace of something without a name");
        chat_dict_set(run, dict, chat_text(a->names[i]), a->values[i]);
    }
    if (dict.kind == CHAT_DICT) dict.as.dict->changes = true;
    return dict;
}

static chat_value make_dict(chat_run *run, const chat_arguments *a)
{
    const chat_value dict = make_namespace(run, a);
    if (dict.kind == CHAT_DICT) dict.as.dict->changes = false;
    return dict;
}

static chat_value make_range(chat_run *run, const chat_arguments *a)
{
    int64_t n[3] = { 0, 0, 1 };
    for (size_t i = 0; i < a->count; ++i) {
        if (i > 2 || a->values[i].kind != CHAT_INT)
            return chat_fail(run, CLV_E_UNSUPPORTED, "a range of other than whole numbers");
        n[i] = a->values[i].as.whole;
    }
    if (a->count == 1) n[1] = n[0], n[0] = 0;
    if (!n[2]) return chat_fail(run, CLV_E_ARGUMENT, "a range by steps of 0");
    const chat_value list = chat_list_new(run);
    for (int64_t i = n[0]; n[2] > 0 ? i < n[1] : i > n[1];) {
        if (!chat_step(run, 0)) break;
        chat_list_add(run, list, chat_int(i));
        if (__builtin_add_overflow(i, n[2], &i)) break;
    }
    return list;
}

static chat_value refuse(chat_run *run, const chat_arguments *a)
{
    const chat_string why = chat_written(run, chat_argument(a, 0, "message"));
    return chat_fail(run, CLV_E_ARGUMENT, "the template refuses this conversation: %.*s",
                     (int)CLV_MIN(why.length, (size_t)200), why.data);
}

static chat_value date(chat_run *run, const chat_arguments *a)
{
    char format[64] = { 0 }, text[200];
    struct tm parts;
    const time_t now = (time_t)run->now;
    const chat_string wanted = chat_written(run, chat_argument(a, 0, "format"));
    if (wanted.length >= sizeof format || !wanted.length)
        return chat_fail(run, CLV_E_UNSUPPORTED, "strftime_now with a format of %zu bytes",
                         wanted.length);
    memcpy(format, wanted.data, wanted.length);
    /* refuses formats that depend on the locale, and those that only glibc has */
    for (const char *p = format; (p = strchr(p, '%')); p += 2)
        if (!p[1] || !strchr("aAbBdHIjmMpSUwWyY%e-", p[1]))
            return chat_fail(run, CLV_E_UNSUPPORTED, "strftime_now(\"%s\")", format);
    if (!localtime_r(&now, &parts)) return chat_fail(run, CLV_E_ARGUMENT, "no date");
    const size_t length = strftime(text, sizeof text, format, &parts);
    return chat_copy(run, text, length, false);
}

typedef chat_value function(chat_run *run, const chat_arguments *arguments);
static const struct {
    const char *name;
    function *call;
} functions[] = { { "namespace", make_namespace },
                  { "dict", make_dict },
                  { "range", make_range },
                  { "raise_exception", refuse },
                  { "strftime_now", date } };

bool chat_is_function(const char *name)
{
    for (size_t i = 0; i < CLV_LEN(functions); ++i)
        if (strcmp(functions[i].name, name) == 0) return true;
    return false;
}

chat_value chat_function(chat_run *run, const char *name, const chat_arguments *arguments)
{
    for (size_t i = 0; i < CLV_LEN(functions); ++i)
        if (strcmp(functions[i].name, name) == 0) return functions[i].call(run, arguments);
    return chat_fail(run, CLV_E_UNSUPPORTED, "the function \"%.40s\"", name);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static bool is_even(chat_value v)
{
    return v.kind == CHAT_INT && v.as.whole % 2 == 0;
}

/* Tests that compare, which may also be named by their sign, as in selectattr("role", "==", "user"). */
static const struct {
    const char *name, *sign;
} comparisons[] = { { "equalto", "==" }, { "eq", "==" },         { "ne", "!=" },
                    { "gt", ">" },       { "greaterthan", ">" }, { "ge", ">=" },
                    { "lt", "<" },       { "lessthan", "<" },    { "le", "<=" } };

bool chat_test(chat_run *run, const char *test, chat_value v, const chat_arguments *a)
{
    const chat_value other = chat_argument(a, 0, NULL);
    const bool text = v.kind == CHAT_STRING, list = v.kind == CHAT_LIST, dict = v.kind == CHAT_DICT;
    const struct {
        const char *name;
        bool holds;
    } known[] = { { "defined", v.kind != CHAT_UNDEFINED },
                  { "undefined", v.kind == CHAT_UNDEFINED },
                  { "none", v.kind == CHAT_NONE },
                  { "string", text },
                  { "mapping", dict },
                  { "sequence", text || list || dict },
                  { "iterable", text || list || dict || v.kind == CHAT_UNDEFINED },
                  { "number", chat_is_number(v) },
                  { "integer", v.kind == CHAT_INT },
                  { "float", v.kind == CHAT_FLOAT },
                  { "boolean", v.kind == CHAT_BOOL },
                  { "true", v.kind == CHAT_BOOL && v.as.truth },
                  { "false", v.kind == CHAT_BOOL && !v.as.truth },
                  { "callable", v.kind == CHAT_MACRO },
                  { "even", is_even(v) },
                  { "odd", v.kind == CHAT_INT && !is_even(v) } };
    for (size_t i = 0; i < CLV_LEN(known); ++i)
        if (strcmp(known[i].name, test) == 0) return known[i].holds;
    if (strcmp(test, "sameas") == 0) return v.kind == other.kind && chat_equals(run, v, other);
    for (size_t i = 0; i < CLV_LEN(comparisons); ++i)
        if (strcmp(test, comparisons[i].name) == 0 || strcmp(test, comparisons[i].sign) == 0)
            return chat_truth(chat_binary(run, comparisons[i].sign, v, other));
    if (strcmp(test, "in") == 0) return chat_contains(run, other, v);
    if (strcmp(test, "divisibleby") == 0 && v.kind == CHAT_INT && other.kind == CHAT_INT)
        return other.as.whole && other.as.whole != -1 && v.as.whole % other.as.whole == 0;
    chat_fail(run, CLV_E_UNSUPPORTED, "the test \"%.40s\" of %s", test, chat_kind_name(v));
    return false;
}
