/* SPDX-License-Identifier: Apache-2.0 */
/* Implements a growing string, and strict parsers of numbers and sizes. */
#define _GNU_SOURCE /* newlocale, strtod_l */
#include "base/text.h"

#include "base/alloc.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The locale "C", a constant object of the C library that is never freed. */
static locale_t neutral;
static pthread_once_t neutral_once = PTHREAD_ONCE_INIT;

static void make_neutral(void)
{
    neutral = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Returns 0 if there was no memory for the locale. */
static locale_t the_neutral(void)
{
    pthread_once(&neutral_once, make_neutral);
    return neutral;
}

int clv_vformat(char *out, size_t capacity, const char *format, va_list args)
{
    const locale_t chosen = the_neutral();
    const locale_t before = chosen ? uselocale(chosen) : (locale_t)0;
    const int length = vsnprintf(out, capacity, format, args);
    if (before) uselocale(before);
    return length;
}

int clv_format(char *out, size_t capacity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = clv_vformat(out, capacity, format, args);
    va_end(args);
    return length;
}

void clv_text_vadd(clv_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int need = clv_vformat(NULL, 0, format, args);
    if (text->failed || need < 0 ||
        !clv_reserve(&text->data, &text->capacity, text->length + (size_t)need + 1, 1)) {
        text->failed = true;
    } else {
        clv_vformat(text->data + text->length, (size_t)need + 1, format, again);
        text->length += (size_t)need;
    }
    va_end(again);
}

void clv_text_add(clv_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clv_text_vadd(text, format, args);
    va_end(args);
}

void clv_text_bytes(clv_text *text, const void *bytes, size_t length)
{
    if (text->failed || !clv_reserve(&text->data, &text->capacity, text->length + length + 1, 1)) {
        text->failed = true;
        return;
    }
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

const char *clv_text_get(const clv_text *text)
{
    return text->data ? text->data : "";
}

void clv_text_clear(clv_text *text)
{
    clv_free(text->data);
    *text = (clv_text){ 0 };
}

void clv_text_restart(clv_text *text)
{
    text->length = 0, text->failed = false;
    if (text->data) text->data[0] = '\0';
}

bool clv_parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text) return false;
    for (const char *c = text; *c; ++c) {
        if (*c < '0' || *c > '9') return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool clv_parse_i64(const char *text, int64_t *out)
{
    uint64_t magnitude;
    const bool negative = *text == '-';
    if (!clv_parse_u64(text + (negative || *text == '+'), &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX) return false;
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

/* Reads [+-]digits[.digits][e[+-]digits] and reports where the number ends. The form is checked here, so that strtod
 * depends on the locale only by its decimal point, which is replaced where needed. */
static bool leading_double(const char *text, double *out, const char **end)
{
    const char *c = text;
    size_t digits = 0;
    if (*c == '+' || *c == '-') ++c;
    for (; isdigit((unsigned char)*c); ++c)
        ++digits;
    if (*c == '.')
        for (++c; isdigit((unsigned char)*c); ++c)
            ++digits;
    if (!digits) return false;
    if (*c == 'e' || *c == 'E') {
        const char *exponent = c + 1;
        if (*exponent == '+' || *exponent == '-') ++exponent;
        if (isdigit((unsigned char)*exponent)) {
            while (isdigit((unsigned char)*exponent))
                ++exponent;
            c = exponent;
        }
    }
    char copy[512];
    const size_t length = (size_t)(c - text);
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *stop;
    const locale_t chosen = the_neutral();
    const double value = chosen ? strtod_l(copy, &stop, chosen) : strtod(copy, &stop);
    if (*stop || !isfinite(value)) return false;
    *out = value;
    *end = c;
    return true;
}

size_t clv_decimal_length(const char *text)
{
    const char *end = text;
    while (isdigit((unsigned char)*end) || *end == '.')
        ++end;
    if ((*end == 'e' || *end == 'E') &&
        (isdigit((unsigned char)end[1]) ||
         ((end[1] == '+' || end[1] == '-') && isdigit((unsigned char)end[2])))) {
        end += 2;
        while (isdigit((unsigned char)*end))
            ++end;
    }
    return (size_t)(end - text);
}

size_t clv_name_length(const char *text)
{
    size_t length = 0;
    if (!isalpha((unsigned char)*text) && *text != '_') return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        ++length;
    return length;
}

bool clv_parse_double(const char *text, double *out)
{
    double value;
    const char *end;
    if (!leading_double(text, &value, &end) || *end) return false;
    *out = value;
    return true;
}

bool clv_parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {
        { "", 1 },
        { "B", 1 },
        { "k", 1e3 },
        { "K", 1e3 },
        { "kB", 1e3 },
        { "KB", 1e3 },
        { "M", 1e6 },
        { "MB", 1e6 },
        { "G", 1e9 },
        { "GB", 1e9 },
        { "T", 1e12 },
        { "TB", 1e12 },
        { "Ki", 1024 },
        { "KiB", 1024 },
        { "Mi", 1048576 },
        { "MiB", 1048576 },
        { "Gi", 1073741824 },
        { "GiB", 1073741824 },
        { "Ti", 1099511627776.0 },
        { "TiB", 1099511627776.0 },
    };
    double value;
    const char *end;
    if (!leading_double(text, &value, &end) || value < 0) return false;
    while (*end == ' ')
        ++end;
    for (size_t i = 0; i < CLV_LEN(units); ++i) {
        if (strcmp(end, units[i].suffix) != 0) continue;
        value *= units[i].factor;
        if (value >= 1.8e19) return false;
        *out = (uint64_t)value;
        return true;
    }
    return false;
}

bool clv_parse_percent(const char *text, double *fraction)
{
    double value;
    const char *end;
    if (!leading_double(text, &value, &end) || strcmp(end, "%") != 0) return false;
    if (!(value >= 1e-6 && value <= 100)) return false; /* a share that is no whole byte is none */
    *fraction = value / 100;
    return true;
}

const char *clv_format_bytes(uint64_t bytes, char *out)
{
    static const char units[] = " kMGTPE";
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && units[unit + 1])
        value /= 1000, ++unit;
    if (!unit)
        clv_format(out, 16, "%u B", (unsigned)bytes);
    else
        clv_format(out, 16, "%.3g %cB", value, units[unit]);
    return out;
}

const char *clv_format_seconds(double seconds, char *out)
{
    if (seconds < 0.9995e-3)
        clv_format(out, 24, "%.3g us", seconds * 1e6);
    else if (seconds < 0.9995)
        clv_format(out, 24, "%.3g ms", seconds * 1e3);
    else if (seconds < 119.5)
        clv_format(out, 24, "%.3g s", seconds);
    else if (seconds < 7200)
        clv_format(out, 24, "%d min %02d s", (int)(seconds + .5) / 60, (int)(seconds + .5) % 60);
    else
        clv_format(out, 24, "%.3g h", seconds / 3600);
    return out;
}

void clv_copy_string(char *out, size_t capacity, const char *text)
{
    size_t length = strnlen(text, capacity);
    if (length == capacity)
        for (--length; length && ((unsigned char)text[length] & 0xC0) == 0x80;)
            --length;
    memmove(out, text, length);
    out[length] = '\0';
}

int clv_find_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (int index = 0; *list; ++index) {
        const size_t span = strcspn(list, ",");
        if (span == length && memcmp(list, word, span) == 0) return index;
        list += span + (list[span] == ',');
    }
    return -1;
}

const char *clv_list_words(const char *list, const char *link, char *out, size_t capacity)
{
    clv_text text = { 0 };
    while (*list) {
        const size_t span = strcspn(list, ",");
        const char *after = list + span + (list[span] == ',');
        const bool last = !*after || !strchr(after, ',');
        clv_text_bytes(&text, list, span);
        if (*after && last)
            clv_text_add(&text, " %s ", link);
        else if (*after)
            clv_text_add(&text, ", ");
        list = after;
    }
    clv_copy_string(out, capacity, clv_text_get(&text));
    clv_text_clear(&text);
    return out;
}

bool clv_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool clv_ends_with(const char *text, const char *suffix)
{
    const size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

bool clv_contains_nocase(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; ++text)
        if (strncasecmp(text, part, length) == 0) return true;
    return length == 0;
}
