/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how particles move: drift, mean squared displacements and diffusion coefficients of tracks. */
#ifndef CLEAVE_MOTION_H
#define CLEAVE_MOTION_H

#include <cleave/track.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** A set of tracks, ordered by identifier; each has its spots in the order of frames. */
typedef struct clv_tracks clv_tracks;

/** One track. Lengths are in the unit of the positions. Frozen. */
typedef struct clv_track {
    int64_t particle;    /**< identifier of the track, as you gave it */
    int64_t first, last; /**< first and last frame of the track */
    size_t spots;
    double extent;       /**< diagonal of the box around its spots */
    double displacement; /**< distance of the last spot from the first */
} clv_track;

/** Which tracks to keep; zero fields keep all. Tracks exactly at a bound are kept. */
typedef struct clv_track_filter {
    size_t size;                               /**< sizeof(clv_track_filter) */
    size_t min_spots, max_spots;               /**< 0: no bound */
    double min_extent, max_extent;             /**< 0: no bound */
    double min_displacement, max_displacement; /**< 0: no bound */
} clv_track_filter;

/** Mean squared displacement at one lag, in the square of the positions' unit. NaN if there are no pairs. Frozen. */
typedef struct clv_msd {
    int64_t lag;   /**< frames */
    size_t pairs;  /**< pairs of spots that are `lag` frames apart */
    size_t tracks; /**< tracks that have such pairs */
    double msd;    /**< sum of `square` over the axes */
    double error;  /**< standard error of msd */
    /** How many independent squared displacements would be equally precise (Qian et al. 1991, B4). */
    double independent;
    double mean[3];   /**< mean displacement along z, y, x */
    double square[3]; /**< mean squared displacement along z, y, x */
} clv_msd;

/** Options of clv_tracks_diffusion; all fields but `size` may be zero. */
typedef struct clv_diffusion_options {
    size_t size;               /**< sizeof(clv_diffusion_options) */
    bool position_error_given; /**< position_error is known; else it is estimated together with D */
    /** Standard deviation of a position along y or x, in the positions' unit; the deviation along z is always
     *  estimated. */
    double position_error;
    double exposure; /**< exposure time / time between frames, 0 to 1 */
    /** The share of the diffusive motion that you removed by subtracting a drift: see clv_tracks_drift. */
    double drift_share;
} clv_diffusion_options;

/** A diffusion coefficient D, in the square of the positions' unit per frame. NaN: too few displacements. Frozen. */
typedef struct clv_diffusion {
    double d, d_error;        /**< mean D over the axes, and its standard error */
    double lateral, axial;    /**< D along y and x; D along z (NaN for flat tracks) */
    double position_variance; /**< variance of a position along y or x; may be negative by chance */
    double position_variance_z; /**< variance of a position along z; NaN if flat */
    double offset;              /**< msd(lag) = 2 axes D lag + offset, in the limit of many spots */
    size_t displacements, tracks; /**< how many displacements and tracks were used */
} clv_diffusion;

/**
 * Makes a set of tracks from a table of spots, which it copies.
 *
 * @param points    [count] in any order. A track has at most one spot per frame; frames may be missing.
 * @param z         [count]; NULL: the tracks are flat. Tracks also count as flat if z is the same everywhere.
 * @param particle  [count]: the track of each point; a point with a negative number belongs to no track.
 * @param tracks    out; free with clv_tracks_free.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; a position that is not finite, or beyond 1e150; a track that has two spots in
 *         a frame; frames that are 2^62 or more apart); CLV_E_MEMORY.
 */
CLV_API clv_status clv_tracks_create(const clv_point *points, const double *z,
                                     const int64_t *particle, size_t count, clv_tracks **tracks);
CLV_API void clv_tracks_free(clv_tracks *tracks); /**< accepts NULL */

CLV_API size_t clv_tracks_count(const clv_tracks *tracks);
CLV_API size_t clv_tracks_axes(const clv_tracks *tracks); /**< 3 with z, 2 for flat tracks */
CLV_API clv_track clv_tracks_at(const clv_tracks *tracks,
                                size_t index); /**< index < clv_tracks_count */
/** Gets the first and the last frame of all tracks; 0 and -1 if there are no tracks. */
CLV_API void clv_tracks_frames(const clv_tracks *tracks, int64_t *first, int64_t *last);

/**
 * Drops the tracks that the filter does not keep.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, a bound that is negative or NaN).
 */
CLV_API clv_status clv_tracks_filter(clv_tracks *tracks, const clv_track_filter *filter);

/** Copies out all spots, ordered by particle and frame, and returns how many there are. Each output must have room for
 *  all of them and may be NULL. */
CLV_API size_t clv_tracks_spots(const clv_tracks *tracks, clv_point *points, double *z,
                                int64_t *particle);

/**
 * Computes the common motion of all tracks: the mean displacement from each frame to the next, over all tracks that
 * have a spot in both frames, summed from the first frame on. If no track continues into a frame, its drift is that of
 * the frame before it.
 *
 * @param smooth  number of frames (each frame and those before it) over which mean displacements are averaged; 0 or 1:
 *                no averaging.
 * @param drift   out, [last - first + 1][3]: z, y, x, since the first frame.
 * @param share   out, may be NULL: the share of the diffusive motion that you remove by subtracting this drift, because
 *                the mean of n tracks contains 1/n of the motion of each of them.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL); CLV_E_MEMORY.
 *
 * Source: the same as trackpy's compute_drift.
 */
CLV_API clv_status clv_tracks_drift(const clv_tracks *tracks, size_t smooth, double *drift,
                                    double *share);

/** Subtracts a drift from all positions. `drift` has the shape that clv_tracks_drift writes. Returns CLV_E_ARGUMENT if
 *  a drift is not finite. */
CLV_API clv_status clv_tracks_subtract(clv_tracks *tracks, const double *drift);

enum { CLV_ALL_TRACKS = -1 };

/**
 * Computes mean squared displacements: msd(lag) is the mean of |r(t + lag) - r(t)|^2 over all pairs of spots that are
 * `lag` frames apart, including pairs that overlap in time.
 *
 * @param index  index of a track, or CLV_ALL_TRACKS: the mean over tracks, each weighted by its `independent` (as in
 *               trackpy's emsd).
 * @param lags   the largest lag; all lags from 1 to `lags` are computed.
 * @param msd    out, [lags].
 * @return CLV_OK; CLV_E_ARGUMENT (NULL, no such track); CLV_E_MEMORY.
 *
 * The error of one track is msd sqrt(2 / (axes independent)), which holds for free diffusion. The error of at least ten
 * tracks comes from the scatter between them, which holds for any motion. Lags share spots, so their errors are
 * correlated.
 * Source: Qian, Sheetz and Elson 1991.
 */
CLV_API clv_status clv_tracks_msd(const clv_tracks *tracks, int64_t index, size_t lags,
                                  clv_msd *msd);

/**
 * Estimates the diffusion coefficient, and with it the error of the positions, by maximum likelihood. Displacements
 * between successive spots of a track, g frames apart, have the variance 2 D g + 2 s and the covariance -s with their
 * neighbours, where s = position_error^2 - exposure D / 3. You need not choose a range of lags, gaps are treated
 * exactly, and the errors are those of the Fisher information: the least that any method can have. y and x share one s,
 * z has its own; D is the mean over the axes. Subtract any drift before the call.
 *
 * @param index  index of a track, or CLV_ALL_TRACKS: one D for all of them.
 * @return CLV_OK; CLV_E_ARGUMENT (NULL; no such track; an option out of range); CLV_E_UNSUPPORTED (see init.h);
 *         CLV_E_MEMORY. With fewer than two displacements (one, if position_error is given) the result is NaN.
 *
 * Accuracy: from about 500 displacements on, the bias of the estimate is below 0.5 %.
 * Source: Berglund 2010; Michalet and Berglund 2012.
 */
CLV_API clv_status clv_tracks_diffusion(const clv_tracks *tracks, int64_t index,
                                        const clv_diffusion_options *options,
                                        clv_diffusion *result);

CLV_END_DECLS

#endif
