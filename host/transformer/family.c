/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the differences between families of encoders: the rows of the position table, and the bias by relative
 * position. */
#include "host/transformer/encoder.h"

#include <math.h>

enum { BEYOND = 64 }; /* elements beyond the largest distance that kernels may read without using */

size_t clv_table_width(const clv_model_config *c)
{
    return c->embedding ? c->embedding : c->width;
}

void clv_positions_fill(const clv_model_config *c, int32_t *tokens, size_t count)
{
    int32_t row = (int32_t)c->first_position;
    const int32_t pad = row - 1; /* id of padding; -1, which is no id, if positions begin with 0 */
    for (size_t t = 0; t < count; ++t)
        tokens[2 * t + 1] = tokens[2 * t] == pad ? pad : row++;
}

/* Half of the buckets are for keys before the query, and half for keys after it. In each half, every short distance has
 * a bucket of its own; the borders of the other buckets are logarithmic up to a distance of 128. They are computed in
 * float32, as in PyTorch, because rounding decides where they lie. Source: Raffel et al. 2020 (T5); Song et al. 2020
 * (MPNet). */
size_t clv_relative_bucket(ptrdiff_t ahead, size_t buckets)
{
    const size_t half = buckets / 2, exact = half / 2;
    const size_t distance = (size_t)(ahead < 0 ? -ahead : ahead), start = ahead > 0 ? half : 0;
    if (distance < exact) return start + distance;
    const float grown = logf((float)distance / (float)exact) / (float)log(128.0 / (double)exact) *
                        (float)(half - exact);
    const size_t bucket = exact + (size_t)grown;
    return start + (bucket < half ? bucket : half - 1);
}

size_t clv_relative_reach(const clv_model_config *c)
{
    return c->positions + BEYOND;
}

void clv_relative_fill(const clv_model_config *c, const float *relative, float *table)
{
    const ptrdiff_t reach = (ptrdiff_t)clv_relative_reach(c);
    for (ptrdiff_t i = -reach; i < reach; ++i) {
        const size_t bucket = clv_relative_bucket(-i, c->buckets);
        for (size_t h = 0; h < c->heads; ++h)
            table[h * 2 * (size_t)reach + (size_t)(i + reach)] = relative[bucket * c->heads + h];
    }
}
