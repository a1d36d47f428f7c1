/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution with its borders added, for whoever does rows of it. */
#ifndef CLEAVE_HOST_ARRAY_CONVOLVE_H
#define CLEAVE_HOST_ARRAY_CONVOLVE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clv_filter {
    size_t height, width, kernel_height, kernel_width;
    size_t pitch;   /* at least width, rounded up to 32, and kernel_width - 1 */
    float *weights; /* the kernel turned by half a turn */
    float *padded;  /* [height + kernel_height - 1, pitch] */
    float *out;
    size_t out_stride;
} clv_filter;

/* Rows [first, first + count) in plain C, as out [count,width]; a chain of fused multiply-adds an
 * element, in the kernel's order: the devices' bits. */
void clv_filter_rows(const clv_filter *filter, size_t first, size_t count, float *out);

#endif
