/* SPDX-License-Identifier: Apache-2.0 */
/* Finds bits that flip in a device's memory between two steps. */
#include "host/transformer/train/bits.h"

#include "base/alloc.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

static bool is_watched(const clv_trainer *t)
{
    return !t->is_reference && t->options.check_every;
}

static uint32_t sum_of(const float *values, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum += bits;
    }
    return sum;
}

void clv_bits_add(size_t which, const float *values, size_t count, clv_bits *sums)
{
    *(which ? &sums->moments : &sums->weights) += sum_of(values, count);
}

/* Sums only the model's weights, which come before the head: all weights of the head are trained. */
void clv_bits_note_rest(clv_trainer *t, const float *values)
{
    t->rest_known = true;
    t->rest = sum_of(values, t->head);
    for (size_t i = 0; i < t->part_count; ++i) {
        const clv_trainable *part = &t->parts[i];
        if (part->at < t->head)
            t->rest -= sum_of(values + part->at, CLV_MIN(part->count, t->head - part->at));
    }
}

clv_status clv_bits_begin(clv_trainer *t)
{
    const float *values;
    if (!is_watched(t)) return CLV_OK;
    if (!t->rest_known) {
        (void)clv_model_parameters(t->model, &values);
        clv_bits_note_rest(t, values + t->net.base);
    }
    return t->ops->clear(t->ops, (clv_mem){ t->bits.memory, 0 }, CLV_BITS_ROOM);
}

bool clv_bits_fit(const clv_trainer *t, const clv_bits *sums)
{
    return !t->summed || (sums->weights == t->kept.weights && sums->moments == t->kept.moments);
}

clv_status clv_bits_fail(const clv_trainer *t, uint64_t step, const char *then)
{
    return clv_fail(CLV_E_DEVICE,
                    "%s: weights or moments changed after step %" PRIu64
                    ", although only a step may change them: a bit of the device's memory is "
                    "wrong. %s Go on from a checkpoint. Check the device with `cleave probe "
                    "--check`, or compute without it (--mode=reference)",
                    t->device, step, then);
}

clv_status clv_bits_compare(clv_trainer *t, bool *same)
{
    uint32_t slots[CLV_BITS_ROOM], sums[CLV_BIT_SUMS] = { 0 };
    *same = true;
    if (!is_watched(t)) return CLV_OK;
    CLV_TRY(t->ops->get(t->ops, (clv_mem){ t->bits.memory, 0 }, slots, CLV_BITS_ROOM));
    for (size_t i = 0; i < CLV_BITS_ROOM; ++i)
        sums[i % CLV_BIT_SUMS] += slots[i];
    const clv_bits read = { sums[CLV_BIT_WEIGHTS_READ] + t->rest, sums[CLV_BIT_MOMENTS_READ] };
    *same = clv_bits_fit(t, &read);
    if (*same) {
        t->kept =
            (clv_bits){ sums[CLV_BIT_WEIGHTS_WRITTEN] + t->rest, sums[CLV_BIT_MOMENTS_WRITTEN] };
        t->summed = true;
    }
    return CLV_OK;
}
