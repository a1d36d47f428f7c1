/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the options of `cleave blobs` for the library. */
#include "host/cli/blobs/blobs.h"

clv_blob_options blobs_options(const blobs_args *a)
{
    return (clv_blob_options){
        .size = sizeof(clv_blob_options),
        .min_sigma_px = a->min_sigma,
        .max_sigma_px = a->max_sigma,
        .num_sigma = (unsigned)a->num_sigma,
        .log_scale = a->log_scale,
        .dog = a->dog,
        .sigma_ratio = a->sigma_ratio,
        .threshold_given = a->threshold_given,
        .threshold_rel_given = a->threshold_rel_given,
        .threshold_sigma_given = a->threshold_sigma_given,
        .threshold = a->threshold,
        .threshold_rel = a->threshold_rel,
        .threshold_sigma = a->threshold_sigma,
        .keep_hot_pixels = a->hot_pixels == 1,
        .taps = (clv_blob_taps)a->taps,
        .normalize = a->normalize == 1,
        .invert = a->invert,
        .subpixel = (clv_blob_subpixel)a->subpixel,
        .keep_overlapping = a->prune == 1,
        .overlap_given = true,
        .overlap = a->overlap,
        .exclude_border = (size_t)a->exclude_border,
    };
}
