/* SPDX-License-Identifier: Apache-2.0 */
/* Splits possible links into independent groups and finds the best assignment of each group. */
#ifndef CLEAVE_HOST_TRACK_GROUP_H
#define CLEAVE_HOST_TRACK_GROUP_H

#include "host/track/assign.h"

#include <stddef.h>
#include <stdint.h>

/* A possible link from particle `from` to spot `to`. The cost is the link's squared length. */
typedef struct clv_edge {
    uint32_t from, to;
    double cost;
} clv_edge;

/* The rule by which groups that are too large for an assignment are shrunk. */
typedef struct clv_adaptive {
    /* `step` scales the range for as long as the range is above `stop`; stop 0: never */
    double stop, step;
    size_t largest; /* most particles of a group that is assigned without shrinking the range */
} clv_adaptive;

/* Zero-initialise all fields except `range`, `adaptive` and `watch`. */
typedef struct clv_groups {
    double range; /* a spot that continues no particle costs range^2 */
    clv_adaptive adaptive;
    clv_watch *watch;
    size_t done;   /* finished units to report to the watch */
    int64_t frame; /* for messages */
    clv_edge *edges;
    size_t count, room;
    int64_t *taken; /* [spots]: the particle assigned to each spot, or -1 */
    size_t taken_room;
    /* scratch */
    uint32_t *group, *place;
    size_t group_room, place_room;
    clv_edge *own;
    size_t own_room;
    double *cost;
    size_t cost_room;
    clv_assign_work work;
    size_t work_room;
    size_t *column;
} clv_groups;

/* Adds a possible link. Returns CLV_E_MEMORY, or CLV_E_ARGUMENT for the 2^32nd edge. */
clv_status clv_groups_add(clv_groups *groups, uint32_t from, uint32_t to, double cost);
/* Assigns the edges, which must be in the order of their spots; afterwards `count` is 0. Every `from` must be less than
 * `particles`, every `to` less than `spots`. Returns CLV_E_ARGUMENT if a group is too large. */
clv_status clv_groups_solve(clv_groups *groups, size_t particles, size_t spots);
void clv_groups_clear(clv_groups *groups);

#endif
