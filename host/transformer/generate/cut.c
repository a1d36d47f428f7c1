/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which device holds which layers. A token passes through the devices one after the other, so that a slower
 * device only helps if the model does not fit into the memory of the faster ones. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"

/* Returns the index of the fastest unused device, the first of equally fast ones; `count` if all are used. */
static size_t fastest(const clv_lm_place *places, size_t count, const bool *used)
{
    size_t best = count;
    for (size_t i = 0; i < count; ++i)
        if (!used[i] && (best == count || places[i].speed > places[best].speed)) best = i;
    return best;
}

bool clv_lm_cut(const uint64_t *layer_bytes, size_t layers, uint64_t first_bytes,
                uint64_t last_bytes, clv_lm_place *places, size_t count)
{
    bool used[64] = { false };
    size_t given = 0;
    count = CLV_MIN(count, CLV_LEN(used));
    for (size_t i = 0; i < count; ++i)
        places[i].layers = 0;
    for (size_t turn = 0; turn < count && given < layers; ++turn) {
        const size_t i = fastest(places, count, used);
        uint64_t room = places[i].room, need = given ? 0 : first_bytes;
        used[i] = true;
        places[i].first = given;
        while (given + places[i].layers < layers) {
            const size_t next = given + places[i].layers;
            const uint64_t more = layer_bytes[next] + (next + 1 == layers ? last_bytes : 0);
            if (need + more > room) break;
            need += more;
            ++places[i].layers;
        }
        given += places[i].layers;
    }
    return given == layers;
}
