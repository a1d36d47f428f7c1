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
    CLV_PREDICT_CHANNEL, /**< carried along a channel by the mean velocity at the same distance from its wall */
} clv_link_predict;

/** Along which axis a channel goes. */
typedef enum clv_link_channel { CLV_CHANNEL_X, CLV_CHANNEL_Y } clv_link_channel;

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
    /** Above 0: where more than adaptive_group particles compete for spots, the search range is multiplied by
     * adaptive_step, for them alone, again and again until they fall into groups that are small enough. If they do not
     * before the range is adaptive_stop or less, that is an error. */
    double adaptive_stop;
    double adaptive_step;  /**< 0: 0.95 */
    size_t adaptive_group; /**< 0: 15 */
    /** Of CLV_PREDICT_CHANNEL: the flow goes along x (CLV_CHANNEL_Y: y), and velocities are averaged over bins of
     * channel_bin across it. Bins with fewer than channel_least particles (0: 20) take the velocity of the nearest
     * one that has enough. */
    double channel_bin;
    size_t channel_least;
    clv_link_channel channel_axis;
    /** Velocities at some places, [guesses][3] each (z, y, x), for the first frame in place of guess_velocity. */
    const double *guess_places, *guess_velocities;
    size_t guesses;
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
 * @return CLV_OK; CLV_E_ARGUMENT (a group of m spots and n particles with m m (n + m) > 2e10, or one that is too large
 *         at adaptive_stop; NULL, a range that is not positive, a position or velocity that is not finite, where above
 *         1e150 nothing counts as finite, an unknown `predict`, a channel without bins); CLV_E_MEMORY; CLV_E_CANCELLED.
 *
 * Cost: sorting, a search in cells, and the cube of the largest group.
 * Source: Crocker and Grier 1996 (the model); Jonker and Volgenant 1987 (the assignment); trackpy's
 * NearestVelocityPredict, DriftPredict and ChannelPredict (the predictions) and its adaptive search.
 */
CLV_API clv_status clv_link(const clv_point *points, size_t count, const clv_link_options *options,
                            int64_t *particle, size_t *tracks);

typedef enum clv_branch_kind {
    CLV_BRANCH_SPLIT, /**< the track of `to` begins there, and comes from that of `from` */
    CLV_BRANCH_MERGE, /**< the track of `from` ends there, and goes into that of `to` */
} clv_branch_kind;

/** A track that begins or ends at another one, which goes on. Frozen. */
typedef struct clv_branch {
    clv_branch_kind kind;
    size_t from, to; /**< indices of points; `to` is one frame later */
} clv_branch;

/**
 * Finds where linked tracks split and merge: a track that begins may come from a spot of the frame before whose track
 * goes on, and one that ends may go into a spot of the next frame whose track was there before, both at most `range`
 * away. Of all one-to-one assignments in each pair of frames the one with the smallest sum of squared distances is
 * taken, where a track that stays alone costs range squared. A spot splits once and takes in one track at most.
 *
 * @param z         [count], NULL: flat.
 * @param particle  [count], as clv_link gives it; points of negative ones are left out.
 * @param branches  out, by frame; [2 * tracks], or [2 * count].
 * @param found     out: how many.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a range or place as clv_link refuses it; a track with two spots in a frame;
 *         a group that is too large); CLV_E_MEMORY.
 *
 * Gaps are closed before, by `memory` of clv_link. Source: the second step of Jaqaman et al. 2008, without intensities.
 */
CLV_API clv_status clv_link_branches(const clv_point *points, const double *z,
                                     const int64_t *particle, size_t count, double range,
                                     clv_branch *branches, size_t *found);

CLV_END_DECLS

#endif
