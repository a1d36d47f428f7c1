/* SPDX-License-Identifier: Apache-2.0 */
/* Points made of Philox, on the host. */
#include "host/array/philox.h"

#include <stdbool.h>

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
