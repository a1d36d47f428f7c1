/* SPDX-License-Identifier: Apache-2.0 */
/* Implements Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. */
#include "base/philox.h"

clv_philox clv_philox_make(clv_philox c, const uint32_t key[2])
{
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0];
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c.word[2];
        c = (clv_philox){ { (uint32_t)(p1 >> 32) ^ c.word[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c.word[3] ^ k1, (uint32_t)p0 } };
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}
