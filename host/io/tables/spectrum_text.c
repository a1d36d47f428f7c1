/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a spectrum from text: lines of two to four numbers, with or without a line of names before them. */
#include "host/io/lines.h"
#include "host/io/tables/spectrum.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_COLUMNS = 16, WORD = 64, MOST_LINES = 1 << 24, CHUNK = 4096, CHUNK_BYTES = 1 << 20 };

typedef struct reader {
    const char *path;
    const clv_spectrum_names *names; /* the user's; NULL: none */
    double *value[MOST_COLUMNS];
    size_t capacity[MOST_COLUMNS], rows, columns;
    clv_spectrum_role role[MOST_COLUMNS]; /* roles of the columns, from the line of names */
    int64_t bits;
    /* Angstrom per unit of wavelength, 0 if unknown; told: stated before the line of names */
    double angstrom, told;
    bool named, per_hertz;
    clv_spectrum_unit_texts unit; /* of the columns that ECSV declares */
} reader;

static bool is_between(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r' || c == '|';
}

/* Copies the next word in [*at, end), and moves *at past it. Returns false at the end. */
static bool next_word(const char **at, const char *end, char out[WORD])
{
    size_t n = 0;
    while (*at < end && is_between(**at))
        ++*at;
    while (*at < end && !is_between(**at)) {
        if (n + 1 < WORD) out[n++] = **at;
        ++*at;
    }
    out[n] = '\0';
    return n > 0;
}

/* Returns the separator of the names in a line. If a name that the user gave contains a blank, it is the first of ',',
 * ';', tab and '|' that is in the line; else 0, which stands for any of these characters and blanks. */
static char separator_of(const clv_spectrum_names *names, const char *at, const char *end)
{
    bool blanks = false;
    for (int role = 1; names && role < CLV_ROLES; ++role)
        blanks |= strchr(names->of[role], ' ') != NULL;
    for (const char *s = ",;\t|"; blanks && *s; ++s)
        if (memchr(at, *s, (size_t)(end - at))) return *s;
    return 0;
}

/* Copies the next name in [*at, end) without the blanks and quotes around it, and moves *at past it. Returns false at
 * the end. */
static bool next_name(const char **at, const char *end, char separator, char out[WORD])
{
    if (!separator) return next_word(at, end, out);
    if (*at >= end) return false;
    const char *stop = memchr(*at, separator, (size_t)(end - *at));
    const char *from = *at, *to = stop ? stop : end;
    *at = stop ? stop + 1 : end;
    while (from < to && (*from == ' ' || *from == '"'))
        ++from;
    while (to > from && (to[-1] == ' ' || to[-1] == '"' || to[-1] == '\r'))
        --to;
    snprintf(out, WORD, "%.*s", (int)CLV_MIN((size_t)(to - from), (size_t)WORD - 1), from);
    return true;
}

/* Copies a unit in ECSV, which may contain blanks, up to the comma or bracket after it. */
static void copy_unit(const char *at, const char *end, char out[WORD])
{
    const char *stop;
    while (at < end && (*at == ' ' || *at == '\''))
        ++at;
    for (stop = at; stop < end && !strchr(",}'", *stop);)
        ++stop;
    while (stop > at && stop[-1] == ' ')
        --stop;
    snprintf(out, WORD, "%.*s", (int)CLV_MIN((size_t)(stop - at), (size_t)WORD - 1), at);
}

/* Reads name and unit of a column that ECSV declares in a line such as "# - {name: wave, unit: nm, datatype:
 * float64}". */
static void take_ecsv(reader *r, const char *at, const char *end)
{
    char word[WORD], name[WORD] = "", unit[WORD] = "";
    while (next_word(&at, end, word)) {
        if (strcmp(word, "unit:") == 0) copy_unit(at, end, unit);
        if ((strcmp(word, "{name:") != 0 && strcmp(word, "name:") != 0) ||
            !next_word(&at, end, word))
            continue;
        clv_copy_string(name, WORD, word + (*word == '\''));
        for (size_t n = strlen(name); n && strchr("'}", name[n - 1]); --n)
            name[n - 1] = '\0';
    }
    const clv_spectrum_role role = clv_spectrum_role_among(r->names, name);
    if (role == CLV_ROLE_WAVE) r->told = clv_angstrom_in(unit);
    if (role == CLV_ROLE_FLUX) r->per_hertz = clv_is_per_hertz(unit);
    clv_copy_string(r->unit.of[role], sizeof r->unit.of[role], unit);
}

/* Takes the unit of the wavelengths from a line of units after the line of names. */
static void take_units(reader *r, const char *at, const char *end)
{
    char word[WORD];
    for (size_t n = 0; n < MOST_COLUMNS && next_word(&at, end, word); ++n)
        if (r->role[n] == CLV_ROLE_WAVE && clv_angstrom_in(word) > 0)
            r->angstrom = clv_angstrom_in(word);
}

/* Takes the columns' roles from a line of names, such as "# wave flux err" or "wavelength[nm],flux", if it has known
 * ones. */
static void take_names(reader *r, const char *at, const char *end)
{
    clv_spectrum_role role[MOST_COLUMNS] = { CLV_ROLE_NONE };
    char word[WORD];
    size_t n = 0;
    bool wave = false, flux = false;
    double angstrom = 0;
    int64_t bits = -1;
    while (at < end && (*at == '#' || *at == '%' || is_between(*at)))
        ++at;
    if (end - at > 3 && strncmp(at, "- {", 3) == 0) take_ecsv(r, at, end);
    const char *const first = at;
    const char separator = separator_of(r->names, at, end);
    while (n < MOST_COLUMNS && next_name(&at, end, separator, word)) {
        char *open = strpbrk(word, "[("), *close;
        if (open && (close = strpbrk(open, "])"))) {
            *close = *open = '\0';
            for (char *e = open; e > word && e[-1] == ' ';)
                *--e = '\0';
            if (open == word) { /* a separate unit belongs to the name before it */
                if (n && (role[n - 1] == CLV_ROLE_WAVE)) angstrom = clv_angstrom_in(open + 1);
                continue;
            }
        }
        role[n] = clv_spectrum_role_among(r->names, word);
        wave |= role[n] == CLV_ROLE_WAVE || role[n] == CLV_ROLE_LOG_WAVE;
        flux |= role[n] == CLV_ROLE_FLUX;
        if (role[n] == CLV_ROLE_MASK) bits = clv_spectrum_mask_bits(word);
        if (role[n] == CLV_ROLE_WAVE && open) angstrom = clv_angstrom_in(open + 1);
        ++n;
    }
    if (!wave || !flux) {
        if (r->named) take_units(r, first, end);
        return;
    }
    memcpy(r->role, role, sizeof role);
    r->named = true, r->angstrom = angstrom > 0 ? angstrom : r->told, r->bits = bits;
}

static double number_in(const char *word, bool *ok)
{
    double value = NAN;
    char other[WORD];
    *ok = clv_parse_double(word, &value);
    if (*ok) return value;
    clv_copy_string(other, sizeof other, word); /* Fortran writes 1.0D-17 */
    char *const power = strpbrk(other, "dD");
    if (power && power > other) {
        *power = 'e';
        if ((*ok = clv_parse_double(other, &value))) return value;
        value = NAN;
    }
    if (strcasecmp(word, "true") == 0 || strcasecmp(word, "false") == 0) { /* a mask */
        *ok = true;
        return strcasecmp(word, "true") == 0;
    }
    if (!*ok &&
        (strcmp(word, "nan") == 0 || strcmp(word, "NaN") == 0 || strcmp(word, "NAN") == 0 ||
         strcmp(word, "inf") == 0 || strcmp(word, "-nan") == 0 || strcmp(word, "\"\"") == 0 ||
         strcmp(word, "--") == 0)) /* Astropy writes a masked cell in the last two ways */
        *ok = true;
    return value;
}

static clv_status take_line(reader *r, const char *at, size_t length, uint64_t line)
{
    const char *const end = at + length, *begin = at;
    char word[WORD];
    double row[MOST_COLUMNS];
    size_t n = 0;
    if (line == 1 && length >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3, begin += 3;
    while (at < end && is_between(*at))
        ++at;
    if (at == end) return CLV_OK;
    if (*at == '#' || *at == '%') {
        if (!r->rows) take_names(r, at, end);
        return CLV_OK;
    }
    while (n < MOST_COLUMNS && next_word(&at, end, word)) {
        bool ok;
        row[n] = number_in(word, &ok);
        if (ok) {
            ++n;
            continue;
        }
        if (!r->rows && !n) {
            take_names(r, begin, end);
            return CLV_OK;
        }
        return clv_fail(CLV_E_FORMAT, "%s: line %llu: \"%s\" is not a number", r->path,
                        (unsigned long long)line, word);
    }
    if (!r->rows) r->columns = n;
    if (n != r->columns || n < 2)
        return clv_fail(CLV_E_FORMAT,
                        "%s: line %llu has %zu numbers, expected %zu: wavelength, flux, and "
                        "perhaps its error and a "
                        "mask",
                        r->path, (unsigned long long)line, n, CLV_MAX(r->columns, (size_t)2));
    for (size_t c = 0; c < n; ++c) {
        if (!clv_reserve(&r->value[c], &r->capacity[c], r->rows + 1, sizeof(double)))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", r->path);
        r->value[c][r->rows] = row[c];
    }
    return ++r->rows > MOST_LINES
               ? clv_fail(CLV_E_FORMAT, "%s: there are more than %d lines", r->path, MOST_LINES)
               : CLV_OK;
}

/* Returns whether the line of names contains all names that the user gave. */
static bool has_all(const reader *r)
{
    for (int role = 1; r->names && role < CLV_ROLES; ++role) {
        bool found = !*r->names->of[role];
        for (size_t k = 0; k < r->columns && r->named; ++k)
            found |= r->role[k] == (clv_spectrum_role)role;
        if (!found) return false;
    }
    return true;
}

static clv_status assemble(const reader *r, clv_one_spectrum *out)
{
    static const clv_spectrum_role usual[] = { CLV_ROLE_WAVE, CLV_ROLE_FLUX, CLV_ROLE_ERROR,
                                               CLV_ROLE_MASK };
    clv_spectrum_columns c = {
        .count = r->rows, .angstrom = r->angstrom, .bad_bits = r->bits, .per_hertz = r->per_hertz
    };
    if (!r->rows)
        return clv_fail(CLV_E_FORMAT,
                        "%s: neither FITS nor text with lines of numbers (wavelength, flux, and "
                        "perhaps its error and "
                        "a mask)",
                        r->path);
    CLV_TRY(clv_spectrum_check_flux_unit(r->path, r->unit.of[CLV_ROLE_FLUX]));
    if (!has_all(r)) {
        char wanted[256];
        clv_spectrum_list_names(r->names, wanted, sizeof wanted);
        return clv_fail(CLV_E_FORMAT,
                        "%s: no line before its numbers has the column names that you gave (%s) "
                        "together with names for wavelength and flux; names with blanks need "
                        "commas, semicolons, tabs or | between them",
                        r->path, wanted);
    }
    if (!r->named && r->columns > CLV_LEN(usual))
        return clv_fail(
            CLV_E_FORMAT,
            "%s: there are %zu columns without a line of names before them; expected 2 to 4 "
            "(wavelength, flux, error, mask), or names such as \"wavelength flux error\"",
            r->path, r->columns);
    for (size_t k = 0; k < r->columns; ++k) {
        const clv_spectrum_role role = r->named ? r->role[k] : usual[k];
        if (role && !c.value[role]) c.value[role] = r->value[k];
    }
    if (!c.value[CLV_ROLE_FLUX] || (!c.value[CLV_ROLE_WAVE] && !c.value[CLV_ROLE_LOG_WAVE]))
        return clv_fail(CLV_E_FORMAT,
                        "%s: its lines have fewer numbers than the line of names has columns",
                        r->path);
    CLV_TRY(clv_spectrum_match_units(r->path, &r->unit, &c));
    return clv_spectrum_assemble(r->path, &c, out);
}

clv_status clv_spectrum_read_text(const char *path, const clv_spectrum_names *names,
                                  clv_one_spectrum *out)
{
    reader r = { .path = path, .names = names, .bits = -1 };
    clv_lines lines;
    CLV_TRY(clv_lines_open(&lines, path));
    clv_status status = clv_lines_next(&lines, CHUNK, CHUNK_BYTES);
    while (!status && lines.count) {
        for (size_t i = 0; i < lines.count && !status; ++i)
            status = take_line(&r, lines.texts[i], lines.lengths[i], lines.first + i);
        if (!status) status = clv_lines_next(&lines, CHUNK, CHUNK_BYTES);
    }
    clv_lines_close(&lines);
    out->kind = "text";
    if (!status) status = assemble(&r, out);
    for (size_t c = 0; c < MOST_COLUMNS; ++c)
        clv_free(r.value[c]);
    return status;
}
