/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a convolution to the code that computes its rows: the borders were added to the data. */
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

/* Computes rows [first, first + count) on the host, as out [count,width]. Each element is one chain of fused
 * multiply-adds in the kernel's order, which gives the devices' bits. */
void clv_filter_rows(const clv_filter *filter, size_t first, size_t count, float *out);

#endif
