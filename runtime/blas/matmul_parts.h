/* SPDX-License-Identifier: Apache-2.0 */
/* A long product in parts, so that who waits can be told, and can end it. */
#ifndef CLEAVE_RUNTIME_BLAS_MATMUL_PARTS_H
#define CLEAVE_RUNTIME_BLAS_MATMUL_PARTS_H

#include "runtime/job/watch.h"

#include <stdbool.h>

/* Rows [row, row + rows) of one matrix, or all rows of some matrices. */
typedef struct clv_matmul_part {
    size_t matrix, matrices, row, rows;
} clv_matmul_part;

typedef struct clv_matmul_parts {
    size_t m, batch;
    double row_flops, flops; /* of the next part: a guess, then by what the last one took */
    double started;          /* when the last one began */
    size_t done;             /* rows of all matrices */
    clv_watch *watch;        /* NULL: nobody looks, and all is one part */
} clv_matmul_parts;

clv_matmul_parts clv_matmul_parts_of(size_t m, size_t n, size_t k, size_t batch, clv_watch *watch);
bool clv_matmul_next_part(const clv_matmul_parts *parts, clv_matmul_part *part);
/* `part` has been computed. CLV_OK; CLV_E_CANCELLED, but for the last part: its end is told. */
clv_status clv_matmul_part_done(clv_matmul_parts *parts, const clv_matmul_part *part);

#endif
