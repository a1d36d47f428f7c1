/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the LAPACK of this machine at the first call, so that nothing is linked to it. */
#ifndef CLEAVE_BASE_LAPACK_H
#define CLEAVE_BASE_LAPACK_H

#include <stddef.h>

/* Fortran's calling convention: all arguments by address, lengths of texts at the end. */
typedef void clv_dgeev(const char *jobvl, const char *jobvr, const int *n, double *a,
                       const int *lda, double *wr, double *wi, double *vl, const int *ldvl,
                       double *vr, const int *ldvr, double *work, const int *lwork, int *info,
                       size_t, size_t);

typedef struct clv_lapack {
    const char *library; /* "liblapack.so.3"; static */
    clv_dgeev *dgeev;
    void (*set_threads)(int); /* NULL if the library is not OpenBLAS */
    int (*get_threads)(void);
} clv_lapack;

/* Loads the library at the first call; the library may start threads of its own. Returns NULL when there is none.
 * CLV_LAPACK_WHERE says in words where the library is searched for, with the packages that contain it. */
const clv_lapack *clv_lapack_get(void);

#define CLV_LAPACK_WHERE \
    "neither liblapack.so.3 nor libopenblas.so.0 is here (Debian: libopenblas0, or liblapack3)"

#endif
