/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data of the tests. Every test gets the paths of its data from test_data. */
#ifndef CLEAVE_TESTS_DATA_H
#define CLEAVE_TESTS_DATA_H

#include <stddef.h>

/* Returns the path of a file or folder of tests/data ("paco/syn50/cube.npy"). For data of third parties,
 * tests/data/third_party.txt lists the folder that holds them; if they are missing, the calling test is skipped. If a
 * file of our own is missing, the test fails. The path is borrowed until the thread's eighth call after this one. */
const char *test_data(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the bytes of the file test_data(name), followed by a zero byte; the caller frees them with clv_free. */
char *test_data_read(const char *name, size_t *length);

#endif
