/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the regular grid of the models: its nodes, how complete it is, and which models become start templates. */
#include "host/cli/templates/templates.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parameters that differ by less are the same. The second node of an axis with one value lies this far beside it. Both
 * need parameters whose rounding errors are smaller. */
static const double same = 1e-6, beside = 1e-3, largest = 1e6;

static double variable(const templates_model *model, int k)
{
    return k ? model->parameter[k] : log10(model->parameter[k]);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool make_axis(const templates_models *m, int k, templates_grid *g)
{
    double *v = g->axis[k] = clv_alloc(m->count + 1, sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < m->count; ++i)
        v[i] = variable(&m->items[i], k);
    qsort(v, m->count, sizeof *v, by_value);
    size_t n = 1;
    for (size_t i = 1; i < m->count; ++i)
        if (v[i] - v[n - 1] > same) v[n++] = v[i];
    g->single[k] = n == 1;
    if (g->single[k]) v[n++] = v[0] + beside;
    g->nodes[k] = n;
    return true;
}

static size_t node_of(const templates_grid *g, int k, double value)
{
    size_t low = 0, high = g->nodes[k];
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (g->axis[k][middle] <= value + 0.5 * same)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static size_t place_of(const templates_grid *g, const size_t at[4])
{
    return ((at[0] * g->nodes[1] + at[1]) * g->nodes[2] + at[2]) * g->nodes[3] + at[3];
}

/* Assigns models to nodes. An axis with one value gets the same model at both of its nodes. */
static int fill_rows(const templates_models *m, templates_grid *g)
{
    for (size_t i = 0; i < g->all; ++i)
        g->row[i] = -1;
    for (size_t i = 0; i < m->count; ++i) {
        size_t at[4];
        for (int k = 0; k < 4; ++k)
            at[k] = node_of(g, k, variable(&m->items[i], k));
        const int32_t other = g->row[place_of(g, at)];
        if (other >= 0) {
            const templates_model *one = &m->items[other], *two = &m->items[i];
            return cli_error(
                cli_running(), CLI_USAGE,
                "%s and %s have the same parameters (%g, %g, %g, %g): leave one of them out",
                one->path, two->path, one->parameter[0], one->parameter[1], one->parameter[2],
                one->parameter[3]);
        }
        for (int corner = 0; corner < 16; ++corner) {
            size_t there[4];
            bool wanted = true;
            for (int k = 0; k < 4; ++k) {
                there[k] = at[k] + (corner >> k & 1);
                wanted &= !(corner >> k & 1) || g->single[k];
            }
            if (wanted) g->row[place_of(g, there)] = (int32_t)i;
        }
    }
    return CLI_OK;
}

static void count_cells(templates_grid *g)
{
    size_t at[4];
    for (size_t i = 0; i < g->all; ++i)
        g->missing += g->row[i] < 0;
    for (at[0] = 0; at[0] + 1 < g->nodes[0]; ++at[0])
        for (at[1] = 0; at[1] + 1 < g->nodes[1]; ++at[1])
            for (at[2] = 0; at[2] + 1 < g->nodes[2]; ++at[2])
                for (at[3] = 0; at[3] + 1 < g->nodes[3]; ++at[3]) {
                    bool whole = true;
                    for (int corner = 0; corner < 16 && whole; ++corner) {
                        size_t there[4];
                        for (int k = 0; k < 4; ++k)
                            there[k] = at[k] + (corner >> k & 1);
                        whole = g->row[place_of(g, there)] >= 0;
                    }
                    ++g->cells, g->whole_cells += whole;
                }
}

static int check_parameters(const templates_model *model)
{
    if (!(model->parameter[0] > 0))
        return cli_error(cli_running(), CLI_USAGE,
                         "%s: the temperature is %g K, but it must be above 0", model->path,
                         model->parameter[0]);
    for (int k = 1; k < CLV_SPECTRA_PARAMETERS; ++k)
        if (!(fabs(model->parameter[k]) <= largest))
            return cli_error(cli_running(), CLI_USAGE,
                             "%s: %s is %g, but it must lie between %g and %g", model->path,
                             templates_parameters[k], model->parameter[k], -largest, largest);
    return CLI_OK;
}

int templates_make_grid(const templates_models *m, templates_grid *g)
{
    g->all = 1;
    for (size_t i = 0; i < m->count; ++i) {
        const int code = check_parameters(&m->items[i]);
        if (code) return code;
    }
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k) {
        if (!make_axis(m, k, g))
            return cli_error(cli_running(), CLI_FAILED, "not enough memory for a grid");
        if (g->nodes[k] > TEMPLATES_NODES / g->all)
            return cli_error(cli_running(), CLI_USAGE,
                             "the models' parameters take more than %d different combinations: "
                             "they do not form a regular grid",
                             TEMPLATES_NODES);
        g->all *= g->nodes[k];
    }
    g->row = clv_alloc(g->all, sizeof *g->row);
    if (!g->row) return cli_error(cli_running(), CLI_FAILED, "not enough memory for a grid");
    const int code = fill_rows(m, g);
    if (code) return code;
    count_cells(g);
    if (!g->whole_cells)
        return cli_error(cli_running(), CLI_USAGE,
                         "no cell of the %zu x %zu x %zu x %zu grid of %zu models has models at "
                         "all its corners, but interpolation needs at least one: add the missing "
                         "models, or narrow --select",
                         g->nodes[0], g->nodes[1], g->nodes[2], g->nodes[3], m->count);
    return CLI_OK;
}

void templates_clear_grid(templates_grid *g)
{
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        clv_free(g->axis[k]);
    clv_free(g->row);
    *g = (templates_grid){ 0 };
}

/* ---- start templates ---------------------------------------------------------------------------- */

typedef struct curve_point {
    int64_t key; /* signed, like rvspecfit's keys, so that the highest bit is the sign */
    size_t model;
} curve_point;

static int by_key(const void *left, const void *right)
{
    const curve_point *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->model < b->model ? -1 : a->model > b->model;
}

/* Returns the position along Morton's curve: it interleaves the bits of the four node numbers, as rvspecfit's make_ccf
 * does. */
static uint64_t curve_key(const templates_model *model, const templates_grid *g)
{
    enum { BITS = 16 };
    uint64_t key = 0;
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k) {
        const double last = g->single[k] ? 1 : (double)(g->nodes[k] - 1);
        const double part = (double)node_of(g, k, variable(model, k)) / last;
        const uint64_t whole = (uint64_t)fmin(part * (1 << BITS), (1 << BITS) - 1);
        for (int bit = 0; bit < BITS; ++bit)
            key |= (whole >> bit & 1) << (bit * CLV_SPECTRA_PARAMETERS + k);
    }
    return key;
}

size_t templates_choose(const templates_models *m, const templates_grid *g, size_t every,
                        size_t *list)
{
    curve_point *points = clv_alloc(m->count, sizeof *points);
    size_t n = 0;
    for (size_t i = 0; points && i < m->count; ++i)
        points[i] = (curve_point){ (int64_t)curve_key(&m->items[i], g), i };
    if (points) qsort(points, m->count, sizeof *points, by_key);
    for (size_t i = 0; points && i < m->count; i += every)
        list[n++] = points[i].model;
    clv_free(points);
    return n;
}
