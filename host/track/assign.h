/* SPDX-License-Identifier: Apache-2.0 */
/* Solves the assignment problem exactly. */
#ifndef CLEAVE_HOST_TRACK_ASSIGN_H
#define CLEAVE_HOST_TRACK_ASSIGN_H

#include "runtime/job/watch.h"

/* Memory for a problem with n rows and m columns: `u` holds n + 1 elements, each of the other five arrays m + 1. */
typedef struct clv_assign_work {
    double *u, *v, *least; /* potentials of rows and columns; smallest reduced cost */
    size_t *row, *way;     /* row assigned to each column; previous column on the path */
    unsigned char *used;
} clv_assign_work;

/* Finds column[i] for every row i of an n x m matrix of finite costs (n <= m) so that the sum of the costs is smallest.
 * The rows of the matrix are `stride` elements apart. Ties are broken deterministically. While working, reports `done`
 * finished units to `watch`. Returns CLV_OK, or CLV_E_CANCELLED without a result. */
clv_status clv_assign(const double *cost, size_t n, size_t m, size_t stride,
                      const clv_assign_work *work, clv_watch *watch, size_t done, size_t *column);

#endif
