/* SPDX-License-Identifier: Apache-2.0 */
/* Compares PACO maps of a device with those of the reference, and states the allowed differences. */
#ifndef CLEAVE_HOST_SYNTHETIC_PACO_PAIR_H
#define CLEAVE_HOST_SYNTHETIC_PACO_PAIR_H

#include "host/synthetic/adi.h"

#include <cleave/patch.h>

#include <stdbool.h>

typedef struct paco_pair {
    double *a, *b; /* [height,width]; free with paco_pair_clear */
    size_t count;
    clv_paco_counts counts;
} paco_pair;

/* The largest difference over all positions. `snr` is |snr - snr0| / (1 + |snr0| times a factor), so that one limit
 * suits all values. */
typedef struct paco_difference {
    double a, snr;             /* infinite if NaN occur at other positions or for other reasons */
    double a_limit, snr_limit; /* limits, which depend on mode and convention */
    bool ok;
} paco_difference;

/* Runs clv_paco on the sequence. Free `pair` with paco_pair_clear; `report` may be NULL. */
clv_status paco_pair_compute(clv_context *context, const synthetic_adi *adi,
                             const clv_paco_options *options, paco_pair *pair, clv_report *report);
/* Runs clv_paco on the sequence in plain C, in a separate context. */
clv_status paco_pair_reference(const synthetic_adi *adi, const clv_paco_options *options,
                               paco_pair *pair);
void paco_pair_clear(paco_pair *pair);

paco_difference paco_pair_compare(const paco_pair *got, const paco_pair *want,
                                  const clv_paco_options *options);

#endif
