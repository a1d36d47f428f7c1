/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. */
#include "host/array/philox.h"

#include <stdbool.h>

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

static bool is_inside(uint32_t x, uint32_t y)
{
    const uint64_t a = x >> 8, b = y >> 8;
    return a * a + b * b <= (uint64_t)1 << 48;
}

uint64_t clv_philox_count(uint64_t first, uint64_t count, const uint32_t key[2])
{
    uint64_t inside = 0;
    for (uint64_t at = first; at < first + count;) {
        const uint64_t i = at / 2;
        const clv_philox r =
            clv_philox_make((clv_philox){ { (uint32_t)i, (uint32_t)(i >> 32), 0, 0 } }, key);
        if (at % 2 == 0) {
            inside += is_inside(r.word[0], r.word[1]);
            ++at;
        }
        if (at % 2 && at < first + count) {
            inside += is_inside(r.word[2], r.word[3]);
            ++at;
        }
    }
    return inside;
}
