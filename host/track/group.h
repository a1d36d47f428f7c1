/* SPDX-License-Identifier: Apache-2.0 */
/* Possible links fall into independent groups; each is assigned in the best way. */
#ifndef CLEAVE_HOST_TRACK_GROUP_H
#define CLEAVE_HOST_TRACK_GROUP_H

#include "host/track/assign.h"

#include <stddef.h>
#include <stdint.h>

/* A possible link: particle `from` to spot `to`; the cost is its squared length. */
typedef struct clv_edge {
    uint32_t from, to;
    double cost;
} clv_edge;

/* How groups that are too large for an assignment are made smaller. */
typedef struct clv_adaptive {
    double stop,
        step; /* the range is multiplied by `step` while it is above `stop`; stop 0: it is not */
    size_t largest; /* particles of a group that is assigned at its range */
} clv_adaptive;

/* Zero-initialise but for `range`, `adaptive` and `watch`. */
typedef struct clv_groups {
    double range; /* a spot that continues no particle costs its square */
    clv_adaptive adaptive;
    clv_watch *watch;
    size_t done;   /* units that the watch is told of */
    int64_t frame; /* for messages */
    clv_edge *edges;
    size_t count, room;
    int64_t *taken; /* [spots]: the particle of each, or -1 */
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

/* CLV_E_MEMORY; CLV_E_ARGUMENT for 2^32 edges. */
clv_status clv_groups_add(clv_groups *groups, uint32_t from, uint32_t to, double cost);
/* Assigns the edges, which are in the order of their spots; `count` is 0 afterwards. Every `from` is less than
 * `particles`, every `to` less than `spots`. CLV_E_ARGUMENT for groups that are too large. */
clv_status clv_groups_solve(clv_groups *groups, size_t particles, size_t spots);
void clv_groups_clear(clv_groups *groups);

#endif
