/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a table of model spectra, and makes the grid of its models. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/cli/templates/templates.h"

#include <math.h>

static void try_grid(const templates_models *models)
{
    templates_grid grid = { 0 };
    if (!templates_make_grid(models, &grid)) {
        size_t *list = fuzz_alloc(models->count, sizeof *list);
        const size_t chosen = templates_choose(models, &grid, 2, list);
        FUZZ_CHECK(fuzz_poor || chosen == (models->count + 1) / 2);
        for (size_t i = 0; i < chosen; ++i)
            FUZZ_CHECK(list[i] < models->count);
        for (size_t i = 0; i < grid.all; ++i)
            FUZZ_CHECK(grid.row[i] >= -1 && grid.row[i] < (int32_t)models->count);
        clv_free(list);
    }
    templates_clear_grid(&grid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    templates_args a = { .models = fuzz_file(data, size) };
    templates_models models = { 0 };
    for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
        a.low[k] = -INFINITY, a.high[k] = INFINITY;
    const int code = templates_find(&a, &models);
    FUZZ_CHECK(code == CLI_OK || code == CLI_USAGE || (fuzz_poor && code == CLI_FAILED));
    for (size_t i = 0; i < models.count && !code; ++i)
        for (int k = 0; k < CLV_SPECTRA_PARAMETERS; ++k)
            FUZZ_CHECK(models.items[i].path && isfinite(models.items[i].parameter[k]));
    if (!code) try_grid(&models);
    templates_clear(&models);
    return 0;
}
