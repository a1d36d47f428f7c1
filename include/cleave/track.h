/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks: spots of successive frames that are the same particle. */
#ifndef CLEAVE_TRACK_H
#define CLEAVE_TRACK_H

#include <cleave/job.h>

#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** A spot as the linker sees it. Frozen. */
typedef struct clv_point {
    int64_t frame;
    double y, x;
} clv_point;

/** Where a particle is looked for in the next frame. */
typedef enum clv_link_predict {
    CLV_PREDICT_NONE, /**< where it was last seen */
    CLV_PREDICT_VELOCITY, /**< carried on by the velocity of the particle that is nearest to it, mostly its own */
    CLV_PREDICT_DRIFT, /**< carried on by the mean velocity of all */
} clv_link_predict;

/** All-zero is not valid: search_range must be positive. */
typedef struct clv_link_options {
    size_t size;            /**< sizeof(clv_link_options) */
    double search_range;    /**< longest link, in the unit of the positions */
    size_t memory;          /**< frames that a particle may stay unseen */
    size_t min_length;      /**< tracks of fewer spots get no identifier; 0: 1 */
    clv_progress *progress; /**< NULL: none; units are spots; at most 10 calls a second */
    void *progress_user;
    /** NULL, or the third coordinate of each point [count], in the unit of y and x: links are then no longer than
     * search_range in space. */
    const double *z;
    /** Velocities are those of the particles that were seen in both of the last two frames with spots; in the first
     * frame, and where no particle was, they are guess_velocity. */
    clv_link_predict predict;
    double guess_velocity[3]; /**< z, y, x, in the unit of the positions per frame */
} clv_link_options;

/**
 * Links spots frame by frame: of all one-to-one assignments whose links are no longer than
 * search_range, the one with the smallest sum of squared lengths, where a spot that continues no
 * track costs search_range squared. Solved exactly in every independent group of up to some 2000 spots.
 *
 * A particle unseen for up to `memory` frames stays a candidate at its last place, or at the place that `predict` gives
 * it. Lengths of links are then those from the predicted places. Of equal solutions the one found for spots in the
 * order (frame, z, y, x) is taken: the answer does not depend on the order of the input.
 *
 * @param points    any order; frames may be missing; several spots of a frame at one place allowed.
 * @param particle  out, [count]: 0, 1, 2 ... by first frame, then z, y, x; -1: shorter than
 *                  min_length.
 * @param tracks    out, may be NULL: the number of identifiers.
 * @return CLV_OK; CLV_E_ARGUMENT (a group of m spots and n particles with m m (n + m) > 2e10; NULL,
 *         a range that is not positive, a position or velocity that is not finite, where above 1e150 nothing counts
 *         as finite, an unknown `predict`); CLV_E_MEMORY; CLV_E_CANCELLED.
 *
 * Cost: sorting, a search in cells, and the cube of the largest group.
 * Source: Crocker and Grier 1996 (the model); Jonker and Volgenant 1987 (the assignment); trackpy's
 * NearestVelocityPredict and DriftPredict (the predictions).
 */
CLV_API clv_status clv_link(const clv_point *points, size_t count, const clv_link_options *options,
                            int64_t *particle, size_t *tracks);

CLV_END_DECLS

#endif
