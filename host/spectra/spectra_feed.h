/* SPDX-License-Identifier: Apache-2.0 */
/* Stars prepared on the host's cores, ahead of the devices that will ask for them. */
#ifndef CLEAVE_HOST_SPECTRA_SPECTRA_FEED_H
#define CLEAVE_HOST_SPECTRA_SPECTRA_FEED_H

#include "host/spectra/spectra_plan.h"

typedef struct clv_star_feed clv_star_feed;

/* What a device gets of a star; arrays as clv_star_data has them. */
typedef struct clv_star_pack {
    clv_star_facts facts;
    float *pairs, *ccf, *resolution; /* resolution: NULL without */
    struct clv_star_pack *next;
} clv_star_pack;

/* Gets star `index` of a range; on the caller's thread, in order. */
typedef clv_status clv_star_use(const clv_star_pack *pack, size_t index, void *user);

/* Threads start with the first range that is asked for; `threads` counts the one that asks. */
clv_status clv_star_feed_create(const clv_spectra_plan *plan, size_t threads, clv_star_feed **feed);
void clv_star_feed_free(clv_star_feed *feed); /* accepts NULL; joins its threads */

/* Stars [first, first + count), prepared by whoever is free. `ahead`: so many stars behind the
 * furthest range are prepared meanwhile, as far as memory for them is set aside. Any thread. */
clv_status clv_star_feed_bring(clv_star_feed *feed, size_t first, size_t count, size_t ahead,
                               clv_star_use *use, void *user);

#endif
