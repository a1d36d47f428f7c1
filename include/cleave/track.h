/* SPDX-License-Identifier: Apache-2.0 */
/* Links spots of successive frames into tracks, one for each particle. */
#ifndef CLEAVE_TRACK_H
#define CLEAVE_TRACK_H

#include <cleave/job.h>

#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** A spot to link. Frozen. */
typedef struct clv_point {
    int64_t frame;
    double y, x;
} clv_point;

/** The place at which the linker expects a particle in the next frame. */
typedef enum clv_link_predict {
    CLV_PREDICT_NONE, /**< the particle's last position */
    /** The particle's last position plus the velocity of the nearest particle, which is usually the particle itself. */
    CLV_PREDICT_VELOCITY,
    CLV_PREDICT_DRIFT, /**< the particle's last position plus the mean velocity of all particles */
    /** The particle's last position plus the mean velocity at its distance from the wall of a channel. */
    CLV_PREDICT_CHANNEL,
} clv_link_predict;

/** The axis along which a channel runs. */
typedef enum clv_link_channel { CLV_CHANNEL_X, CLV_CHANNEL_Y } clv_link_channel;

/** Options of clv_link. You must set search_range; all other fields may be zero. */
typedef struct clv_link_options {
    size_t size;         /**< sizeof(clv_link_options) */
    double search_range; /**< longest link, in the unit of the positions */
    size_t memory;     /**< largest number of frames in a row in which a particle may be missing */
    size_t min_length; /**< tracks with fewer spots get no identifier; 0: 1 */
    clv_progress *progress; /**< NULL: none; counts spots; at most 10 calls per second */
    void *progress_user;
    /** NULL, or the third coordinate of each point [count], in the unit of y and x: search_range is then a distance in
     * space. */
    const double *z;
    /** Predictions use the velocities of the particles that were seen in both of the last two frames with spots. In the
     * first frame, and if there are no such particles, they use guess_velocity. */
    clv_link_predict predict;
    double guess_velocity[3]; /**< z, y, x, in the unit of the positions per frame */
    /** Above 0: if more than adaptive_group particles compete for spots, the linker multiplies the search range of
     * these particles by adaptive_step, again and again, until they fall into small enough groups. If the range reaches
     * adaptive_stop before that, the call fails. */
    double adaptive_stop;
    double adaptive_step;  /**< factor above 0 and below 1; 0 means 0.95 */
    size_t adaptive_group; /**< see adaptive_stop; 0: 15 */
    /** For CLV_PREDICT_CHANNEL: the flow goes along x, or along y for CLV_CHANNEL_Y, and velocities are averaged over
     *  bins of width channel_bin across it. Bins with fewer than channel_least particles (0: 20) take the velocity of
     *  the nearest bin that has enough. */
    double channel_bin;
    size_t channel_least;
    clv_link_channel channel_axis;
    /** Positions, and the expected velocities of particles near them: [guesses][3] each (z, y, x). The first frame
     * uses them in place of guess_velocity. */
    const double *guess_places, *guess_velocities;
    size_t guesses;
} clv_link_options;

/**
 * Links spots into tracks, frame by frame. Of all one-to-one assignments whose links are no longer than search_range,
 * the linker takes the one with the smallest sum of squared lengths; a spot that continues no track costs search_range
 * squared. The solution is exact in every independent group of up to about 2000 spots.
 *
 * A particle that is missing for up to `memory` frames stays a candidate at its last place, or at the place that
 * `predict` gives it; the lengths of links are then measured from the predicted places. Spots are processed in the
 * order (frame, z, y, x), which decides between equal solutions. The order of the input does not matter.
 *
 * @param points    in any order; frames may be missing; several spots of a frame may be at one place.
 * @param particle  out, [count]: the track of each point, numbered 0, 1, 2 ... by first frame, then z, y, x; -1: its
 *                  track is shorter than min_length.
 * @param tracks    out, may be NULL: the number of tracks with an identifier.
 * @return CLV_OK; CLV_E_ARGUMENT (a group of m spots and n particles with m m (n + m) > 2e10, or one that is too large
 *         at adaptive_stop; NULL; a range that is not positive; a position or velocity that is not finite or exceeds
 *         1e150; an unknown `predict`; a channel without bins); CLV_E_MEMORY; CLV_E_CANCELLED.
 *
 * Cost: the time of a sort and a search in cells, plus the cube of the size of the largest group.
 * Source: Crocker and Grier 1996 (the model); Jonker and Volgenant 1987 (the assignment); trackpy's
 * NearestVelocityPredict, DriftPredict and ChannelPredict (the predictions) and its adaptive search.
 */
CLV_API clv_status clv_link(const clv_point *points, size_t count, const clv_link_options *options,
                            int64_t *particle, size_t *tracks);

typedef enum clv_branch_kind {
    CLV_BRANCH_SPLIT, /**< the track of `to` begins at `to` and splits from the track of `from` */
    CLV_BRANCH_MERGE, /**< the track of `from` ends at `from` and merges into the track of `to` */
} clv_branch_kind;

/** A place where a track begins or ends at another track, which continues. Frozen. */
typedef struct clv_branch {
    clv_branch_kind kind;
    size_t from, to; /**< indices of points; `to` is one frame later */
} clv_branch;

/**
 * Finds where linked tracks split and merge. A track that begins may split from a spot of the previous frame whose own
 * track continues; a track that ends may merge into a spot of the next frame whose own track began earlier. Both spots
 * must be at most `range` away. In each pair of frames, the function takes the one-to-one assignment with the smallest
 * sum of squared distances; a track that is not assigned costs range squared. At most one track splits from each spot,
 * and at most one track merges into it.
 *
 * @param z         [count]; NULL: all points lie in one plane.
 * @param particle  [count], as from clv_link; points with negative identifiers are left out.
 * @param branches  out, in the order of frames; needs room for 2 * tracks branches, or for 2 * count.
 * @param found     out: how many branches there are.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a range or place that clv_link would refuse; a track with two spots in a frame;
 *         a group that is too large); CLV_E_MEMORY.
 *
 * This function does not close gaps: `memory` of clv_link does. Source: the second step of Jaqaman et al. 2008, without
 * intensities.
 */
CLV_API clv_status clv_link_branches(const clv_point *points, const double *z,
                                     const int64_t *particle, size_t count, double range,
                                     clv_branch *branches, size_t *found);

CLV_END_DECLS

#endif
