/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up, refines, reads and writes the times of host and device as functions of the amount of work. Pure functions.
 * */
#ifndef CLEAVE_RUNTIME_OFFLOAD_CURVE_H
#define CLEAVE_RUNTIME_OFFLOAD_CURVE_H

#include <stdbool.h>
#include <stddef.h>

enum { CLV_HOST, CLV_DEVICE, CLV_SIDES }; /* indices of the two sides in arrays of times */
enum { CLV_CURVE_POINTS = 24, CLV_CURVE_TEXT = CLV_CURVE_POINTS * 40 };

/* The points of a curve, in ascending order of work. */
typedef struct clv_curve {
    size_t count;
    struct {
        double work, seconds[CLV_SIDES];
    } at[CLV_CURVE_POINTS];
} clv_curve;

/* Finds the last point before `work`, and returns the position of `work` between that point and the next, from 0 to
 * 1, on a logarithmic scale. */
double clv_curve_place(const clv_curve *curve, double work, size_t *first);
/* Interpolates between neighbours on logarithmic scales. Beyond the last point times grow in proportion to the work;
 * before the first point the device's time is constant and the host's shrinks with the work. */
void clv_curve_at(const clv_curve *curve, double work, double seconds[CLV_SIDES]);
void clv_curve_add(clv_curve *curve, double work, double host_s, double device_s);
/* Finds the amount of work at which the next timing is most useful: between two neighbours at which different sides
 * win, else between two distant neighbours at which both sides take about the same time. */
bool clv_curve_next(const clv_curve *curve, double *work);
/* Raises times so that they never fall as the work grows: a time that contradicts this was disturbed. */
void clv_curve_smooth(clv_curve *curve);
/* Reads "4096:1.2e-06:3.1e-05 ..."; returns false if the text is no curve. */
bool clv_curve_read(const char *text, clv_curve *curve);
void clv_curve_write(const clv_curve *curve, char *text, size_t room);

#endif
