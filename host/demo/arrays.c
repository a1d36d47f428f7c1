/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave demo`: estimates pi by counting random points. The count is exact, and the same on every device. */
#include "host/demo/demo.h"

#include "base/error.h"

#include <cleave/array.h>

#include <math.h>
#include <stdio.h>

static const uint64_t SAMPLES = 200u << 20, CHECKED = 4u << 20;

typedef struct points {
    uint64_t count, inside;
} points;

static clv_status count(clv_context *context, void *user)
{
    points *p = user;
    return clv_monte_carlo_pi(context, p->count, NULL, &p->inside, NULL);
}

/* Compares some of the points on the device with plain C; they must agree exactly. */
static clv_status check(const demo_stage *stage, demo_row *row)
{
    points some = { .count = CHECKED }, plain = some;
    CLV_TRY(demo_plain(count, &plain));
    CLV_TRY(demo_on_devices(stage->context, count, &some));
    const bool same = some.inside == plain.inside;
    clv_text_add(&row->notes, "%s plain C: %llu of the first %llu points inside, %llu in C\n",
                 same ? "agrees with" : "DIFFERS FROM", (unsigned long long)some.inside,
                 (unsigned long long)CHECKED, (unsigned long long)plain.inside);
    row->ok = row->ok && same;
    return CLV_OK;
}

clv_status demo_arrays(const demo_stage *stage, demo_row *row)
{
    points all = { .count = SAMPLES };
    snprintf(row->input, sizeof row->input, "%.0f million points", (double)SAMPLES / 1e6);
    CLV_TRY(demo_both_sides(stage, count, &all, row));
    if (stage->preparing) return CLV_OK;
    const double pi = 4.0 * (double)all.inside / (double)SAMPLES;
    snprintf(row->found, sizeof row->found, "pi is %.5f", pi);
    row->ok = fabs(pi - 3.14159265) < 6 * 1.64 / sqrt((double)SAMPLES);
    return check(stage, row);
}
