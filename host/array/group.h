/* SPDX-License-Identifier: Apache-2.0 */
/* The work-groups of kernels whose work-items do not work together. No result depends on them. */
#ifndef CLEAVE_HOST_ARRAY_GROUP_H
#define CLEAVE_HOST_ARRAY_GROUP_H

#include <cleave/probe.h>

enum {
    CLV_ARRAY_GROUP_MOST = 128,
    CLV_ARRAY_ROWS_MOST =
        65535 /* most groups in the second or third dimension of a launch on NVIDIA's cards */
};

/* Returns the size of the groups of `items` work-items: on GPUs a whole wave (32 or 64), or 128 if there are enough
 * items, because a core of a GPU holds a limited number of groups; 32 on other devices. */
size_t clv_array_group(const clv_probe_device *device, size_t items);

/* A launch over rows of work-items. The first dimension is along the rows. The second is the launch's second or third
 * dimension, and has at most CLV_ARRAY_ROWS_MOST groups. */
typedef struct clv_array_grid {
    size_t local[2], global[2];
    size_t each; /* consecutive rows per work-item */
} clv_array_grid;

/* Returns a grid for `rows` rows of `width` work-items. On GPUs, a group takes several rows if a row is shorter than
 * the group, so that most items of a wave have work. Work-items beyond `width` or `rows` must return at once. */
clv_array_grid clv_array_grid_of(const clv_probe_device *device, size_t width, size_t rows);

#endif
