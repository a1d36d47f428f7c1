/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a synthetic movie: spots that wander over a noisy background, with their true positions. */
#ifndef CLEAVE_HOST_SYNTHETIC_MOVIE_H
#define CLEAVE_HOST_SYNTHETIC_MOVIE_H

#include <cleave/blob.h>

/* A movie and its true positions. Free it with synthetic_movie_clear. */
typedef struct synthetic_movie {
    clv_blob_frames shape; /* u16 */
    uint16_t *pixels;
    size_t particles;
    float *y, *x; /* [frames][particles] */
} synthetic_movie;

enum { SYNTHETIC_SIGMA_TENTHS = 15 }; /* sigma of the spots: 1.5 pixels */

clv_status synthetic_movie_create(size_t frames, size_t height, size_t width, size_t particles,
                                  uint64_t seed, synthetic_movie *movie);
void synthetic_movie_clear(synthetic_movie *movie);

/* Agreement of spots with the true positions: pairs within `near_px`, with each spot used once. */
typedef struct synthetic_score {
    size_t found, missed, extra;
    double rms_px; /* root mean square of the distances of the pairs */
} synthetic_score;
synthetic_score synthetic_movie_judge(const synthetic_movie *movie, const clv_spot *spots,
                                      size_t count, double near_px);

#endif
