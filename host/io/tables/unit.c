/* SPDX-License-Identifier: Apache-2.0 */
/* Parses units such as "10**(-16)*erg/s/cm**2/Angstrom" into a scale and the powers of basic units. */
#include "host/io/tables/unit.h"

#include "base/alloc.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* MOST_POWER: largest exponent in a text. MOST_SUM: largest power of a name in all; MOST_POWER times MOST_SUM is an
 * int. */
enum { NAME = 24, MOST_NAMES = 12, MOST_POWER = 400, MOST_SUM = 1000000, DEEPEST = 8 };

/* A scale and the powers of names: the metre, the second and the joule first, then others as the text has them. */
typedef struct parsed {
    double log_scale; /* log10 */
    size_t count;
    struct {
        char name[NAME];
        int power;
    } of[MOST_NAMES];
    bool is_known; /* every name is one of `symbols` */
} parsed;

typedef struct symbol {
    const char *name;
    double log_scale; /* log10 of m^metre s^second J^joule, or of `counted` */
    signed char metre, second, joule;
    const char *counted;
} symbol;

/* "A" is the ampere by the standard, but the Angstrom in every spectrum. */
static const symbol symbols[] = {
    { "m", 0, 1, 0, 0, NULL },
    { "s", 0, 0, 1, 0, NULL },
    { "sec", 0, 0, 1, 0, NULL },
    { "Hz", 0, 0, -1, 0, NULL },
    { "hz", 0, 0, -1, 0, NULL },
    { "J", 0, 0, 0, 1, NULL },
    { "W", 0, 0, -1, 1, NULL },
    { "erg", -7, 0, 0, 1, NULL },
    { "ergs", -7, 0, 0, 1, NULL },
    { "Jy", -26, -2, 0, 1, NULL },
    { "JY", -26, -2, 0, 1, NULL },
    { "flam", -7 + 4 + 10, -3, -1, 1, NULL },
    { "fnu", -7 + 4, -2, 0, 1, NULL },
    { "A", -10, 1, 0, 0, NULL },
    { "AA", -10, 1, 0, 0, NULL },
    { "\xC3\x85", -10, 1, 0, 0, NULL },
    { "Ang", -10, 1, 0, 0, NULL },
    { "Angstrom", -10, 1, 0, 0, NULL },
    { "Angstroms", -10, 1, 0, 0, NULL },
    { "micron", -6, 1, 0, 0, NULL },
    { "microns", -6, 1, 0, 0, NULL },
    { "ct", 0, 0, 0, 0, "count" },
    { "count", 0, 0, 0, 0, "count" },
    { "counts", 0, 0, 0, 0, "count" },
    { "adu", 0, 0, 0, 0, "adu" },
    { "DN", 0, 0, 0, 0, "adu" },
    { "electron", 0, 0, 0, 0, "electron" },
    { "electrons", 0, 0, 0, 0, "electron" },
    { "e-", 0, 0, 0, 0, "electron" },
    { "ph", 0, 0, 0, 0, "photon" },
    { "photon", 0, 0, 0, 0, "photon" },
    { "photons", 0, 0, 0, 0, "photon" },
    { "arcsec", 0, 0, 0, 0, "arcsec" },
    { "sr", 0, 0, 0, 0, "sr" },
    { "pix", 0, 0, 0, 0, "pixel" },
    { "pixel", 0, 0, 0, 0, "pixel" },
    { "mag", 0, 0, 0, 0, "mag" },
};

static const struct {
    const char *name;
    double log_scale;
} prefixes[] = { { "\xC2\xB5", -6 }, { "\xCE\xBC", -6 }, { "f", -15 }, { "p", -12 },
                 { "n", -9 },        { "u", -6 },        { "m", -3 },  { "c", -2 },
                 { "d", -1 },        { "k", 3 },         { "M", 6 },   { "G", 9 } };

/* Returns whether a text is a symbol's name: words of three letters or more in any case ("ANGSTROM", "adu"). */
static bool is_symbol(const char *text, const symbol *s)
{
    return strlen(s->name) > 2 ? strcasecmp(text, s->name) == 0 : strcmp(text, s->name) == 0;
}

/* Returns the symbol of a name, and the log10 of its prefix; NULL if there is none. */
static const symbol *find(const char *name, double *prefix)
{
    *prefix = 0;
    for (size_t i = 0; i < CLV_LEN(symbols); ++i)
        if (is_symbol(name, &symbols[i])) return &symbols[i];
    for (size_t p = 0; p < CLV_LEN(prefixes); ++p) {
        if (!clv_starts_with(name, prefixes[p].name)) continue;
        *prefix = prefixes[p].log_scale;
        for (size_t i = 0; i < CLV_LEN(symbols); ++i)
            if (is_symbol(name + strlen(prefixes[p].name), &symbols[i])) return &symbols[i];
    }
    return NULL;
}

static bool add(parsed *u, const char *name, int power)
{
    size_t i = 0;
    while (i < u->count && strcmp(u->of[i].name, name) != 0)
        ++i;
    if (i == MOST_NAMES) return false;
    if (i == u->count) clv_copy_string(u->of[u->count++].name, NAME, name);
    u->of[i].power += power;
    return abs(u->of[i].power) <= MOST_SUM;
}

static bool add_name(parsed *u, const char *name, int power)
{
    double prefix;
    const symbol *s = find(name, &prefix);
    u->is_known &= s != NULL;
    if (!s) return add(u, name, power);
    u->log_scale += (s->log_scale + prefix) * power;
    if (s->counted) return add(u, s->counted, power);
    return add(u, "m", s->metre * power) && add(u, "s", s->second * power) &&
           add(u, "J", s->joule * power);
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        ++at;
    return at;
}

/* Reads an exponent, as in "cm**(-2)", "cm^2", "cm-2", "10-17"; *power is 1 if there is none. Returns where it ends;
 * NULL for an exponent that is no whole number. */
static const char *read_power(const char *at, int *power)
{
    const char *const blank = skip_blanks(at);
    const bool is_marked = *blank == '^' || (blank[0] == '*' && blank[1] == '*');
    *power = 1;
    if (is_marked) at = skip_blanks(blank + (*blank == '^' ? 1 : 2));
    const char close = !is_marked ? 0 : *at == '(' ? ')' : *at == '{' ? '}' : 0;
    if (close) at = skip_blanks(at + 1);
    const bool is_signed = *at == '-' || *at == '+';
    if (!isdigit((unsigned char)at[is_signed])) return is_marked ? NULL : at;
    char *end;
    const long value = strtol(at, &end, 10);
    if (value > MOST_POWER || value < -MOST_POWER) return NULL;
    *power = (int)value;
    at = end;
    if (!close) return at;
    at = skip_blanks(at);
    return *at == close ? at + 1 : NULL;
}

static const char *read_number(const char *at, parsed *u, int sign)
{
    char text[NAME];
    double value;
    int power;
    size_t n = clv_decimal_length(at);
    while (n && at[n - 1] == '.') /* "10.erg": the point multiplies */
        --n;
    if (n >= sizeof text) return NULL;
    snprintf(text, sizeof text, "%.*s", (int)n, at);
    if (!clv_parse_double(text, &value) || value <= 0) return NULL;
    if ((at = read_power(at + n, &power))) u->log_scale += sign * power * log10(value);
    return at;
}

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80 || c == '_' || c == '%';
}

static const char *read_name(const char *at, parsed *u, int sign)
{
    char name[NAME];
    int power;
    size_t n = 0;
    while (is_letter(at[n]))
        ++n;
    if (n == 1 && *at == 'e' && at[1] == '-' && !isdigit((unsigned char)at[2])) ++n; /* e- */
    if (!n || n >= sizeof name) return NULL;
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    if (strcmp(name, "x") == 0) return at + n; /* 1x10^-17 */
    at = read_power(at + n, &power);
    return at && add_name(u, name, sign * power) ? at : NULL;
}

static bool merge(parsed *u, const parsed *part, int power)
{
    u->log_scale += power * part->log_scale;
    u->is_known &= part->is_known;
    for (size_t i = 0; i < part->count; ++i)
        if (!add(u, part->of[i].name, power * part->of[i].power)) return false;
    return true;
}

/* Reads a product up to its end or the closing parenthesis, and returns where it ends. A slash divides by the next
 * factor only. Returns NULL for a text that is no unit. */
static const char *read_product(const char *at, parsed *u, int depth)
{
    int sign = 1;
    *u = (parsed){ .is_known = true };
    while (at && *(at = skip_blanks(at)) && *at != ')') {
        if (*at == '.' || *at == '*' || *at == '/') {
            if (*at == '/' && sign < 0) return NULL;
            if (*at == '/') sign = -1;
            ++at;
            continue;
        }
        if (*at == '(') {
            parsed part;
            int power;
            at = depth < DEEPEST ? read_product(at + 1, &part, depth + 1) : NULL;
            if (!at || *at != ')' || !(at = read_power(at + 1, &power))) return NULL;
            if (!merge(u, &part, sign * power)) return NULL;
        } else if (isdigit((unsigned char)*at)) {
            at = read_number(at, u, sign);
        } else {
            at = read_name(at, u, sign);
        }
        sign = 1;
    }
    return sign < 0 ? NULL : at;
}

static bool parse(const char *text, parsed *u)
{
    const char *end = read_product(text, u, 0);
    return end && !*end;
}

clv_unit_match clv_unit_compare(const char *unit, const char *base, int power, double *factor)
{
    parsed a, b;
    if (power == 1 && strcmp(unit, base) == 0) {
        *factor = 1;
        return CLV_UNITS_EQUAL;
    }
    if (!parse(unit, &a) || !parse(base, &b)) return CLV_UNITS_UNKNOWN;
    const bool known = a.is_known && b.is_known;
    if (!merge(&a, &b, -power)) return CLV_UNITS_UNKNOWN;
    for (size_t i = 0; i < a.count; ++i)
        if (a.of[i].power) return known ? CLV_UNITS_DIFFER : CLV_UNITS_UNKNOWN;
    const double whole = round(a.log_scale);
    *factor = pow(10, fabs(a.log_scale - whole) < 1e-9 ? whole : a.log_scale);
    return isfinite(*factor) && *factor > 0 ? CLV_UNITS_EQUAL : CLV_UNITS_UNKNOWN;
}
