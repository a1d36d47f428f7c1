/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the spectra of the stars that are fitted in one job from their files. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 512, GAP = 16, ROOM = 4 };

/* ---- which stars ------------------------------------------------------------------------------- */

static bool same_slots(const specfit_slot *x, const specfit_slot *y, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (x[i].column != y[i].column || x[i].pixels != y[i].pixels ||
            x[i].input->single != y[i].input->single ||
            x[i].input->diagonals != y[i].input->diagonals ||
            (x[i].wavelength != y[i].wavelength &&
             memcmp(x[i].wavelength, y[i].wavelength, x[i].pixels * sizeof(double)) != 0))
            return false;
    return true;
}

size_t specfit_batch_length(const specfit_table *t, size_t from, size_t most)
{
    specfit_slot first[CLV_SPECTRA_MAX_SPECTRA], other[CLV_SPECTRA_MAX_SPECTRA];
    const size_t n = specfit_slots(t, &t->rows[from], first);
    const size_t rows = CLV_MAX((size_t)1, CLV_MAX(most, (size_t)MOST_ROWS) /
                                               CLV_MAX(t->rows[from].count, (size_t)1));
    size_t count = 1;
    while (from + count < t->count && count < CLV_MIN(most, rows) &&
           specfit_slots(t, &t->rows[from + count], other) == n && same_slots(first, other, n))
        ++count;
    return count;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const specfit_place *x = a, *y = b;
    if (x->input != y->input) return x->input < y->input ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median error. The squares of errors are kept as float32 in units of the median error, so that they
 * round the same way in every unit of flux. */
static double unit_of(const double *error, size_t n, double *room)
{
    size_t good = 0;
    for (size_t k = 0; k < n; ++k)
        if (error[k] > 0) room[good++] = error[k];
    if (!good) return 1;
    qsort(room, good, sizeof *room, by_value);
    return room[good / 2];
}

/* Fills the rows of the resolution matrix with Gaussians whose width is the part of the spectrum's line-spread function
 * that the library's templates do not have yet. The layout is DESI's: column j of row i is in diagonal half - (j -
 * i). */
static void fill_resolution(const clv_one_spectrum *s, size_t from, size_t n, double sigma,
                            size_t diagonals, float *out)
{
    const long half = (long)(diagonals / 2);
    memset(out, 0, diagonals * n * sizeof *out);
    for (size_t i = 0; i < n; ++i) {
        const size_t k = from + i, l = k ? k - 1 : 0, r = CLV_MIN(k + 1, s->pixels - 1);
        const double pixel = (s->wavelength[r] - s->wavelength[l]) / (double)(r - l);
        const double own = s->lsf[k], has = sigma / pixel, rest = own * own - has * has;
        double sum = 0;
        for (long m = -half; m <= half; ++m)
            sum += rest > 1e-4 ? exp(-0.5 * (double)(m * m) / rest) : m == 0;
        for (long m = -half; m <= half; ++m) {
            const long j = (long)i + m;
            if (j < 0 || j >= (long)n) continue;
            const double w = rest > 1e-4 ? exp(-0.5 * (double)(m * m) / rest) : m == 0;
            out[(size_t)(half - m) * n + (size_t)j] = (float)(w / sum);
        }
    }
}

static clv_status make_piece(const specfit_table *t, const specfit_input *in,
                             const clv_one_spectrum *s, size_t arm, specfit_piece *p)
{
    const size_t n = in->desi.wavelength[arm].shape[0], from = in->from[arm];
    const size_t flat[] = { 1, n }, deep[] = { 1, in->diagonals, n };
    if (from > s->pixels || n > s->pixels - from)
        return clv_fail(CLV_E_FORMAT, "%s: the file changed while it was read", in->path);
    double *room = clv_alloc(n, sizeof *room);
    if (!room) return clv_fail(CLV_E_MEMORY, "%s: out of memory", in->path);
    const double unit = p->unit[arm] = unit_of(s->error + from, n, room);
    clv_free(room);
    CLV_TRY(clv_file_array_create(&p->block.flux[arm], in->path, CLV_F32, 2, flat));
    CLV_TRY(clv_file_array_create(&p->block.ivar[arm], in->path, CLV_F32, 2, flat));
    float *flux = p->block.flux[arm].data, *ivar = p->block.ivar[arm].data;
    for (size_t k = 0; k < n; ++k) {
        const double e = s->error[from + k] / unit, f = s->flux[from + k] / unit;
        const bool good = e > 0 && isfinite(f);
        flux[k] = good ? (float)f : 0;
        ivar[k] = good ? (float)fmin(1 / (e * e), 1e30) : 0;
    }
    if (!in->diagonals) return CLV_OK;
    CLV_TRY(clv_file_array_create(&p->block.resolution[arm], in->path, CLV_F32, 3, deep));
    fill_resolution(s, from, n, t->arms[in->column[arm]].sigma, in->diagonals,
                    p->block.resolution[arm].data);
    return CLV_OK;
}

static clv_status read_single(const specfit_args *a, const specfit_table *t, specfit_piece *p)
{
    const specfit_input *in = &t->inputs[p->input];
    clv_one_spectrum s = { 0 };
    p->block.first = 0, p->block.count = 1;
    clv_status status = specfit_read_single(a, in->path, &s);
    for (size_t k = 0; k < CLV_DESI_ARMS && !status; ++k)
        if (in->column[k] != SIZE_MAX) status = make_piece(t, in, &s, k, p);
    clv_one_spectrum_clear(&s);
    return status;
}

clv_status specfit_batch_read(const specfit_args *a, const specfit_table *t, size_t from,
                              size_t count, specfit_batch *b)
{
    size_t all = 0, n = 0;
    *b = (specfit_batch){ 0 };
    for (size_t i = 0; i < count; ++i)
        all += t->rows[from + i].count;
    specfit_place *places = clv_alloc(CLV_MAX(all, (size_t)1), sizeof *places);
    b->pieces = clv_zalloc(CLV_MAX(all, (size_t)1), sizeof *b->pieces);
    clv_status status = places && b->pieces
                            ? CLV_OK
                            : clv_fail(CLV_E_MEMORY, "specfit: not enough memory for spectra");
    for (size_t i = 0; i < count && !status; ++i)
        for (size_t e = 0; e < t->rows[from + i].count; ++e)
            places[n++] = t->places[t->rows[from + i].first + e];
    if (!status) qsort(places, n, sizeof *places, by_place);
    for (size_t i = 0, end; i < n && !status; i = end) {
        specfit_piece *p = &b->pieces[b->count++];
        const specfit_input *in = &t->inputs[places[i].input];
        for (end = i + 1; end < n && places[end].input == places[i].input &&
                          places[end].row - places[end - 1].row <= GAP &&
                          places[end].row - places[i].row < MOST_ROWS;)
            ++end;
        p->input = places[i].input;
        for (size_t k = 0; k < CLV_DESI_ARMS; ++k)
            p->unit[k] = 1;
        status = in->single ? read_single(a, t, p)
                            : clv_desi_read(&in->desi, places[i].row,
                                            places[end - 1].row - places[i].row + 1,
                                            a->resolution == 1, &p->block);
    }
    clv_free(places);
    if (status) specfit_batch_clear(b);
    return status;
}

void specfit_batch_clear(specfit_batch *b)
{
    for (size_t i = 0; i < b->count; ++i)
        clv_desi_block_clear(&b->pieces[i].block);
    clv_free(b->pieces);
    *b = (specfit_batch){ 0 };
}

clv_spectrum specfit_batch_spectrum(const specfit_table *t, const specfit_batch *b,
                                    const specfit_slot *slot)
{
    const size_t number = (size_t)(slot->input - t->inputs), n = slot->pixels, arm = slot->arm;
    clv_spectrum s = { .arm = slot->column, .pixels = n, .wavelength = slot->wavelength };
    for (size_t i = 0; i < b->count; ++i) {
        const specfit_piece *p = &b->pieces[i];
        const clv_desi_block *block = &p->block;
        if (p->input != number || slot->row < block->first ||
            slot->row - block->first >= block->count)
            continue;
        const size_t row = slot->row - block->first;
        s.flux = (const float *)block->flux[arm].data + row * n;
        s.ivar = (const float *)block->ivar[arm].data + row * n;
        s.unit = p->unit[arm];
        if (block->mask[arm].data) s.mask = (const int32_t *)block->mask[arm].data + row * n;
        if (block->resolution[arm].data) {
            s.diagonals = block->resolution[arm].shape[1];
            s.resolution = (const float *)block->resolution[arm].data + row * n * s.diagonals;
            s.resolution_is_final = slot->input->single;
        }
        break;
    }
    return s;
}
