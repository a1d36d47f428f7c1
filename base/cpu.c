/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

bool clv_cpu_has_avx2_alone(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}
