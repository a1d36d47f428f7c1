/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of the tests are. Every test asks here, and none looks for a file in any other way. */
#ifndef CLEAVE_TESTS_DATA_H
#define CLEAVE_TESTS_DATA_H

#include <stddef.h>

/* The path of a file or folder of tests/data ("paco/syn50/cube.npy"). Data of third parties, which
 * tests/data/third_party.txt lists, are looked for in the place that is named there; where they are missing, the
 * calling test is skipped. A file of our own that is missing fails the test. The path is borrowed until the
 * thread's eighth call after this one. */
const char *test_data(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The bytes of such a file and a zero behind them; the caller frees them with clv_free. */
char *test_data_read(const char *name, size_t *length);

#endif
