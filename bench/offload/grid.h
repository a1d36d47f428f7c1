/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the points at which the choice of a side is judged: operations and their sizes. */
#ifndef CLEAVE_BENCH_OFFLOAD_GRID_H
#define CLEAVE_BENCH_OFFLOAD_GRID_H

#include <cleave/array_math.h>

#include <stdbool.h>

typedef struct grid_point {
    int what; /* row of the table of operations */
    size_t size;
    clv_context *context;
    clv_array *in[4], *out[2];
    float *memory, *at[6]; /* memory of `in` and `out`, in the order in which they were made */
    size_t used, places;
} grid_point;

int grid_points(void);
/* Fills in the operation and the size of the index-th point. */
void grid_at(int index, grid_point *point);
const char *grid_name(int what);
/* Returns the largest number of floats that a point's operands take. */
size_t grid_room(void);

bool grid_set_up(grid_point *point);
clv_status grid_call(grid_point *point);
void grid_clean_up(grid_point *point);

#endif
