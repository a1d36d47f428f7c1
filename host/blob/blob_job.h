/* SPDX-License-Identifier: Apache-2.0 */
/* Declares blob detection as a job, in which unit u is frame base + u of the push. */
#ifndef CLEAVE_HOST_BLOB_BLOB_JOB_H
#define CLEAVE_HOST_BLOB_BLOB_JOB_H

#include "host/blob/blob_noise.h"
#include "host/blob/blob_plan.h"

/* Result buffers of a chunk. */
enum {
    CLV_BLOB_COUNTS, /* uint32 [frames][2]: maxima found, bits of the largest response */
    CLV_BLOB_PEAKS,  /* clv_blob_peak [frames][capacity] */
    CLV_BLOB_BINS,   /* uint32 [frames][scales][CLV_BLOB_NOISE_BINS]; only if by_noise */
    CLV_BLOB_RESULTS
};

clv_cost clv_blob_cost(size_t first, size_t count, void *plan);
clv_status clv_blob_setup(clv_worker *worker, void *plan);
clv_status clv_blob_enqueue(clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_blob_commit(const clv_slot *slot, size_t first, size_t count, void *plan);
clv_status clv_blob_reference(clv_slot *slot, size_t first, size_t count, void *plan);

/* Computes the responses [scales][height][width] of one frame in float64. `frame` [height][width] holds the pixels to
 * filter, `scratch` has room for 4 planes. The reference and tests use this function. */
void clv_blob_responses(const clv_blob_plan *plan, const double *frame, double pedestal,
                        double *scratch, double *responses);

/* ---- blob_finish.c ---- */

/* A spot and the errors of its position. */
typedef struct clv_blob_found {
    clv_spot spot;
    clv_spot_error error;
} clv_blob_found;

/* The memory with which one thread finishes one frame after the other. It grows to the largest number of spots in a
 * frame. */
typedef struct clv_blob_finisher {
    clv_blob_found *spots; /* of the last frame */
    size_t room;
    double side; /* side of the cells in which neighbours are searched */
    size_t rows, columns;
    int32_t *head; /* the last spot of each cell; -1: empty */
    int32_t *next; /* for each spot, the previous spot in its cell */
    size_t next_room;
    uint8_t *mask; /* marks bright spots, for clv_blob_find_skew */
    /* results of the last frame */
    size_t dropped_bad, hot;
    clv_blob_skew skew;   /* variance 0: the thresholds do not depend on the noise */
    clv_blob_peak *peaks; /* the peaks after close pairs were split */
    size_t peaks_room;
} clv_blob_finisher;

clv_status clv_blob_finisher_create(const clv_blob_plan *plan, clv_blob_finisher *finisher);
void clv_blob_finisher_clear(clv_blob_finisher *finisher);
/* Turns a frame's peaks into spots: filters, prunes, refines, measures and sorts them. Several threads may call it for
 * different frames at once, each with a finisher of its own. */
clv_status clv_blob_finish(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *finisher,
                           size_t *count);

/* ---- blob_prune.c ---- */

/* Returns the area that two discs share, divided by the area of the smaller disc. */
double clv_blob_overlap(double distance, double r1, double r2);
/* Drops peaks that overlap others by the rules of blob_prune.c. The kept peaks come first. */
clv_status clv_blob_prune(const clv_blob_plan *plan, clv_blob_finisher *finisher,
                          clv_blob_peak *peaks, size_t *count);

/* ---- blob_judge.c ---- */

/* Keeps peaks that are above the threshold, not next to bad pixels, and not single hot pixels. The kept peaks come
 * first; returns their number. */
size_t clv_blob_judge(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *finisher,
                      clv_blob_peak *peaks, size_t count);
/* Returns whether a pixel within `radius` of the peak is not finite. */
bool clv_blob_bad_within(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *peak,
                         double radius);

/* Returns a response of scale k divided by its threshold, at a place where the pixels have noise `pixel`. */
double clv_blob_times_threshold(const clv_blob_plan *plan, size_t frame, size_t k, double response,
                                double pixel, const clv_blob_skew *skew);
/* Moves the peak to the nearest maximum of scale k, at most steps - 1 pixels away, and stores the responses around that
 * maximum. */
void clv_blob_climb(const clv_blob_plan *plan, size_t frame, size_t k, int steps,
                    clv_blob_peak *peak);

/* ---- blob_split.c ---- */

/* Splits peaks that are two close spots. Afterwards the finisher owns *peaks. Call it only if the thresholds come from
 * the noise. */
clv_status clv_blob_split(const clv_blob_plan *plan, size_t frame, clv_blob_finisher *finisher,
                          clv_blob_peak **peaks, size_t *count);

/* ---- blob_measure.c ---- */

/* Finds the sub-pixel position and the sigma by quadratics through the responses. */
void clv_blob_refine(const clv_blob_plan *plan, const clv_blob_peak *peak, clv_spot *spot);
/* Measures the background, mass, S/N and flags of a spot. */
void clv_blob_measure(const clv_blob_plan *plan, size_t frame, const clv_blob_peak *peak,
                      clv_spot *spot);
/* ---- blob_fit.c ---- */
/* Fits all spots of a frame; `guess` is sorted by y. Spots whose fit fails keep the guess and get a flag. `first` is
 * scratch memory for as many spots. */
void clv_blob_fit(const clv_blob_plan *plan, size_t frame, const clv_blob_found *guess,
                  clv_blob_found *first, clv_blob_found *spots, size_t count);

#endif
