/* SPDX-License-Identifier: Apache-2.0 */
/* Unrolls loops over the rows of a tile, so that every compiler keeps a row's sums in registers: ROWS_3(what) is
 * what(0) what(1) what(2). */
#ifndef CLEAVE_RUNTIME_BLAS_ROWS_H
#define CLEAVE_RUNTIME_BLAS_ROWS_H

#define ROWS_1(what) what(0)
#define ROWS_2(what) ROWS_1(what) what(1)
#define ROWS_3(what) ROWS_2(what) what(2)
#define ROWS_4(what) ROWS_3(what) what(3)
#define ROWS_5(what) ROWS_4(what) what(4)
#define ROWS_6(what) ROWS_5(what) what(5)
#define ROWS_7(what) ROWS_6(what) what(6)
#define ROWS_8(what) ROWS_7(what) what(7)
#define ROWS_9(what) ROWS_8(what) what(8)
#define ROWS_10(what) ROWS_9(what) what(9)
#define ROWS_11(what) ROWS_10(what) what(10)
#define ROWS_12(what) ROWS_11(what) what(11)

#endif
