/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the features of this machine's cores that decide which form of a kernel is used. */
#ifndef CLEAVE_BASE_CPU_H
#define CLEAVE_BASE_CPU_H

#include <stdbool.h>

/* Returns whether this is an x86 processor with AVX2 but without AVX-512, which has sixteen registers of 8 floats. */
bool clv_cpu_has_avx2_alone(void);

#endif
