/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of readers and writers share. */
#ifndef CLEAVE_IO_TEST_H
#define CLEAVE_IO_TEST_H

#include "data.h"
#include "test.h"

#include "host/io/array.h"

#include <stdio.h>

/* Each returns a text that the eighth call of the same function after this one overwrites. */
const char *io_data(const char *name); /* a file of tests/data/io */
const char *io_temp(const char *name); /* a name in the test's own directory */

/* Writes a file there and returns its path. */
const char *io_make(const char *name, const void *bytes, size_t length);
/* The whole file; *bytes is freed with free. */
void io_load(const char *path, unsigned char **bytes, size_t *length);

size_t io_files_in(const char *directory); /* hidden ones too */

/* Element i of a golden array of that type, see tests/data/io/make_goldens.py. */
double io_golden(clv_type type, size_t i);
/* Type, shape and every element are the golden ones. */
void io_expect_golden(const clv_file_array *array, clv_type type, size_t rank, const size_t *shape);

/* Fails the k-th allocation for k = 1, 2, ... until `call` succeeds: before that it must return
 * CLV_E_MEMORY and `empty` must hold. Returns how many allocations could fail. */
unsigned long io_without_memory(clv_status (*call)(void), int (*empty)(void));

/* No file may grow beyond `bytes` from now on (0: no limit), as on a full disk. */
void io_limit_files(size_t bytes);

#endif
