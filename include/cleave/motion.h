/* SPDX-License-Identifier: Apache-2.0 */
/* How particles move: drift, mean squared displacements and diffusion coefficients of tracks. */
#ifndef CLEAVE_MOTION_H
#define CLEAVE_MOTION_H

#include <cleave/track.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** Tracks in the order of their identifiers, each with its spots by frame. */
typedef struct clv_tracks clv_tracks;

/** One track. Lengths are in the unit of the positions. Frozen. */
typedef struct clv_track {
    int64_t particle;    /**< its identifier, as given */
    int64_t first, last; /**< frames */
    size_t spots;
    double extent;       /**< diagonal of the box around its spots */
    double displacement; /**< from the first spot to the last */
} clv_track;

/** Which tracks stay; all-zero but `size` keeps all. Bounds belong to what stays. */
typedef struct clv_track_filter {
    size_t size;                               /**< sizeof(clv_track_filter) */
    size_t min_spots, max_spots;               /**< 0: no bound */
    double min_extent, max_extent;             /**< 0: no bound */
    double min_displacement, max_displacement; /**< 0: no bound */
} clv_track_filter;

/** Mean squared displacement at one lag, in the square of the positions' unit. NaN where there are no pairs. Frozen. */
typedef struct clv_msd {
    int64_t lag;   /**< frames */
    size_t pairs;  /**< of spots that are `lag` frames apart */
    size_t tracks; /**< that have such pairs */
    double msd;    /**< sum of `square` over the axes */
    double error;  /**< standard error of msd */
    /** How many independent squared displacements tell as much (Qian et al. 1991, B4). */
    double independent;
    double mean[3];   /**< displacement along z, y, x */
    double square[3]; /**< squared displacement along z, y, x */
} clv_msd;

/** All-zero but `size` is valid. */
typedef struct clv_diffusion_options {
    size_t size;               /**< sizeof(clv_diffusion_options) */
    bool position_error_given; /**< position_error is known; else it is found together with D */
    /** Standard deviation of a position along y or x, in the positions' unit; that along z is always found. */
    double position_error;
    double exposure; /**< share of the time between frames during which light is gathered, 0 to 1 */
    /** Share of the motion that subtracting a drift took away: see clv_tracks_drift. */
    double drift_share;
} clv_diffusion_options;

/** A diffusion coefficient D, in the square of the positions' unit per frame. NaN: too few displacements. Frozen. */
typedef struct clv_diffusion {
    double d, d_error;          /**< the mean over the axes, and its standard error */
    double lateral, axial;      /**< along y and x; along z (NaN of flat tracks) */
    double position_variance;   /**< of a position along y or x; may be negative by chance */
    double position_variance_z; /**< along z; NaN of flat tracks */
    double offset;              /**< msd(lag) = 2 axes D lag + offset, in the limit of many spots */
    size_t displacements, tracks; /**< that were used */
} clv_diffusion;

/**
 * Takes a table of tracks in.
 *
 * @param points    [count] in any order. A track has one spot per frame at most; frames may be missing.
 * @param z         [count], NULL: flat. A z that is the same everywhere counts as none.
 * @param particle  [count]: the track of each point; points of negative ones belong to none.
 * @param tracks    out; free with clv_tracks_free. Nothing of the caller's is kept.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a position that is not finite, or beyond 1e150; a track that has two spots in
 *         a frame; frames that are 2^62 or more apart); CLV_E_MEMORY.
 */
CLV_API clv_status clv_tracks_create(const clv_point *points, const double *z,
                                     const int64_t *particle, size_t count, clv_tracks **tracks);
CLV_API void clv_tracks_free(clv_tracks *tracks); /**< accepts NULL */

CLV_API size_t clv_tracks_count(const clv_tracks *tracks);
CLV_API size_t clv_tracks_axes(const clv_tracks *tracks); /**< 2 or 3 */
CLV_API clv_track clv_tracks_at(const clv_tracks *tracks,
                                size_t index); /**< index < clv_tracks_count */
/** First and last frame of all tracks; 0 and -1 if there are none. */
CLV_API void clv_tracks_frames(const clv_tracks *tracks, int64_t *first, int64_t *last);

/**
 * Drops the tracks that the filter does not keep.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a bound that is negative or NaN).
 */
CLV_API clv_status clv_tracks_filter(clv_tracks *tracks, const clv_track_filter *filter);

/** The tracks' spots by particle and frame; each output has room for all of them and may be NULL. Returns how many. */
CLV_API size_t clv_tracks_spots(const clv_tracks *tracks, clv_point *points, double *z,
                                int64_t *particle);

/**
 * The common motion: from frame to frame the mean displacement of all tracks that have a spot in both, then summed.
 * A frame that no track passes into has the drift of the frame before it.
 *
 * @param smooth  the mean displacement is averaged over that many frames, the frame and those before it; 0 or 1: not.
 * @param drift   out, [last - first + 1][3]: z, y, x, since the first frame.
 * @param share   out, may be NULL: the share of the diffusive motion that subtracting it takes away. The mean of n
 *                tracks contains 1/n of the motion of each of them.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY.
 *
 * Source: the same as trackpy's compute_drift.
 */
CLV_API clv_status clv_tracks_drift(const clv_tracks *tracks, size_t smooth, double *drift,
                                    double *share);

/** Subtracts what clv_tracks_drift gives, or a drift from elsewhere, of the same shape. Not finite: CLV_E_ARGUMENT. */
CLV_API clv_status clv_tracks_subtract(clv_tracks *tracks, const double *drift);

enum { CLV_ALL_TRACKS = -1 };

/**
 * Mean squared displacements: msd(lag) = mean over pairs of |r(t + lag) - r(t)|^2, all overlapping pairs of spots that
 * are `lag` frames apart.
 *
 * @param index  of a track, or CLV_ALL_TRACKS: the mean over tracks, weighted by `independent` of each (as trackpy's
 *               emsd does it).
 * @param lags   1 to this.
 * @param msd    out, [lags].
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no such track); CLV_E_MEMORY.
 *
 * The error of one track is msd sqrt(2 / (axes independent)), which holds for free diffusion; that of at least ten
 * tracks is the scatter between them, which holds for any motion. Lags share spots, so their errors go together.
 * Source: Qian, Sheetz and Elson 1991.
 */
CLV_API clv_status clv_tracks_msd(const clv_tracks *tracks, int64_t index, size_t lags,
                                  clv_msd *msd);

/**
 * The diffusion coefficient that makes the displacements most likely, and with it the error of the positions:
 * displacements between successive spots of a track, g frames apart, have the variance 2 D g + 2 s and the covariance
 * -s with their neighbours, where s = position_error^2 - exposure D / 3. No range of lags has to be chosen, gaps count
 * exactly, and the errors are those of the Fisher information: the least that any method can have. y and x have one s,
 * z has its own; D is the mean over the axes. Drift has to be subtracted before.
 *
 * @param index  of a track, or CLV_ALL_TRACKS: one D for all of them.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; no such track; an option out of range); CLV_E_UNSUPPORTED (init.h);
 *         CLV_E_MEMORY. Fewer than two displacements (one, where the error is given): NaN.
 *
 * Accuracy: the estimate is unbiased to 0.5 % from some 500 displacements on.
 * Source: Berglund 2010; Michalet and Berglund 2012.
 */
CLV_API clv_status clv_tracks_diffusion(const clv_tracks *tracks, int64_t index,
                                        const clv_diffusion_options *options,
                                        clv_diffusion *result);

CLV_END_DECLS

#endif
