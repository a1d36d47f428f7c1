/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the plan of a detection, which is made before the first frame (scales, filter coefficients, thresholds), and
 * the data of one push of frames. */
#ifndef CLEAVE_HOST_BLOB_BLOB_PLAN_H
#define CLEAVE_HOST_BLOB_BLOB_PLAN_H

#include "cl/blob/shared.clh"
#include "host/blob/blob_sizes.h"
#include "host/blob/blob_tail.h"
#include "host/blob/blob_waves.h"

#include <cleave/blob.h>

enum {
    CLV_BLOB_MAX_LEVELS = CLV_BLOB_MAX_SCALES + 1,
    /* memory allocated from the start: spots per frame, frames per push */
    CLV_BLOB_USUAL_SPOTS = 256,
    CLV_BLOB_USUAL_FRAMES = 256,
    CLV_BLOB_RING_PIXELS = 48, /* pixels around a peak that are searched for an edge */
};

/* A maximum as the kernels and the reference store it; cl/blob/blob.clh describes the layout. */
typedef struct clv_blob_peak {
    uint32_t y, x, k, state; /* state: the kernels write 0, then the host uses it */
    float around[9];         /* responses of the peak's scale, rows y-1 to y+1 */
    float below, above; /* responses of the neighbouring scales; -inf if there is no such scale */
    float own;          /* the kernels write 0; the host starts with around[4]: see blob_judge.c */
} clv_blob_peak;

typedef struct clv_blob_plan {
    clv_blob_options options; /* with defaults filled in */
    clv_blob_frames shape;    /* with strides filled in; `frames`: most frames per push */
    size_t pixel_bytes;
    double largest; /* largest value of the pixel type; inf for floats */

    size_t scales;                        /* number of response scales */
    size_t levels;                        /* number of Gaussians: `scales`, for the DoG one more */
    double sigma[CLV_BLOB_MAX_LEVELS];    /* sigma of each level */
    uint32_t radius[CLV_BLOB_MAX_LEVELS]; /* radius of each level's taps */
    uint32_t first_tap[CLV_BLOB_MAX_LEVELS];
    size_t max_radius, taps;
    double *tap; /* [taps][2], half kernels: Gaussian, and -sigma^2 times its second derivative */
    float *tap_f32;                  /* the same values as float32 */
    float leak[CLV_BLOB_MAX_LEVELS]; /* response of each level to a constant 1 */
    clv_blob_waves waves;            /* tables for cosine transforms at large sigmas */

    float gain;          /* factor of the pixels: 1, or -1 for dark spots */
    bool by_noise;       /* the threshold is threshold_sigma times the noise */
    float floor;         /* responses up to this value never count; 0 with by_noise */
    float relative;      /* threshold as a fraction of the frame's largest response; 0: not used */
    size_t noise_step;   /* distance between the pixels sampled for the noise */
    unsigned cell_shift; /* noise is estimated in cells of 2^shift pixels per side */
    size_t cells_down, cells_across, cells;
    /* kernels list maxima above factor * map, which is less than a spot's threshold */
    float factor[CLV_BLOB_MAX_SCALES];
    /* standard deviation of the response to independent pixels of standard deviation 1 */
    double norm[CLV_BLOB_MAX_SCALES];
    double cubes[CLV_BLOB_MAX_SCALES]; /* sum of the third powers of the kernel's weights */
    /* offsets (y, x) of the pixels that are searched for an edge, for each scale: see blob_edge.c */
    int32_t ring[CLV_BLOB_MAX_SCALES][CLV_BLOB_RING_PIXELS][2];
    clv_blob_tail tail;   /* thresholds for skewed noise */
    clv_blob_sizes sizes; /* table of spot widths by the responses of neighbouring scales */

    /* ---- data of one push ---- */
    const void *pixels;
    size_t frames;
    size_t base;        /* frame of the push that is unit 0 of the job */
    size_t capacity;    /* peaks that a frame's list can hold */
    float *pedestal;    /* [frames] subtracted before filtering */
    float *map;         /* [frames][cells] noise of the pixels; all 1 without by_noise */
    bool *noiseless;    /* [frames] true for frames of floats without noise */
    size_t *bad_pixels; /* [frames] */
    uint32_t *seed;     /* [frames][2] 0, and the bits of the largest response found so far */
    /* results */
    clv_blob_peak **peaks; /* [frames] unordered; peaks that did not fit a list are missing */
    size_t *room;          /* [frames] capacity of `peaks` */
    uint32_t *found;       /* [frames] */
    float *max_response;   /* [frames] */
    /* [frames][scales], with by_noise: standard deviation of response / (factor * map) */
    float *spread;
} clv_blob_plan;

/* Checks the input and computes the tables. Free the plan with clv_blob_plan_free. */
clv_status clv_blob_plan_create(const clv_blob_frames *shape, const clv_blob_options *options,
                                clv_blob_plan **plan);
void clv_blob_plan_free(clv_blob_plan *plan); /* accepts NULL */

/* Returns the index of the mirrored pixel: d c b a | a b c d | d c b a, folded as often as necessary. */
static inline size_t clv_blob_mirror(int64_t at, size_t size)
{
    const int64_t period = 2 * (int64_t)size;
    at %= period;
    if (at < 0) at += period;
    return (size_t)(at < (int64_t)size ? at : period - 1 - at);
}

/* Returns a pixel's value; NaN and inf stay as they are. */
static inline double clv_blob_pixel_at(const clv_blob_plan *plan, size_t frame, size_t y, size_t x)
{
    const size_t at = frame * plan->shape.frame_stride + y * plan->shape.row_stride + x;
    switch (plan->shape.type) {
    case CLV_BLOB_U8:
        return ((const uint8_t *)plan->pixels)[at];
    case CLV_BLOB_U16:
        return ((const uint16_t *)plan->pixels)[at];
    case CLV_BLOB_I16:
        return ((const int16_t *)plan->pixels)[at];
    default:
        return (double)((const float *)plan->pixels)[at];
    }
}

/* Reads the pixels [x, x + count) of a row; NaN and inf stay as they are. */
void clv_blob_pixel_row(const clv_blob_plan *plan, size_t frame, size_t y, size_t x, size_t count,
                        float *out);

/* Returns the median of a frame (of a sample if it is large) and the number of its bad pixels. */
float clv_blob_median(const clv_blob_plan *plan, size_t frame, size_t *bad);

#endif
