/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the steps that are not compared with plain C. A flipped bit may make a gradient far longer than the gradients
 * before it, or change a weight by more than AdamW can. */
#include "host/transformer/train/watch.h"

#include "base/error.h"

#include <inttypes.h>
#include <math.h>

static const double odd_loss = 10, odd_length = 100;
/* The tolerance for rounding, as a fraction of the longest possible move and as a fraction of the value. */
static const double part_of_way = 0.01, part_of_value = 1e-4;

bool clv_watch_odd(clv_trainer *t, const clv_train_result *found)
{
    if (t->is_reference || !t->options.check_every || !t->looked) return false;
    if (!isfinite(found->loss) || !isfinite(found->gradient_length)) return !t->lost;
    return found->loss > odd_loss * t->most_loss ||
           found->gradient_length > odd_length * t->most_length;
}

void clv_watch_result(clv_trainer *t, const clv_train_result *found)
{
    if (!isfinite(found->loss) || !isfinite(found->gradient_length)) t->lost = true;
    t->most_loss = fmax(t->most_loss, found->loss);
    t->most_length = fmax(t->most_length, found->gradient_length);
}

/* Adds the longest possible move of step t. AdamW divides m = (1 - b1) sum b1^i g_i by the root of v = (1 - b2) sum
 * b2^i g_i^2, and corrects both because they begin at 0. By the Cauchy-Schwarz inequality,
 * |m| <= (1 - b1) / sqrt(1 - b1^2 / b2) sqrt(sum b2^i g_i^2). A step is therefore at most
 * rate (1 - b1) / sqrt((1 - b2) (1 - b1^2 / b2)) sqrt(1 - b2^t) / (1 - b1^t), which is 7.3 rate by default. The decay
 * adds rate decay |w|. */
void clv_watch_move(clv_trainer *t, double rate)
{
    const clv_trainer_options *o = &t->options;
    const double b1 = o->beta1, b2 = o->beta2, steps = (double)t->steps;
    const double begun = sqrt(1 - pow(b2, steps)) / (1 - pow(b1, steps));
    const double longest =
        b1 * b1 < b2 ? (1 - b1) / sqrt((1 - b2) * (1 - b1 * b1 / b2)) * begun : (double)INFINITY;
    t->way += rate * longest;
    t->shrinking += rate * o->decay;
}

void clv_watch_restart(clv_trainer *t)
{
    t->way = t->shrinking = 0;
}

bool clv_watch_fits(const clv_trainer *t, size_t which, size_t at, const float *values,
                    size_t count)
{
    if (!t->twin || !t->looked || t->lost || t->options.optimizer != CLV_OPTIMIZER_ADAMW)
        return true;
    const void *const blocks[] = { t->twin->net.weights, t->twin->first, t->twin->second };
    const float *old = (const float *)blocks[which] + at;
    const double clip = t->options.clip, way = t->way * (1 + part_of_way);
    const double most = clip > 0 ? which == 2 ? clip * clip : clip : (double)INFINITY;
    for (size_t i = 0; i < count; ++i) {
        const double before = fabs((double)old[i]);
        const bool fits = which ? fabs((double)values[i]) <= 1.001 * fmax(most, before)
                                : fabs((double)values[i] - (double)old[i]) <=
                                      way + t->shrinking * (before + way) + part_of_value * before;
        if (!fits) return false;
    }
    return true;
}

clv_status clv_watch_fail(const clv_trainer *t, const char *then)
{
    return clv_fail(CLV_E_DEVICE,
                    "%s: between the steps %" PRIu64 " and %" PRIu64
                    " weights or moments changed by more than AdamW can change them: a bit of the "
                    "device's memory is wrong. %s Go on from a checkpoint. Check the device with "
                    "`cleave probe --check`, or compute without it (--mode=reference)",
                    t->device, t->twin->steps + 1, t->steps + 1, then);
}
