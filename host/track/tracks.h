/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks in the form that the motion analysis uses: spots sorted by track and frame. */
#ifndef CLEAVE_HOST_TRACK_TRACKS_H
#define CLEAVE_HOST_TRACK_TRACKS_H

#include <cleave/motion.h>

typedef struct clv_track_spot {
    int64_t frame;
    double place[3]; /* z, y, x */
} clv_track_spot;

typedef struct clv_track_range {
    int64_t particle;
    size_t first, count; /* spots of the track */
} clv_track_range;

struct clv_tracks {
    clv_track_spot *spots;
    size_t spot_count;
    clv_track_range *ranges;
    size_t count;
    bool deep; /* positions have a meaningful z */
};

/* Finds the tracks [*first, *end) that a caller's index selects. Returns CLV_E_ARGUMENT if there are none. */
clv_status clv_tracks_pick(const clv_tracks *tracks, const char *function, int64_t index,
                           size_t *first, size_t *end);

#endif
