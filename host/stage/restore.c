/* SPDX-License-Identifier: Apache-2.0 */
/* Shifts images back by fractions of a pixel. */
#include "base/alloc.h"
#include "base/error.h"

#include <cleave/stage.h>

#include <math.h>

/* Keys' cubic kernel (1981) at the four pixels around a place that is `part` beyond the second of them. */
static void weigh(double part, float weight[4])
{
    const double t = part, u = 1 - part;
    weight[0] = (float)(-0.5 * t * u * u);
    weight[1] = (float)(1 - t * t * (2.5 - 1.5 * t));
    weight[2] = (float)(1 - u * u * (2.5 - 1.5 * u));
    weight[3] = (float)(-0.5 * u * t * t);
}

/* Returns whether the place lies in the image, and moves the four pixels of the kernel into it. */
static bool place(double at, size_t size, size_t index[4], float weight[4])
{
    if (!(at >= 0 && at <= (double)(size - 1))) return false;
    const double below = floor(at);
    weigh(at - below, weight);
    for (int i = 0; i < 4; ++i) {
        const double wanted = below + i - 1;
        index[i] = wanted < 0 ? 0 : wanted > (double)(size - 1) ? size - 1 : (size_t)wanted;
    }
    return true;
}

clv_status clv_stage_restore(const float *in, size_t height, size_t width, double y, double x,
                             float *out)
{
    if (!in || !out || !isfinite(y) || !isfinite(x))
        return clv_fail(CLV_E_ARGUMENT,
                        "stage_restore: image is NULL, or the shift (%g, %g) is not finite", y, x);
    if (!height || !width)
        return clv_fail(
            CLV_E_SHAPE,
            "stage_restore: the image is [%zu,%zu], but both extents must be at least 1", height,
            width);
    for (size_t i = 0; i < height; ++i) {
        size_t rows[4], columns[4];
        float by_row[4], by_column[4];
        const bool inside = place((double)i + y, height, rows, by_row);
        for (size_t j = 0; j < width; ++j) {
            float sum = NAN;
            if (inside && place((double)j + x, width, columns, by_column)) {
                sum = 0;
                for (int a = 0; a < 4; ++a)
                    for (int b = 0; b < 4; ++b)
                        if (by_row[a] != 0 && by_column[b] != 0)
                            sum += by_row[a] * by_column[b] * in[rows[a] * width + columns[b]];
            }
            out[i * width + j] = sum;
        }
    }
    return CLV_OK;
}
