/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers of two given parts, also for compilers for which the C library defines no CMPLX, such as Clang. */
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
