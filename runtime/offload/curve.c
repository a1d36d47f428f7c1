/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up, refines, reads and writes the times of host and device as functions of the amount of work. Pure functions.
 * */
#include "runtime/offload/curve.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void clv_curve_add(clv_curve *curve, double work, double host_s, double device_s)
{
    if (curve->count >= CLV_CURVE_POINTS) return;
    size_t i = curve->count++;
    for (; i && curve->at[i - 1].work > work; --i)
        curve->at[i] = curve->at[i - 1];
    curve->at[i].work = work;
    curve->at[i].seconds[CLV_HOST] = host_s;
    curve->at[i].seconds[CLV_DEVICE] = device_s;
}

double clv_curve_place(const clv_curve *curve, double work, size_t *first)
{
    size_t i = 1;
    *first = 0;
    if (curve->count < 2 || work <= curve->at[0].work) return 0;
    while (i < curve->count && curve->at[i].work < work)
        ++i;
    *first = i - 1;
    if (i == curve->count) return 0;
    const double low = curve->at[i - 1].work, high = curve->at[i].work;
    return (log(work) - log(low)) / (log(high) - log(low));
}

static double between(double a, double b, double t)
{
    return exp(log(a) + t * (log(b) - log(a)));
}

void clv_curve_at(const clv_curve *curve, double work, double seconds[CLV_SIDES])
{
    static const double least_part = 0.05; /* least part of the first point's time */
    const size_t n = curve->count;
    size_t i = 0;
    const double t = n ? clv_curve_place(curve, work, &i) : 0;
    for (int side = 0; side < CLV_SIDES; ++side) {
        if (!n)
            seconds[side] = 0;
        else if (work <=
                 curve->at[0].work) /* the host's time shrinks with the work, a launch does not */
            seconds[side] = curve->at[0].seconds[side] *
                            (side == CLV_HOST ? fmax(work / curve->at[0].work, least_part) : 1);
        else if (work >= curve->at[n - 1].work)
            seconds[side] = work / curve->at[n - 1].work * curve->at[n - 1].seconds[side];
        else
            seconds[side] = between(curve->at[i].seconds[side], curve->at[i + 1].seconds[side], t);
    }
}

/* Returns the ratio of the two sides' times at a point, the larger time over the smaller. */
static double apart(const clv_curve *curve, size_t i)
{
    const double ratio = curve->at[i].seconds[CLV_DEVICE] / curve->at[i].seconds[CLV_HOST];
    return ratio < 1 ? 1 / ratio : ratio;
}

bool clv_curve_next(const clv_curve *curve, double *work)
{
    static const double narrow = 1.2, wide = 2.5, alike = 1.4;
    if (curve->count >= CLV_CURVE_POINTS) return false;
    for (int pass = 0; pass < 2; ++pass)
        for (size_t i = 1; i < curve->count; ++i) {
            const bool before =
                curve->at[i - 1].seconds[CLV_DEVICE] < curve->at[i - 1].seconds[CLV_HOST];
            const bool after = curve->at[i].seconds[CLV_DEVICE] < curve->at[i].seconds[CLV_HOST];
            const bool tells =
                pass ? apart(curve, i - 1) < alike || apart(curve, i) < alike : before != after;
            if (!tells || curve->at[i].work < (pass ? wide : narrow) * curve->at[i - 1].work)
                continue;
            *work = sqrt(curve->at[i - 1].work * curve->at[i].work);
            return true;
        }
    return false;
}

void clv_curve_smooth(clv_curve *curve)
{
    for (size_t i = curve->count; i-- > 1;)
        for (int side = 0; side < CLV_SIDES; ++side)
            curve->at[i - 1].seconds[side] =
                fmin(curve->at[i - 1].seconds[side], curve->at[i].seconds[side]);
}

bool clv_curve_read(const char *text, clv_curve *curve)
{
    *curve = (clv_curve){ 0 };
    double last = 0;
    while (*text) {
        double number[3];
        for (int i = 0; i < 3; ++i) {
            char word[40];
            size_t length = 0;
            while (text[length] && text[length] != ':' && text[length] != ' ')
                ++length;
            if (!length || length >= sizeof word || (i < 2) != (text[length] == ':')) return false;
            snprintf(word, sizeof word, "%.*s", (int)length, text);
            if (!clv_parse_double(word, &number[i]) || !(number[i] > 0)) return false;
            text += length + (text[length] != '\0');
        }
        if (number[0] <= last || curve->count >= CLV_CURVE_POINTS) return false;
        last = number[0];
        clv_curve_add(curve, number[0], number[1], number[2]);
    }
    return curve->count > 0;
}

void clv_curve_write(const clv_curve *curve, char *text, size_t room)
{
    size_t used = 0;
    if (room) *text = '\0';
    for (size_t i = 0; i < curve->count && used < room; ++i)
        used += (size_t)clv_format(text + used, room - used, "%s%.6g:%.4g:%.4g", i ? " " : "",
                                   curve->at[i].work, curve->at[i].seconds[CLV_HOST],
                                   curve->at[i].seconds[CLV_DEVICE]);
}
