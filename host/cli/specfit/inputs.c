/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the input files of a run and their kinds, and assigns them to arms of the library. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <ctype.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LIST = 64 << 20, LEAST_PIECE = 16, MOST_DIAGONALS = 63 };

/* fastest: no observer on Earth or near it moves faster; a header that says so has another unit */
static const double light_kms = 299792.458, sigmas_in_fwhm = 2.3548200450309493, fastest = 1000;

/* ---- names ------------------------------------------------------------------------------------- */

typedef struct names {
    char **items;
    size_t count, capacity;
} names;

static int add_name(names *n, const char *path)
{
    if (n->count == SPECFIT_MOST_FILES)
        return cli_error(cli_running(), CLI_USAGE, "there are more than %d input files",
                         SPECFIT_MOST_FILES);
    if (!clv_reserve(&n->items, &n->capacity, n->count + 1, sizeof *n->items) ||
        !(n->items[n->count] = clv_strdup(path)))
        return cli_error(cli_running(), CLI_FAILED, "not enough memory for the names of files");
    ++n->count;
    return CLI_OK;
}

/* Adds the paths in @FILE, one per line; '#' begins a comment. Relative paths start at the working directory. */
static int add_list(names *n, const char *path)
{
    char *text = NULL, *rest = NULL;
    size_t length, before = n->count;
    int code = cli_input_status(cli_running(), clv_file_read(path, MAX_LIST, &text, &length));
    for (char *line = code ? NULL : strtok_r(text, "\n", &rest); line && !code;
         line = strtok_r(NULL, "\n", &rest)) {
        while (isspace((unsigned char)*line))
            ++line;
        size_t end = strlen(line);
        while (end && isspace((unsigned char)line[end - 1]))
            line[--end] = '\0';
        if (*line && *line != '#') code = add_name(n, line);
    }
    if (!code && n->count == before)
        code =
            cli_error(cli_running(), CLI_USAGE, "%s has no paths; write one path per line", path);
    clv_free(text);
    return code;
}

/* Adds the files that match a pattern which the shell did not expand. */
static int add_pattern(names *n, const char *pattern)
{
    glob_t found;
    int code = CLI_OK;
    if (!strpbrk(pattern, "*?[") || access(pattern, F_OK) == 0) return add_name(n, pattern);
    const int result = glob(pattern, 0, NULL, &found);
    if (result == GLOB_NOMATCH)
        code = cli_error(cli_running(), CLI_USAGE, "%s: no file matches this name", pattern);
    else if (result)
        code = cli_error(cli_running(), CLI_FAILED, "%s: the pattern cannot be expanded", pattern);
    for (size_t i = 0; !code && i < found.gl_pathc; ++i)
        code = add_name(n, found.gl_pathv[i]);
    if (!result) globfree(&found);
    return code;
}

static bool is_desi(const char *path)
{
    clv_fits_hdus *hdus = clv_zalloc(1, sizeof *hdus);
    bool desi = false;
    if (hdus && clv_fits_describe(path, hdus) == CLV_OK)
        for (size_t i = 0; i < hdus->count; ++i)
            desi |= strcmp(hdus->item[i].name, "FIBERMAP") == 0 ||
                    clv_ends_with(hdus->item[i].name, "_WAVELENGTH");
    if (hdus) clv_fits_hdus_clear(hdus);
    clv_free(hdus);
    return desi;
}

/* ---- single spectra ---------------------------------------------------------------------------- */

clv_status specfit_read_single(const specfit_args *a, const char *path, clv_one_spectrum *s)
{
    CLV_TRY(clv_one_spectrum_read(path, a->columns ? &a->names : NULL, s));
    const bool air = a->medium == CLV_MEDIUM_AIR || (!a->medium && s->medium == CLV_MEDIUM_AIR);
    double velocity = a->velocity_added;
    if (isnan(velocity)) velocity = s->barycentric;
    if (isnan(velocity)) {
        clv_one_spectrum_clear(s);
        return clv_fail(CLV_E_FORMAT,
                        "%s has no velocity for --barycentric header: its headers have none of "
                        "VHELIO, BARYCORR, BERV, VBARY, BARYVEL, VCORR, HELCORR, nor a column "
                        "VHELIO; give the velocity in km/s instead",
                        path);
    }
    if (fabs(velocity) > fastest) {
        clv_one_spectrum_clear(s);
        return clv_fail(CLV_E_FORMAT,
                        "%s: its header gives a barycentric velocity of %g km/s, but at most %g "
                        "are possible; give the velocity in km/s with --barycentric instead",
                        path, velocity, fastest);
    }
    const double b = velocity / light_kms, stretch = sqrt((1 + b) / (1 - b));
    for (size_t k = 0; k < s->pixels; ++k) {
        const double vacuum = air ? clv_vacuum_of_air(s->wavelength[k]) : s->wavelength[k];
        s->wavelength[k] = vacuum * stretch;
        if (a->resolving_power > 0 && !s->lsf && !(s->lsf = clv_alloc(s->pixels, sizeof *s->lsf)))
            return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    for (size_t k = 0; a->resolving_power > 0 && k < s->pixels; ++k) {
        const size_t l = k ? k - 1 : 0, r = CLV_MIN(k + 1, s->pixels - 1);
        const double pixel = (s->wavelength[r] - s->wavelength[l]) / (double)(r - l);
        s->lsf[k] = s->wavelength[k] / a->resolving_power / sigmas_in_fwhm / pixel;
    }
    return CLV_OK;
}

static bool has_good_pixels(const clv_one_spectrum *s)
{
    for (size_t k = 0; k < s->pixels; ++k)
        if (s->error[k] > 0) return true;
    return false;
}

static bool has_flux(const clv_one_spectrum *s)
{
    for (size_t k = 0; k < s->pixels; ++k)
        if (isfinite(s->flux[k])) return true;
    return false;
}

static void tell_single(const specfit_args *a, const char *path, const clv_one_spectrum *s)
{
    if (a->common.quiet) return;
    if (s->estimated)
        cli_warn(cli_running(),
                 "%s has no errors: estimating them from the scatter between neighbouring pixels",
                 path);
    if (!has_flux(s))
        cli_warn(cli_running(),
                 "%s: its flux is NaN or infinite in every pixel: there is nothing "
                 "to fit",
                 path);
    else if (!has_good_pixels(s))
        cli_warn(cli_running(),
                 "%s: every pixel is masked or has no error: there is nothing to fit", path);
    else if (2 * s->masked > s->pixels)
        cli_warn(cli_running(),
                 "%s: its mask leaves out %zu of %zu pixels; a pixel is bad where the mask is not "
                 "0 or false",
                 path, s->masked, s->pixels);
}

static int open_single(const specfit_args *a, specfit_input *in)
{
    clv_one_spectrum s = { 0 };
    clv_status status = specfit_read_single(a, in->path, &s);
    in->single = true;
    if (!status && (!(in->desi.path = clv_strdup(in->path)) ||
                    !(in->desi.row = clv_zalloc(1, sizeof *in->desi.row))))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", in->path);
    if (!status && a->resolution == 1 && !s.lsf) {
        clv_one_spectrum_clear(&s);
        return cli_error(cli_running(), CLI_USAGE,
                         "--resolution on: %s has no line-spread function (a column WDISP); give "
                         "--resolving-power R, or leave out --resolution",
                         in->path);
    }
    if (!status) {
        in->desi.rows = 1;
        in->desi.row[0] = (clv_desi_row){ .target = s.target,
                                          .reference = -1,
                                          .brick = -1,
                                          .expid = -1,
                                          .fiber = (int32_t)CLV_MIN(s.fiber, (int64_t)INT32_MAX),
                                          .plate = s.plate,
                                          .mjd = s.mjd,
                                          .ra = s.ra,
                                          .dec = s.dec,
                                          .snr = { NAN, NAN, NAN },
                                          .is_star = true };
        clv_copy_string(in->desi.row[0].object, CLV_DESI_OBJECT, s.object);
        tell_single(a, in->path, &s);
    }
    clv_one_spectrum_clear(&s);
    return cli_input_status(cli_running(), status);
}

int specfit_open_inputs(const specfit_args *a, char *const *operands, int count, specfit_table *t)
{
    names n = { 0 };
    int code = CLI_OK;
    for (int i = 0; i < count && !code; ++i)
        code = operands[i][0] == '@' ? add_list(&n, operands[i] + 1) : add_pattern(&n, operands[i]);
    t->inputs = code ? NULL : clv_zalloc(n.count, sizeof *t->inputs);
    if (!code && !t->inputs)
        code = cli_error(cli_running(), CLI_FAILED, "not enough memory for %zu files", n.count);
    for (size_t i = 0; i < n.count; ++i) {
        if (!t->inputs) {
            clv_free(n.items[i]);
            continue;
        }
        specfit_input *in = &t->inputs[t->input_count++];
        in->path = n.items[i];
        for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
            in->column[k] = SIZE_MAX;
        if (code) continue;
        code = is_desi(in->path)
                   ? cli_input_status(cli_running(), clv_desi_open(in->path, &in->desi))
                   : open_single(a, in);
    }
    clv_free(n.items);
    if (!code)
        t->plain = t->input_count == 1 && !t->inputs[0].single && a->combine == SPECFIT_ALONE;
    return code;
}

int specfit_check_kinds(const specfit_args *a, const specfit_table *t)
{
    const struct {
        const char *option, *why;
        bool given;
    } options[] = {
        { "--resolving-power", "has matrices of its resolution (--resolution on)",
          a->resolving_power_given },
        { "--barycentric", "is in the frame of the barycentre", a->barycentric != NULL },
        { "--wavelengths", "has wavelengths in vacuum", a->medium != 0 },
        { "--arm", "names its arms", a->arm != NULL },
        { "--columns", "has names of its own", a->columns != NULL },
    };
    const specfit_input *desi = NULL;
    bool single = false;
    for (size_t i = 0; i < t->input_count; ++i) {
        single |= t->inputs[i].single;
        if (!desi && !t->inputs[i].single) desi = &t->inputs[i];
    }
    for (size_t i = 0; i < CLV_LEN(options) && desi; ++i) {
        if (!options[i].given) continue;
        if (!single)
            return cli_error(
                cli_running(), CLI_USAGE,
                "%s is for single spectra, but %s is a DESI file, which %s; leave out the option",
                options[i].option, desi->path, options[i].why);
        if (!a->common.quiet)
            cli_warn(cli_running(),
                     "%s is for single spectra and has no effect on the DESI file %s",
                     options[i].option, desi->path);
    }
    return CLI_OK;
}

void specfit_table_clear(specfit_table *t)
{
    for (size_t i = 0; i < t->input_count; ++i) {
        clv_free(t->inputs[i].path), clv_free(t->inputs[i].redshifts);
        clv_desi_clear(&t->inputs[i].desi);
    }
    clv_free(t->inputs), clv_free(t->rows), clv_free(t->places), clv_free(t->priors),
        clv_free(t->redshift_file);
    *t = (specfit_table){ 0 };
}

/* ---- arms -------------------------------------------------------------------------------------- */

/* Returns the column of the library's arm `arm`, and adds it if it is new; SIZE_MAX: too many columns. */
static size_t column_of(specfit_table *t, const clv_spectra_arm *arm, double sigma,
                        const char *suffix)
{
    size_t c = 0;
    while (c < t->columns && strcmp(t->suffix[c], suffix) != 0)
        ++c;
    if (c < t->columns) return c;
    if (c == SPECFIT_COLUMNS) return SIZE_MAX;
    t->arms[c] = *arm;
    t->arms[c].sigma = sigma;
    clv_copy_string(t->suffix[c], sizeof t->suffix[c], suffix);
    return t->columns++;
}

/* Makes the column's suffix: DESI's letter, else the arm's name. */
static void suffix_of(const char *arm, char out[24])
{
    snprintf(out, 24, "%.20s", strncmp(arm, "desi_", 5) == 0 && arm[5] ? arm + 5 : arm);
    for (char *c = out; *c; ++c)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
}

/* Returns the arm's sigma from --config, else from the library, else DESI's. */
static double sigma_of(const specfit_args *a, const clv_spectra_arm *arm)
{
    static const char letters[] = "brz";
    const char *name = arm->name;
    const char *letter =
        strncmp(name, "desi_", 5) == 0 && name[5] && !name[6] ? strchr(letters, name[5]) : NULL;
    if (letter && !isnan(a->sigma_of[letter - letters])) return a->sigma_of[letter - letters];
    if (!isnan(a->sigma0)) return a->sigma0;
    return arm->sigma > 0 ? arm->sigma : 0.5;
}

/* Checks that an arm of the library covers the wavelengths of a file at all velocities. */
static int check_cover(const specfit_args *a, const clv_spectra_arm *arm, const specfit_input *in,
                       size_t k)
{
    const double b = fmax(fabs(a->min_vel), fabs(a->max_vel)) / light_kms;
    const clv_file_array *w = &in->desi.wavelength[k];
    if (!w->shape[0]) return CLI_OK; /* the fit refuses it */
    const double low = *(double *)w->data * sqrt((1 - b) / (1 + b));
    const double high = ((double *)w->data)[w->shape[0] - 1] * sqrt((1 + b) / (1 - b));
    if (low > arm->first && high < arm->last) return CLI_OK;
    return cli_error(cli_running(), CLI_USAGE,
                     "%s: its wavelengths need %.1f to %.1f Angstrom at +-%g km/s, but arm %s of "
                     "the library covers %.1f to %.1f; check their unit (BUNIT), or use another "
                     "library or smaller --min-vel and --max-vel",
                     in->path, low, high, b * light_kms, arm->name, arm->first, arm->last);
}

static int match_desi(const specfit_args *a, const clv_speclib *lib, specfit_input *in,
                      specfit_table *t)
{
    for (size_t k = 0; k < CLV_DESI_ARMS; ++k) {
        char name[16], suffix[24];
        if (!in->desi.present[k]) continue;
        snprintf(name, sizeof name, "desi_%c", tolower((unsigned char)clv_desi_arm_letters[k]));
        const size_t arm = clv_speclib_arm(lib, name);
        if (arm == lib->library.arm_count) {
            cli_warn(cli_running(), "%s has no arm %s: these spectra are left out", a->library,
                     name);
            continue;
        }
        const int code = check_cover(a, &lib->library.arms[arm], in, k);
        if (code) return code;
        suffix_of(name, suffix);
        in->column[k] =
            column_of(t, &lib->library.arms[arm], sigma_of(a, &lib->library.arms[arm]), suffix);
    }
    return CLI_OK;
}

/* An arm of the library that may fit a part of a spectrum. */
typedef struct taker {
    size_t arm;
    double low, high; /* Angstrom; the range covered at all velocities */
} taker;

static int by_low(const void *a, const void *b)
{
    const taker *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Finds the arms requested by name, or all arms, sorted by wavelength. */
static int find_takers(const specfit_args *a, const clv_speclib *lib, bool sdss, taker *takers,
                       size_t *count)
{
    const double b = fmax(fabs(a->min_vel), fabs(a->max_vel)) / light_kms;
    static const char *const own[] = { "sdss1", "sdss" };
    size_t only = lib->library.arm_count;
    *count = 0;
    for (size_t i = 0; sdss && !a->arm && i < CLV_LEN(own) && only == lib->library.arm_count; ++i)
        only = clv_speclib_arm(lib, own[i]);
    for (size_t i = 0; i < lib->library.arm_count; ++i) {
        const clv_spectra_arm *arm = &lib->library.arms[i];
        if (only < lib->library.arm_count ? i != only
                                          : a->arm && clv_find_word(a->arm, arm->name) < 0)
            continue;
        takers[(*count)++] = (taker){ .arm = i,
                                      .low = arm->first * sqrt((1 + b) / (1 - b)),
                                      .high = arm->last * sqrt((1 - b) / (1 + b)) };
    }
    if (!*count && a->arm)
        return cli_error(cli_running(), CLI_USAGE,
                         "--arm %s: %s has no arm with that name; its first arm is %s", a->arm,
                         a->library, lib->library.arms[0].name);
    qsort(takers, *count, sizeof *takers, by_low);
    for (size_t i = 1; i < *count; ++i) {
        const double shared = fmin(takers[i].high, takers[i - 1].high) - takers[i].low;
        const double shorter =
            fmin(takers[i].high - takers[i].low, takers[i - 1].high - takers[i - 1].low);
        if (shared > 0.5 * shorter)
            return cli_error(cli_running(), CLI_USAGE,
                             "%s: its arms %s and %s cover the same wavelengths; choose the arm of "
                             "the spectra with --arm NAME",
                             a->library, lib->library.arms[takers[i - 1].arm].name,
                             lib->library.arms[takers[i].arm].name);
    }
    return CLI_OK;
}

/* Finds the number of diagonals that the line-spread function of an input's pieces needs: four standard deviations on
 * either side of the middle, at least three. */
static int find_diagonals(const clv_one_spectrum *s, specfit_input *in)
{
    double widest = 0;
    for (size_t p = 0; p < CLV_DESI_ARMS; ++p)
        for (size_t k = 0; in->desi.present[p] && k < in->desi.wavelength[p].shape[0]; ++k)
            if (s->error[in->from[p] + k] > 0) widest = fmax(widest, s->lsf[in->from[p] + k]);
    if (!(3 * widest <= MOST_DIAGONALS / 2))
        return cli_error(cli_running(), CLI_USAGE,
                         "%s: its line-spread function has standard deviations of up to %.3g "
                         "pixels, but at most %.3g are possible; average neighbouring pixels, or "
                         "check --resolving-power or WDISP",
                         in->path, widest, MOST_DIAGONALS / 2 / 3.0);
    const double half = fmin(fmax(ceil(4 * widest), 1), MOST_DIAGONALS / 2);
    in->diagonals = 2 * (size_t)half + 1;
    return CLI_OK;
}

/* Returns the unit in which wavelengths from `first` to `last` would be in some arm; NULL: none. */
static const char *other_unit(const taker *takers, size_t count, double first, double last)
{
    static const struct {
        const char *unit;
        double angstrom;
    } units[] = { { "nm", 10 }, { "um", 1e4 } };
    for (size_t u = 0; u < CLV_LEN(units); ++u)
        for (size_t i = 0; i < count; ++i)
            if (first * units[u].angstrom < takers[i].high &&
                last * units[u].angstrom > takers[i].low)
                return units[u].unit;
    return NULL;
}

static int match_single(const specfit_args *a, const clv_speclib *lib, specfit_input *in,
                        specfit_table *t)
{
    taker takers[64];
    clv_one_spectrum s = { 0 };
    size_t count, used = 0, piece = 0;
    if (lib->library.arm_count > CLV_LEN(takers))
        return cli_error(cli_running(), CLI_USAGE, "%s: there are more than %zu arms", a->library,
                         CLV_LEN(takers));
    int code = cli_input_status(cli_running(), specfit_read_single(a, in->path, &s));
    if (!code)
        code = find_takers(a, lib, s.kind && strcmp(s.kind, "SDSS table") == 0, takers, &count);
    for (size_t i = 0, at = 0; !code && i < count && piece < CLV_DESI_ARMS; ++i) {
        const clv_spectra_arm *arm = &lib->library.arms[takers[i].arm];
        char suffix[24];
        size_t end;
        while (at < s.pixels && !(s.wavelength[at] > takers[i].low))
            ++at;
        for (end = at; end < s.pixels && s.wavelength[end] < takers[i].high;)
            ++end;
        const size_t n = end - at;
        if (n < LEAST_PIECE) continue;
        suffix_of(arm->name, suffix);
        in->column[piece] = column_of(t, arm, sigma_of(a, arm), suffix);
        if (in->column[piece] == SIZE_MAX)
            code = cli_error(cli_running(), CLI_USAGE, "the spectra would need more than %d arms",
                             SPECFIT_COLUMNS);
        if (!code)
            code = cli_status(cli_running(), clv_file_array_create(&in->desi.wavelength[piece],
                                                                   in->path, CLV_F64, 1, &n));
        if (code) break;
        memcpy(in->desi.wavelength[piece].data, s.wavelength + at, n * sizeof(double));
        in->desi.present[piece] = true, in->from[piece++] = at;
        used += n, at = end;
    }
    if (!code && !piece) {
        const double last = s.wavelength[s.pixels - 1];
        const char *const unit = other_unit(takers, count, s.wavelength[0], last);
        clv_text hint = { 0 };
        if (s.guessed_um)
            clv_text_add(
                &hint,
                ". The file gives no unit, and its numbers are below 100, so that they "
                "were read as micrometres; if they are log10 of Angstrom, name the column loglam");
        else if (unit)
            clv_text_add(&hint,
                         ". If they are in %s, the file has to say so: a line of names such as "
                         "\"wave[%s] flux error\", or the column's unit (TUNIT)",
                         unit, unit);
        code = cli_error(
            cli_running(), CLI_USAGE,
            "%s: at velocities up to %g km/s the library covers none of its wavelengths (%.1f to "
            "%.1f Angstrom); the bluest arm, %s, covers %.1f to %.1f Angstrom%s",
            in->path, fmax(fabs(a->min_vel), fabs(a->max_vel)), s.wavelength[0], last,
            lib->library.arms[takers[0].arm].name, takers[0].low, takers[0].high,
            hint.data ? hint.data : "");
        clv_text_clear(&hint);
    }
    if (!code && !a->common.quiet) specfit_tell_placed(a, in->path, &s, used);
    if (!code && (a->resolution == 1 || a->resolving_power > 0)) code = find_diagonals(&s, in);
    clv_one_spectrum_clear(&s);
    return code;
}

int specfit_match(const specfit_args *a, const clv_speclib *lib, specfit_table *t)
{
    int code = CLI_OK;
    for (size_t i = 0; i < t->input_count && !code; ++i)
        code = t->inputs[i].single ? match_single(a, lib, &t->inputs[i], t)
                                   : match_desi(a, lib, &t->inputs[i], t);
    if (!code && !t->columns)
        code = cli_error(cli_running(), CLI_USAGE, "%s has none of the arms of the spectra",
                         a->library);
    return code;
}
