/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the arithmetic of transforms: how an array is divided into calls of the caller's function. */
#ifndef CLEAVE_HOST_ARRAY_FOURIER_H
#define CLEAVE_HOST_ARRAY_FOURIER_H

#include "base/team.h"

#include <cleave/array_fourier.h>

typedef struct clv_c64 {
    float re, im;
} clv_c64;

struct clv_fourier {
    clv_fourier_options o;
    size_t bytes, result_bytes; /* of all elements */
    /* BY_STEPS and BY_PRIME: column j of the first step's result is multiplied at place k by w^(j k), where w is the
     * root of unity of the elements that take steps: low[j][k % 32] times high[j][k / 32]. A factor a + b i of `low`
     * stands as a, a, -b, b. */
    float *low;
    clv_c64 *high;
};

enum { FOURIER_LOW = 32 };

static inline bool clv_fourier_has_steps(const clv_fourier *t)
{
    return t->o.form == CLV_FOURIER_BY_STEPS || t->o.form == CLV_FOURIER_BY_PRIME;
}

/* Makes the tables of powers; *low and *high are freed with the transform. */
bool clv_fourier_make_powers(clv_fourier *t);
/* Returns the bytes of memory that clv_fourier_compute needs beside input and output, aligned to
 * CLV_FOURIER_ALIGN. */
size_t clv_fourier_room(const clv_fourier *t);
/* Transforms `in` to `out`; the team's threads help the caller. Of a transform BY_PRIME it computes only one of the two
 * transforms of its convolution, of length[0] * length[1] elements in two steps. */
void clv_fourier_compute(const clv_fourier *t, clv_team *team, void *in, void *out, void *room);
/* The same two for a transform BY_PRIME as a whole. */
size_t clv_fourier_prime_room(const clv_fourier *t);
void clv_fourier_prime(const clv_fourier *t, clv_team *team, const void *in, void *out, void *room);

#endif
