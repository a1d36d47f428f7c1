/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine's cores can do, where the form of a kernel depends on it. */
#ifndef CLEAVE_BASE_CPU_H
#define CLEAVE_BASE_CPU_H

#include <stdbool.h>

/* x86 with AVX2 but without AVX-512: sixteen registers of 8 floats. */
bool clv_cpu_has_avx2_alone(void);

#endif
