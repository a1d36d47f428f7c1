/* SPDX-License-Identifier: Apache-2.0 */
/* Results beside others: how far the worst one is off. */
#ifndef CLEAVE_HOST_SYNTHETIC_WORSE_H
#define CLEAVE_HOST_SYNTHETIC_WORSE_H

#include <math.h>

/* The larger difference; what is no number is as far as can be, where fmax() would take the other. */
static inline double cli_worse(double worst, double difference)
{
    return isnan(difference) ? (double)INFINITY : fmax(worst, difference);
}

#endif
