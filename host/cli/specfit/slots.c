/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the spectra of a star in the order in which fits report them. */
#include "host/cli/specfit/files.h"

size_t specfit_slots(const specfit_table *t, const specfit_row *r,
                     specfit_slot slots[CLV_SPECTRA_MAX_SPECTRA])
{
    size_t n = 0;
    for (size_t e = 0; e < r->count; ++e) {
        const specfit_place *at = &t->places[r->first + e];
        const specfit_input *in = &t->inputs[at->input];
        for (size_t k = 0; k < CLV_DESI_ARMS && n < CLV_SPECTRA_MAX_SPECTRA; ++k)
            if (in->column[k] != SIZE_MAX)
                slots[n++] = (specfit_slot){ .input = in,
                                             .row = at->row,
                                             .arm = k,
                                             .column = in->column[k],
                                             .pixels = in->desi.wavelength[k].shape[0],
                                             .wavelength = in->desi.wavelength[k].data };
    }
    return n;
}

bool specfit_is_held(const specfit_table *t, int unknown)
{
    for (size_t i = 0; i < t->count; ++i)
        if (!t->priors || !t->priors[i].fixed[unknown]) return false;
    return t->count > 0;
}

bool specfit_is_held_somewhere(const specfit_table *t, int unknown)
{
    for (size_t i = 0; t->priors && i < t->count; ++i)
        if (t->priors[i].fixed[unknown]) return true;
    return false;
}

const clv_desi_row *specfit_about(const specfit_table *t, const specfit_row *r)
{
    const specfit_place *at = &t->places[r->first];
    return &t->inputs[at->input].desi.row[at->row];
}
