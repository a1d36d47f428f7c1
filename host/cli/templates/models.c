/* SPDX-License-Identifier: Apache-2.0 */
/* Finds model spectra on disk: the published PHOENIX folders, or a table that lists files and their parameters. */
#define _GNU_SOURCE /* nftw */
#include "host/cli/templates/templates.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "host/io/formats/fits.h"
#include "host/io/tables/csv.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_MODELS = 1 << 20, FIELD = 1024 };

const char *const templates_parameters[CLV_SPECTRA_PARAMETERS] = { "teff", "logg", "feh", "alpha" };

static const char wave_name[] = "WAVE_PHOENIX-ACES-AGSS-COND-2011.fits";

static int no_memory(void)
{
    return cli_error(cli_running(), CLI_FAILED, "not enough memory for the names of models");
}

/* Adds a model if --select includes it; returns false if there is no memory. */
static bool add_model(const templates_args *a, templates_models *m, const char *path,
                      const double parameter[CLV_SPECTRA_PARAMETERS])
{
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        if (parameter[k] < a->low[k] - 1e-6 || parameter[k] > a->high[k] + 1e-6) {
            ++m->left_out;
            return true;
        }
    if (!clv_reserve(&m->items, &m->capacity, m->count + 1, sizeof *m->items)) return false;
    templates_model *new = &m->items[m->count];
    if (!(new->path = clv_strdup(path))) return false;
    memcpy(new->parameter, parameter, sizeof new->parameter);
    ++m->count;
    return true;
}

/* ---- PHOENIX: what nftw visits has no argument for its caller's use ------------------------------ */

static struct {
    char **paths;
    size_t count, capacity;
    char *wave;
    bool failed;
} found;

static int see_file(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    const char *name = path + walk->base;
    if (kind != FTW_F || !clv_ends_with(name, ".fits")) return 0;
    if (strncmp(name, "WAVE_", 5) == 0) {
        if (!found.wave && !(found.wave = clv_strdup(path))) found.failed = true;
    } else if (found.count == MOST_MODELS ||
               !clv_reserve(&found.paths, &found.capacity, found.count + 1, sizeof *found.paths) ||
               !(found.paths[found.count] = clv_strdup(path))) {
        found.failed = true;
    } else {
        ++found.count;
    }
    return found.failed;
}

/* Reads the parameters from a PHOENIX header. */
static clv_status read_header(const char *path, double parameter[CLV_SPECTRA_PARAMETERS])
{
    static const char *const keys[] = { "PHXTEFF", "PHXLOGG", "PHXM_H", "PHXALPHA" };
    clv_fits_hdus *hdus = clv_zalloc(1, sizeof *hdus);
    clv_status status =
        hdus ? clv_fits_describe(path, hdus) : clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS && !status; ++k)
        if (!hdus->count || !clv_fits_hdu_number(&hdus->item[0], keys[k], &parameter[k]) ||
            !isfinite(parameter[k]))
            status = clv_fail(
                CLV_E_FORMAT,
                "%s: its header has no number %s, which the spectra of PHOENIX have; for other "
                "models, give a CSV table with the columns FILE, TEFF, LOGG, FEH and ALPHA",
                path, keys[k]);
    if (hdus) clv_fits_hdus_clear(hdus);
    clv_free(hdus);
    return status;
}

static clv_status read_wave(templates_models *m)
{
    clv_file_array array = { 0 };
    CLV_TRY(clv_fits_read(m->wave, CLV_FITS_FIRST_IMAGE, &array, NULL));
    clv_status status = clv_file_array_convert(&array, m->wave, CLV_F64);
    const size_t n = clv_file_array_count(&array);
    if (!status && (array.rank != 1 || n < 16))
        status =
            clv_fail(CLV_E_FORMAT,
                     "%s has %zu numbers in an array of rank %zu; expected a vector of wavelengths",
                     m->wave, n, array.rank);
    if (!status && !(m->wavelength = clv_alloc(n, sizeof(double))))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", m->wave);
    if (!status) memcpy(m->wavelength, array.data, n * sizeof(double)), m->points = n;
    clv_file_array_clear(&array);
    return status;
}

/* Returns the wavelength file that lies beside the folder, i.e. in its parent, or NULL. The folder itself was searched
 * before. */
static char *wave_beside(const char *folder)
{
    clv_text path = { 0 };
    clv_text_add(&path, "%s/../%s", folder, wave_name);
    char *copy = !path.failed && access(path.data, R_OK) == 0 ? clv_strdup(path.data) : NULL;
    clv_text_clear(&path);
    return copy;
}

static int find_phoenix(const templates_args *a, templates_models *m)
{
    int code = CLI_OK;
    memset(&found, 0, sizeof found);
    nftw(a->models, see_file, 32, 0);
    m->phoenix = true;
    m->wave = a->wave      ? clv_strdup(a->wave)
              : found.wave ? clv_strdup(found.wave)
                           : wave_beside(a->models);
    if (found.failed)
        code = no_memory();
    else if (!found.count)
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: there are no .fits files in it or in its subfolders", a->models);
    else if (!m->wave)
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: there is no file of wavelengths (%s) in it or beside it; give one "
                         "with --wave FILE",
                         a->models, wave_name);
    for (size_t i = 0; i < found.count && !code; ++i) {
        double parameter[CLV_SPECTRA_PARAMETERS];
        code = cli_input_status(cli_running(), read_header(found.paths[i], parameter));
        if (!code && !add_model(a, m, found.paths[i], parameter)) code = no_memory();
        if (!code && cli_interrupted())
            code = cli_error(cli_running(), CLI_INTERRUPTED, "cancelled while reading headers");
    }
    for (size_t i = 0; i < found.count; ++i)
        clv_free(found.paths[i]);
    clv_free(found.paths), clv_free(found.wave);
    memset(&found, 0, sizeof found);
    return code ? code : cli_input_status(cli_running(), read_wave(m));
}

/* ---- tables ------------------------------------------------------------------------------------ */

static bool find_column(const clv_csv_table *csv, const char *name, const char *other,
                        size_t *column)
{
    for (*column = 0; *column < clv_csv_columns(csv); ++*column)
        if (strcasecmp(clv_csv_name(csv, *column), name) == 0 ||
            strcasecmp(clv_csv_name(csv, *column), other) == 0)
            return true;
    return false;
}

static int find_in_table(const templates_args *a, templates_models *m)
{
    static const char *const others[] = { "TEFF", "LOGG", "M_H", "ALPHAFE" };
    clv_csv_table *csv = NULL;
    size_t file = 0, column[CLV_SPECTRA_PARAMETERS];
    double *values[CLV_SPECTRA_PARAMETERS] = { NULL };
    const char *slash = strrchr(a->models, '/');
    int code = cli_input_status(cli_running(), clv_csv_read(a->models, &csv));
    if (code) return code;
    const size_t rows = clv_csv_rows(csv);
    if (!find_column(csv, "FILE", "PATH", &file))
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: there is no column FILE; a table of models has the columns FILE, "
                         "TEFF, LOGG, FEH and ALPHA",
                         a->models);
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS && !code; ++k) {
        if (!find_column(csv, templates_parameters[k], others[k], &column[k]))
            code = cli_error(cli_running(), CLI_USAGE,
                             "%s: there is no column %s; a table of models has the columns FILE, "
                             "TEFF, LOGG, FEH and ALPHA",
                             a->models,
                             k == 3   ? "ALPHA"
                             : k == 2 ? "FEH"
                                      : others[k]);
        else if (!(values[k] = clv_alloc(CLV_MAX(rows, (size_t)1), sizeof(double))))
            code = no_memory();
        else
            code = cli_input_status(cli_running(), clv_csv_doubles(csv, column[k], values[k]));
    }
    for (size_t r = 0; r < rows && !code; ++r) {
        char name[FIELD];
        clv_text path = { 0 };
        clv_csv_field(csv, r, file, name, sizeof name);
        if (*name != '/' && slash)
            clv_text_add(&path, "%.*s/%s", (int)(slash - a->models), a->models, name);
        else
            clv_text_add(&path, "%s", name);
        const double parameter[] = { values[0][r], values[1][r], values[2][r], values[3][r] };
        if (path.failed || !add_model(a, m, path.data, parameter)) code = no_memory();
        clv_text_clear(&path);
    }
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        clv_free(values[k]);
    clv_csv_free(csv);
    return code;
}

/* ---- what others call -------------------------------------------------------------------------- */

static int by_parameters(const void *left, const void *right)
{
    const templates_model *a = left, *b = right;
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        if (a->parameter[k] != b->parameter[k]) return a->parameter[k] < b->parameter[k] ? -1 : 1;
    return strcmp(a->path, b->path);
}

int templates_find(const templates_args *a, templates_models *m)
{
    struct stat info;
    const bool folder = stat(a->models, &info) == 0 && S_ISDIR(info.st_mode);
    if (a->wave && !folder)
        return cli_error(cli_running(), CLI_USAGE,
                         "--wave is for a folder of PHOENIX models; the files that a table names "
                         "have their own wavelengths");
    int code = folder ? find_phoenix(a, m) : find_in_table(a, m);
    if (code) return code;
    if (!m->count)
        return cli_error(cli_running(), CLI_USAGE, "%s: no models%s", a->models,
                         m->left_out ? " that --select selects" : " in it");
    qsort(m->items, m->count, sizeof *m->items, by_parameters);
    return CLI_OK;
}

void templates_clear(templates_models *m)
{
    for (size_t i = 0; i < m->count; ++i)
        clv_free(m->items[i].path);
    clv_free(m->items), clv_free(m->wave), clv_free(m->wavelength);
    *m = (templates_models){ 0 };
}

static clv_status read_phoenix(const templates_models *m, const char *path, float **flux)
{
    clv_file_array array = { 0 };
    CLV_TRY(clv_fits_read(path, CLV_FITS_FIRST_IMAGE, &array, NULL));
    clv_status status = clv_file_array_convert(&array, path, CLV_F32);
    const size_t n = clv_file_array_count(&array);
    if (!status && (array.rank != 1 || n != m->points))
        status = clv_fail(CLV_E_FORMAT,
                          "%s has %zu fluxes in an array of rank %zu, but %s has %zu wavelengths",
                          path, n, array.rank, m->wave, m->points);
    if (!status && !(*flux = clv_alloc(n, sizeof(float))))
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    if (!status) memcpy(*flux, array.data, n * sizeof(float));
    clv_file_array_clear(&array);
    return status;
}

clv_status templates_read(const templates_args *a, const templates_models *m, size_t model,
                          double **own, const double **wavelength, float **flux, size_t *points)
{
    const char *path = m->items[model].path;
    *own = NULL, *flux = NULL;
    if (m->phoenix) {
        *wavelength = m->wavelength, *points = m->points;
        return read_phoenix(m, path, flux);
    }
    clv_one_spectrum s = { 0 };
    CLV_TRY(clv_one_spectrum_read(path, NULL, &s));
    const bool air = a->medium == CLV_MEDIUM_AIR || (!a->medium && s.medium == CLV_MEDIUM_AIR);
    double scale = 0; /* values in units of 1e-40 would not fit into float */
    for (size_t k = 0; k < s.pixels; ++k)
        scale = fmax(scale, fabs(s.flux[k]));
    if (!(*flux = clv_alloc(s.pixels, sizeof **flux))) {
        clv_one_spectrum_clear(&s);
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    }
    for (size_t k = 0; k < s.pixels; ++k) {
        (*flux)[k] = (float)(scale > 0 ? s.flux[k] / scale : 0);
        if (air) s.wavelength[k] = clv_vacuum_of_air(s.wavelength[k]);
    }
    *wavelength = *own = s.wavelength, *points = s.pixels;
    s.wavelength = NULL;
    clv_one_spectrum_clear(&s);
    return CLV_OK;
}
