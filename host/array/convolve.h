/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a convolution for the functions that compute its rows, after the borders have been added to the image. */
#ifndef CLEAVE_HOST_ARRAY_CONVOLVE_H
#define CLEAVE_HOST_ARRAY_CONVOLVE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clv_filter {
    size_t height, width, kernel_height, kernel_width;
    size_t pitch;   /* at least width, rounded up to 32, and kernel_width - 1 */
    float *weights; /* the kernel rotated by 180 degrees */
    float *padded;  /* [height + kernel_height - 1, pitch] */
    float *out;
    size_t out_stride;
} clv_filter;

/* Computes rows [first, first + count) on the host into out [count,width]. Each element is one chain of fused
 * multiply-adds in the kernel's order, so the host and the devices return the same bits. */
void clv_filter_rows(const clv_filter *filter, size_t first, size_t count, float *out);

#endif
