/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a long product in parts, so that its progress can be reported and the caller can end it. */
#ifndef CLEAVE_RUNTIME_BLAS_MATMUL_PARTS_H
#define CLEAVE_RUNTIME_BLAS_MATMUL_PARTS_H

#include "runtime/job/watch.h"

#include <stdbool.h>

/* One part of a product: rows [row, row + rows) of one matrix, or all rows of `matrices` matrices. */
typedef struct clv_matmul_part {
    size_t matrix, matrices, row, rows;
} clv_matmul_part;

typedef struct clv_matmul_parts {
    size_t m, batch;
    size_t together;         /* the rows of a part are a multiple of this, except for the last */
    double row_flops, flops; /* of the next part: first guessed, then from the last part's time */
    double started;          /* when the current part began */
    size_t done;             /* rows done, of all matrices */
    clv_watch *watch;        /* NULL: no progress is reported, and one part is the whole product */
} clv_matmul_parts;

/* Returns the parts of a product. Those for the host, which is slower, may have fewer rows. */
clv_matmul_parts clv_matmul_parts_of(size_t m, size_t n, size_t k, size_t batch, bool on_host,
                                     clv_watch *watch);
bool clv_matmul_next_part(const clv_matmul_parts *parts, clv_matmul_part *part);
/* Notes that `part` is computed. Returns CLV_E_CANCELLED when the caller wants to end the product, but never for the
 * last part, after which it reports the end. */
clv_status clv_matmul_part_done(clv_matmul_parts *parts, const clv_matmul_part *part);

#endif
