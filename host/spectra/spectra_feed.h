/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares stars on the host's cores before the devices ask for these stars. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_FEED_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_FEED_H

#include "host/spectra/spectra_plan.h"

typedef struct clv_star_feed clv_star_feed;

/* The part of a prepared star that a device needs; the arrays are laid out as in clv_star_data. */
typedef struct clv_star_pack {
    clv_star_facts facts;
    float *pairs, *ccf, *resolution; /* resolution: NULL if the fit uses no resolution */
    struct clv_star_pack *next;
} clv_star_pack;

/* Receives star `index` of a range. The feed calls this function on its caller's thread, in rising order of `index`. */
typedef clv_status clv_star_use(const clv_star_pack *pack, size_t index, void *user);

/* Creates a feed. Its helper threads start when the first range is requested; `threads` includes the caller's own. */
clv_status clv_star_feed_create(const clv_spectra_plan *plan, size_t threads, clv_star_feed **feed);
void clv_star_feed_free(clv_star_feed *feed); /* accepts NULL; joins the helper threads */

/* Passes the stars [first, first + count) to the clv_star_use function; the caller and the helper threads prepare them
 * together. Meanwhile the helpers prepare up to `ahead` stars beyond the furthest range requested so far, within a
 * limit of memory. Any thread may call this function. */
clv_status clv_star_feed_bring(clv_star_feed *feed, size_t first, size_t count, size_t ahead,
                               clv_star_use *use, void *user);

#endif
