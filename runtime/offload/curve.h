/* SPDX-License-Identifier: Apache-2.0 */
/* Times of both sides against work: lookup, text, refinement. Pure. */
#ifndef CLEAVE_RUNTIME_OFFLOAD_CURVE_H
#define CLEAVE_RUNTIME_OFFLOAD_CURVE_H

#include <stdbool.h>
#include <stddef.h>

enum { CLV_HOST, CLV_DEVICE, CLV_SIDES }; /* places of the two sides in arrays of times */
enum { CLV_CURVE_POINTS = 24, CLV_CURVE_TEXT = CLV_CURVE_POINTS * 40 };

/* Ascending by work. */
typedef struct clv_curve {
    size_t count;
    struct {
        double work, seconds[CLV_SIDES];
    } at[CLV_CURVE_POINTS];
} clv_curve;

/* The point before `work` and how far it is from there to the next one, 0 to 1, in logarithms. */
double clv_curve_place(const clv_curve *curve, double work, size_t *first);
/* Between neighbours by logarithms, in proportion to work beyond the last, constant before the first. */
void clv_curve_at(const clv_curve *curve, double work, double seconds[CLV_SIDES]);
void clv_curve_add(clv_curve *curve, double work, double host_s, double device_s);
/* Where the next timing tells most: between two neighbours of which different sides win, then between
 * two far apart where the sides are alike. */
bool clv_curve_next(const clv_curve *curve, double *work);
/* Less work never takes longer: what says so was disturbed. */
void clv_curve_smooth(clv_curve *curve);
/* "4096:1.2e-06:3.1e-05 ..."; false when it is no curve. */
bool clv_curve_read(const char *text, clv_curve *curve);
void clv_curve_write(const clv_curve *curve, char *text, size_t room);

#endif
