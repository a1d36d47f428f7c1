/* SPDX-License-Identifier: Apache-2.0 */
/* Makes complex numbers from a real and an imaginary part, also for compilers such as Clang for which the C library
 * defines no CMPLX. */
#ifndef CLEAVE_HOST_ARRAY_COMPLEX_H
#define CLEAVE_HOST_ARRAY_COMPLEX_H

#include <complex.h>

static inline double complex clv_complex(double real, double imaginary)
{
    const union {
        double parts[2];
        double complex whole;
    } both = { { real, imaginary } };
    return both.whole;
}

#endif
