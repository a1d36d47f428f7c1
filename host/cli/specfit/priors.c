/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the user knows about the stars before the fit: --prior, --fix and --priors. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/tables/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD = 80, PATH = 4096, UNKNOWNS = CLV_SPECTRA_UNKNOWNS };

static const char *const names[UNKNOWNS] = { "vrad", "vsini", "teff", "logg", "feh", "alpha" };
/* Columns of --priors, named as in result tables. */
static const char *const columns[UNKNOWNS] = { "VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE" };

static int find_name(const char *word)
{
    for (int k = 0; k < UNKNOWNS; ++k)
        if (strcasecmp(word, names[k]) == 0 || strcasecmp(word, columns[k]) == 0) return k;
    return -1;
}

/* Parses one "teff=5800:100" or "vsini=0"; *which becomes the parameter. */
static bool take_word(char *word, bool fix, clv_star_prior *p, int *which)
{
    char *equals = strchr(word, '='), *colon;
    double value, sigma = 0;
    if (!equals) return false;
    *equals = '\0';
    const int k = find_name(word);
    if ((colon = strchr(equals + 1, ':'))) *colon = '\0';
    *which = k;
    if (k < 0 || (colon != NULL) == fix || !clv_parse_double(equals + 1, &value)) return false;
    if (colon && (!clv_parse_double(colon + 1, &sigma) || !(sigma >= 1e-6))) return false;
    p->value[k] = value, p->sigma[k] = sigma, p->fixed[k] = fix;
    return true;
}

static int take_list(const char *option, const char *list, bool fix, clv_star_prior *p)
{
    bool given[UNKNOWNS] = { false };
    for (const char *at = list; at && *at;) {
        int which = -1;
        const char *comma = strchr(at, ',');
        char word[WORD];
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        snprintf(word, sizeof word, "%.*s", (int)CLV_MIN(length, sizeof word - 1), at);
        if (length >= sizeof word || !take_word(word, fix, p, &which))
            return cli_error(
                cli_running(), CLI_USAGE,
                "%s is \"%s\", but it must be %s; the names are vrad, vsini, teff, logg, feh and "
                "alpha",
                option, list,
                fix ? "values such as vsini=0,alpha=0.2"
                    : "values with their standard deviations such as teff=5800:100,logg=4.4:0.1");
        if (given[which])
            return cli_error(cli_running(), CLI_USAGE,
                             "%s is \"%s\", which names %s twice; keep one of them", option, list,
                             names[which]);
        given[which] = true;
        at = comma ? comma + 1 : NULL;
    }
    return CLI_OK;
}

/* ---- a table of stars -------------------------------------------------------------------------- */

typedef struct star_line {
    char *key; /* owned; free with clv_free */
    clv_star_prior prior;
    bool given[UNKNOWNS];
} star_line;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const star_line *)a)->key, ((const star_line *)b)->key);
}

/* Returns the line of a key, NULL if there is none. */
static const star_line *find_line(const star_line *lines, size_t count, char *key)
{
    const star_line wanted = { .key = key };
    return count ? bsearch(&wanted, lines, count, sizeof *lines, by_key) : NULL;
}

/* Finds the line of a star by its TARGETID, by the path of its file, or by the file's name alone. */
static const star_line *line_of(const specfit_table *t, const specfit_row *row, bool by_target,
                                const star_line *lines, size_t count)
{
    char id[24];
    char *path = t->inputs[t->places[row->first].input].path, *slash = strrchr(path, '/');
    snprintf(id, sizeof id, "%" PRId64, specfit_about(t, row)->target);
    if (by_target) return find_line(lines, count, id);
    const star_line *line = find_line(lines, count, path);
    return line || !slash ? line : find_line(lines, count, slash + 1);
}

/* Refuses lines that name the same star, and names that stand for several files. */
static int check_lines(const specfit_args *a, const specfit_table *t, bool by_target,
                       const star_line *lines, size_t count)
{
    for (size_t i = 1; i < count; ++i)
        if (strcmp(lines[i].key, lines[i - 1].key) == 0)
            return cli_error(
                cli_running(), CLI_USAGE,
                "%s: two rows name %s; keep one of them (one row can hold several parameters)",
                a->priors, lines[i].key);
    size_t *star = clv_zalloc(CLV_MAX(count, (size_t)1), sizeof *star);
    int code = star ? CLI_OK : cli_error(cli_running(), CLI_FAILED, "not enough memory for priors");
    for (size_t i = 0; i < t->count && !code && !by_target; ++i) {
        const char *path = t->inputs[t->places[t->rows[i].first].input].path;
        const star_line *line = line_of(t, &t->rows[i], by_target, lines, count);
        if (!line || strcmp(line->key, path) == 0) continue;
        size_t *first = &star[line - lines];
        const char *other =
            *first ? t->inputs[t->places[t->rows[*first - 1].first].input].path : path;
        if (strcmp(other, path) != 0)
            code = cli_error(
                cli_running(), CLI_USAGE,
                "%s: %s could be %s or %s; write the paths as they are on the command line",
                a->priors, line->key, other, path);
        *first = i + 1;
    }
    clv_free(star);
    return code;
}

static bool find_column(const clv_csv_table *csv, const char *name, size_t *column)
{
    for (*column = 0; *column < clv_csv_columns(csv); ++*column)
        if (strcasecmp(clv_csv_name(csv, *column), name) == 0) return true;
    return false;
}

/* Reads the values, and their sigmas if there is such a column. A sigma of 0 or no sigma column fixes the value; a
 * sigma below 0 or an empty field leaves it free. */
static int fill_lines(const char *path, const clv_csv_table *csv, size_t key, star_line *lines)
{
    size_t used = 0;
    for (size_t r = 0; r < clv_csv_rows(csv); ++r) {
        char word[PATH];
        clv_csv_field(csv, r, key, word, sizeof word);
        if (!(lines[r].key = clv_strdup(word)))
            return cli_error(cli_running(), CLI_FAILED, "not enough memory for priors");
    }
    for (size_t c = 0; c < clv_csv_columns(csv); ++c)
        for (size_t b = 0; b < c; ++b)
            if (strcasecmp(clv_csv_name(csv, b), clv_csv_name(csv, c)) == 0)
                return cli_error(cli_running(), CLI_USAGE, "%s: two columns have the name %s", path,
                                 clv_csv_name(csv, c));
    for (int k = 0; k < UNKNOWNS; ++k) {
        char name[32];
        size_t value, sigma;
        if (!find_column(csv, columns[k], &value)) continue;
        snprintf(name, sizeof name, "%s_SIGMA", columns[k]);
        const bool has_sigma = find_column(csv, name, &sigma);
        ++used;
        for (size_t r = 0; r < clv_csv_rows(csv); ++r) {
            char word[WORD], width[WORD] = "0";
            double x, s = 0;
            clv_csv_field(csv, r, value, word, WORD);
            if (has_sigma) clv_csv_field(csv, r, sigma, width, WORD);
            if (!*word || !*width) continue;
            if (!clv_parse_double(word, &x) || !clv_parse_double(width, &s))
                return cli_error(cli_running(), CLI_USAGE,
                                 "%s: row %zu: %s is \"%s\" +- \"%s\", expected numbers", path,
                                 r + 1, columns[k], word, width);
            if (s < 0) continue;
            lines[r].given[k] = true, lines[r].prior.value[k] = x;
            lines[r].prior.fixed[k] = s == 0, lines[r].prior.sigma[k] = s;
        }
    }
    if (!used)
        return cli_error(
            cli_running(), CLI_USAGE,
            "%s: there is none of the columns VRAD, VSINI, TEFF, LOGG, FEH and ALPHAFE (with "
            "VRAD_SIGMA, ... they are priors; without it they are fixed values)",
            path);
    return CLI_OK;
}

static int read_table(const specfit_args *a, specfit_table *t)
{
    clv_csv_table *csv = NULL;
    size_t key = 0, found = 0;
    int code = cli_input_status(cli_running(), clv_csv_read(a->priors, &csv));
    if (code) return code;
    const size_t rows = clv_csv_rows(csv);
    const bool by_target = find_column(csv, "TARGETID", &key),
               by_file = !by_target && find_column(csv, "FILE", &key);
    star_line *lines = clv_zalloc(CLV_MAX(rows, (size_t)1), sizeof *lines);
    if (!by_target && !by_file)
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: there is no column TARGETID or FILE to name the stars", a->priors);
    else if (!lines)
        code = cli_error(cli_running(), CLI_FAILED, "not enough memory for priors");
    if (!code) code = fill_lines(a->priors, csv, key, lines);
    if (!code && rows) qsort(lines, rows, sizeof *lines, by_key);
    if (!code) code = check_lines(a, t, by_target, lines, rows);
    for (size_t i = 0; i < t->count && !code; ++i) {
        const star_line *line = line_of(t, &t->rows[i], by_target, lines, rows);
        if (!line) continue;
        ++found;
        for (int k = 0; k < UNKNOWNS; ++k) {
            if (!line->given[k]) continue;
            t->priors[i].value[k] = line->prior.value[k],
            t->priors[i].sigma[k] = line->prior.sigma[k];
            t->priors[i].fixed[k] = line->prior.fixed[k];
        }
    }
    if (!code && !found && t->count)
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: none of its %zu rows names one of the %zu stars (looked up by %s)",
                         a->priors, rows, t->count, by_target ? "TARGETID" : "FILE");
    else if (!code && found < t->count && !a->common.quiet)
        cli_warn(cli_running(), "%s: it has rows for %zu of %zu stars", a->priors, found, t->count);
    for (size_t r = 0; lines && r < rows; ++r)
        clv_free(lines[r].key);
    clv_free(lines), clv_csv_free(csv);
    return code;
}

/* Returns whether a grid has the same templates at both nodes of an axis, because its library was made from models with
 * a single value there (see `cleave templates`). */
static bool is_single(const clv_spectra_arm *arm, int axis)
{
    size_t inner = 1, outer = 1;
    if (arm->nodes[0] == 0 || arm->nodes[axis] != 2) return false;
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : arm->nodes[k];
    for (size_t o = 0; o < outer; ++o)
        if (memcmp(arm->grid + 2 * o * inner, arm->grid + (2 * o + 1) * inner,
                   inner * sizeof *arm->grid) != 0)
            return false;
    return true;
}

/* Fixes the parameters for which the library has only one value; returns false if there is no such parameter. */
static bool hold_single(const specfit_args *a, const specfit_table *t, clv_star_prior *all)
{
    bool any = false;
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k) {
        bool single = t->columns > 0 && !all->fixed[2 + k];
        for (size_t c = 0; c < t->columns && single; ++c)
            single = is_single(&t->arms[c], k);
        if (!single) continue;
        const double node = t->arms[0].axis[k][0];
        all->fixed[2 + k] = any = true, all->sigma[2 + k] = 0;
        all->value[2 + k] = k ? node : pow(10, node);
        if (!a->common.quiet)
            cli_warn(cli_running(), "%s has templates for only %s = %g, so this value is held",
                     a->library, names[2 + k], all->value[2 + k]);
    }
    return any;
}

int specfit_read_priors(const specfit_args *a, specfit_table *t)
{
    clv_star_prior all = { { 0 } };
    int code = take_list("--prior", a->prior, false, &all);
    if (!code) code = take_list("--fix", a->fix, true, &all);
    if (!code && !hold_single(a, t, &all) && !a->prior && !a->fix && !a->priors) return CLI_OK;
    t->priors = clv_alloc(CLV_MAX(t->count, (size_t)1), sizeof *t->priors);
    if (!code && !t->priors)
        code = cli_error(cli_running(), CLI_FAILED, "not enough memory for priors");
    for (size_t i = 0; i < t->count && !code; ++i)
        t->priors[i] = all;
    return !code && a->priors ? read_table(a, t) : code;
}
