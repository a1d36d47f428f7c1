/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the best-fit models as FITS: one image per arm for a single DESI file, else one image with a row per
 * spectrum. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the number of spectra of all stars before star `row`; with row == count, of all stars. */
static size_t spectra_before(const specfit_table *t, size_t row)
{
    specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
    size_t n = 0;
    for (size_t i = 0; i < row; ++i)
        n += specfit_slots(t, &t->rows[i], slots);
    return n;
}

static size_t longest_spectrum(const specfit_table *t)
{
    size_t longest = 1;
    for (size_t i = 0; i < t->input_count; ++i)
        for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
            if (t->inputs[i].column[k] != SIZE_MAX)
                longest = CLV_MAX(longest, t->inputs[i].desi.wavelength[k].shape[0]);
    return longest;
}

/* Returns the arm of the only file that belongs to a column. */
static size_t arm_in(const specfit_table *t, size_t column)
{
    size_t k = 0;
    while (k + 1 < CLV_DESI_ARMS && t->inputs[0].column[k] != column)
        ++k;
    return k;
}

int specfit_models_begin(const specfit_args *a, const specfit_table *t, clv_fits_rows *file)
{
    clv_fits_image images[2 * SPECFIT_COLUMNS];
    clv_fits_table head = { 0 };
    size_t count = 2;
    clv_status status = specfit_head_of_models(a, t, &head);
    for (size_t s = 0; s < t->columns && t->plain; ++s) {
        const size_t n = t->inputs[0].desi.wavelength[arm_in(t, s)].shape[0];
        clv_fits_image *i = &images[2 * s];
        i[0] = (clv_fits_image){ .bitpix = -64, .rank = 1, .shape = { n } };
        i[1] = (clv_fits_image){ .bitpix = -32, .rank = 2, .shape = { t->count, n } };
        snprintf(i[0].name, sizeof i[0].name, "%.11s_WAVELENGTH", t->suffix[s]);
        snprintf(i[1].name, sizeof i[1].name, "%.11s_MODEL", t->suffix[s]);
        count = 2 * t->columns;
    }
    if (!t->plain) {
        const size_t n = longest_spectrum(t), spectra = spectra_before(t, t->count);
        images[0] = (clv_fits_image){
            .name = "WAVELENGTH", .bitpix = -64, .rank = 2, .shape = { spectra, n }
        };
        images[1] =
            (clv_fits_image){ .name = "MODEL", .bitpix = -32, .rank = 2, .shape = { spectra, n } };
    }
    if (!status) status = clv_fits_rows_begin(a->models, &head, images, count, file);
    clv_fits_table_clear(&head);
    for (size_t s = 0; s < t->columns && t->plain && !status; ++s)
        status = clv_fits_rows_put(file, 2 * s, 0, t->inputs[0].desi.wavelength[arm_in(t, s)].data);
    return cli_status(cli_running(), status);
}

/* Writes wavelengths and model of a spectrum into row `row` of both images, with NaN after its end. */
static clv_status put_spectrum(const specfit_slot *slot, const float *model, size_t longest,
                               size_t row, clv_fits_rows *file)
{
    double *wave = clv_alloc(longest, sizeof *wave);
    float *values = clv_alloc(longest, sizeof *values);
    clv_status status =
        wave && values ? CLV_OK : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for models");
    for (size_t k = 0; k < longest && !status; ++k) {
        wave[k] = k < slot->pixels ? slot->wavelength[k] : (double)NAN;
        values[k] = k < slot->pixels && model ? model[k] : NAN;
    }
    if (!status) status = clv_fits_rows_put(file, 0, row, wave);
    if (!status) status = clv_fits_rows_put(file, 1, row, values);
    clv_free(wave), clv_free(values);
    return status;
}

static clv_status put_arm(const specfit_table *t, size_t row, const specfit_slot *slot,
                          const float *model, clv_fits_rows *file)
{
    if (model) return clv_fits_rows_put(file, 2 * slot->column + 1, row, model);
    float *nothing = clv_alloc(slot->pixels, sizeof *nothing);
    if (!nothing) return clv_fail(CLV_E_MEMORY, "specfit: not enough memory for models");
    (void)t;
    for (size_t k = 0; k < slot->pixels; ++k)
        nothing[k] = NAN;
    const clv_status status = clv_fits_rows_put(file, 2 * slot->column + 1, row, nothing);
    clv_free(nothing);
    return status;
}

int specfit_models_put(const specfit_table *t, size_t from, size_t count, clv_fits_rows *file)
{
    clv_status status = CLV_OK;
    const size_t longest = t->plain ? 0 : longest_spectrum(t);
    size_t at = t->plain ? 0 : spectra_before(t, from);
    for (size_t i = from; i < from + count && !status; ++i) {
        specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
        const size_t spectra = specfit_slots(t, &t->rows[i], slots);
        for (size_t s = 0; s < spectra && !status; ++s) {
            const float *model = t->rows[i].fit.model[s];
            status = t->plain ? put_arm(t, i, &slots[s], model, file)
                              : put_spectrum(&slots[s], model, longest, at++, file);
        }
    }
    return cli_status(cli_running(), status);
}

/* Adds the table that tells which star and which file each row of the images belongs to. */
static void add_spectra(const specfit_table *t, clv_fits_table *tail)
{
    unsigned widest = 1;
    for (size_t i = 0; i < t->input_count; ++i)
        widest = CLV_MAX(widest, (unsigned)strlen(t->inputs[i].path));
    const clv_fits_column columns[] = {
        { .name = "STAR", .type = 'K', .comment = "row of the table, from 0" },
        { .name = "ARM",
          .type = 'A',
          .width = 24,
          .comment = "of the library, as columns name it" },
        { .name = "FILE",
          .type = 'A',
          .width = widest,
          .comment = "path of the spectrum, as given" },
        { .name = "ROW", .type = 'K', .comment = "of the file, from 0" },
        { .name = "PIXELS", .type = 'K', .comment = "of the spectrum" },
    };
    clv_fits_table_next(tail, "SPECTRA", columns, CLV_LEN(columns), spectra_before(t, t->count));
    for (size_t i = 0; i < t->count; ++i) {
        specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA];
        const size_t spectra = specfit_slots(t, &t->rows[i], slots);
        for (size_t s = 0; s < spectra; ++s) {
            const clv_fits_value values[] = { { .whole = (int64_t)i },
                                              { .text = t->suffix[slots[s].column] },
                                              { .text = slots[s].input->path },
                                              { .whole = (int64_t)slots[s].row },
                                              { .whole = (int64_t)slots[s].pixels } };
            clv_fits_table_row(tail, values);
        }
    }
}

int specfit_models_end(const specfit_args *a, const specfit_table *t, clv_fits_rows *file)
{
    clv_fits_table tail = { 0 };
    clv_status status = specfit_tail_of_models(t, &tail);
    if (!t->plain) add_spectra(t, &tail);
    if (!status && tail.bytes.length) status = clv_fits_rows_append(file, &tail);
    clv_fits_table_clear(&tail);
    return cli_status(cli_running(), status ? status : clv_fits_rows_end(file, a->models));
}
