/* SPDX-License-Identifier: Apache-2.0 */
/* Golden cases of the blocks of transformers: inputs, results and tolerances by name. */
#ifndef CLEAVE_TESTS_KERNELS_GOLDEN_H
#define CLEAVE_TESTS_KERNELS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One array of a case; `data` belongs to the goldens, until golden_close. */
typedef struct golden_array {
    const float *f32;
    const int32_t *i32; /* the one that the type says; the other is NULL */
    size_t shape[4], rank, count;
} golden_array;

/* Those of tests/data/transformer. */
void golden_open(void);
void golden_close(void);
/* The same around the tests of a group. */
int golden_setup(void **state);
int golden_teardown(void **state);

bool golden_has(const char *name, const char *role);
golden_array golden_get(const char *name, const char *role); /* fails the test when there is none */
double golden_number(const char *name, const char *parameter, double fallback);
/* |got - want| <= tolerance of the case, for every element. */
void golden_expect(const char *name, const char *role, const float *got);

#endif
