/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: finds a faint star hidden in noise by filtering: convolution, statistics, an expression, and the
 * position of the maximum. */
#include "host/demo/demo.h"
#include "host/synthetic/worse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <cleave/array.h>
#include <cleave/array_math.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 1024, PIXELS = SIDE * SIDE, ROW = 377, COLUMN = 610, RADIUS = 8 };

static const double SIGMA = 2;

/* Makes noise of deviation 1, with a star whose peak is 1.5. */
static void make_image(float *image)
{
    uint32_t state = 11;
    for (size_t i = 0; i < PIXELS; ++i) {
        state = state * 1664525u + 1013904223u;
        const double y = (double)(i / SIDE) - ROW, x = (double)(i % SIDE) - COLUMN;
        image[i] = (float)(((double)(state >> 8) * 0x1p-24 - 0.5) * 3.4641016 +
                           1.5 * exp(-(y * y + x * x) / (2 * SIGMA * SIGMA)));
    }
}

/* Results of the search for the star: the position of the smoothed image's maximum, and its height in deviations. */
typedef struct search {
    const float *image;
    float *soft, place, height;
} search;

static clv_status find(clv_context *context, void *user)
{
    search *s = user;
    enum { TAPS = 2 * RADIUS + 1 };
    float kernel[TAPS * TAPS];
    const size_t shape[] = { SIDE, SIDE };
    clv_array *x = NULL, *z = NULL, *one[4] = { NULL };
    clv_status status = clv_gaussian_2d(SIGMA, RADIUS, kernel);
    if (!status)
        status =
            clv_convolve_2d(context, s->image, SIDE, SIDE, kernel, TAPS, TAPS, NULL, s->soft, NULL);
    if (!status) status = clv_array_wrap(context, s->soft, 2, shape, &x);
    if (!status) status = clv_array_create(context, 2, shape, &z);
    for (size_t i = 0; i < CLV_LEN(one) && !status; ++i)
        status = clv_array_create(context, 0, NULL, &one[i]);
    if (!status) status = clv_reduce(context, CLV_REDUCE_MEAN, x, -1, one[0]);
    if (!status) status = clv_reduce(context, CLV_REDUCE_STD, x, -1, one[1]);
    const clv_map_input in[] = { { "x", x, 0 }, { "mean", one[0], 0 }, { "std", one[1], 0 } };
    if (!status) status = clv_map(context, "(x - mean) / std", in, CLV_LEN(in), z);
    if (!status) status = clv_reduce(context, CLV_REDUCE_ARGMAX, z, -1, one[2]);
    if (!status) status = clv_reduce(context, CLV_REDUCE_MAX, z, -1, one[3]);
    if (!status) status = clv_array_get(one[2], &s->place);
    if (!status) status = clv_array_get(one[3], &s->height);
    for (size_t i = 0; i < CLV_LEN(one); ++i)
        clv_array_free(one[i]);
    clv_array_free(x), clv_array_free(z);
    return status;
}

static clv_status run(const demo_stage *stage, search *found, search *want, demo_row *row)
{
    double worst = 0;
    CLV_TRY(demo_both_sides(stage, find, found, row));
    CLV_TRY(demo_plain(find, want));
    for (size_t i = 0; i < PIXELS; ++i)
        worst = cli_worse(worst, fabs((double)found->soft[i] - (double)want->soft[i]));
    const size_t place = (size_t)found->place;
    snprintf(row->found, sizeof row->found, "star at %zu, %zu: %.1f sigma", place / SIDE,
             place % SIDE, (double)found->height);
    /* the kernel's weights add up to 1, their magnitudes to 1.5: 289 rounding steps at most */
    const bool same = worst < 1e-4 && found->place == want->place;
    clv_text_add(&row->notes, "%s plain C: largest difference %.1e\n",
                 same ? "agrees with" : "DIFFERS FROM", worst);
    row->ok = same && abs((int)(place / SIDE) - ROW) <= 1 && abs((int)(place % SIDE) - COLUMN) <= 1;
    return CLV_OK;
}

clv_status demo_filter(const demo_stage *stage, demo_row *row)
{
    float *memory = clv_alloc((size_t)3 * PIXELS, sizeof *memory);
    if (!memory) return clv_fail(CLV_E_MEMORY, "not enough memory for an image");
    snprintf(row->input, sizeof row->input, "an image of %dx%d", SIDE, SIDE);
    make_image(memory);
    search found = { .image = memory, .soft = memory + PIXELS };
    search want = { .image = memory, .soft = memory + 2 * (size_t)PIXELS };
    clv_status status = CLV_OK;
    if (stage->preparing) /* calls that were only prepared have no results to read */
        (void)demo_both_sides(stage, find, &found, row);
    else
        status = run(stage, &found, &want, row);
    clv_free(memory);
    return status;
}
