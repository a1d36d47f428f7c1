/* SPDX-License-Identifier: Apache-2.0 */
/* Compares results: finds the worst difference. */
#ifndef CLEAVE_HOST_SYNTHETIC_WORSE_H
#define CLEAVE_HOST_SYNTHETIC_WORSE_H

#include <math.h>

/* Returns the larger difference; a NaN counts as infinite, whereas fmax() would ignore it. */
static inline double cli_worse(double worst, double difference)
{
    return isnan(difference) ? (double)INFINITY : fmax(worst, difference);
}

#endif
