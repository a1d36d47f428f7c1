/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a token from scores: applies penalty, top-k, top-p, min-p and temperature in this order.
 *
 * Sources: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p), Keskar et al. 2019 (penalty), Salmon et al.
 * 2011 (Philox). */
#include <cleave/generate.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/philox.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tolerance for a cumulative sum of probabilities, which rounding may leave below 1 */
static const double slack = 1e-12;

typedef struct candidate {
    double score;
    int32_t id;
} candidate;

/* Returns whether `a` comes before `b` in the list: by falling score, of equal scores the lower id first. */
static bool goes_before(const candidate *a, const candidate *b)
{
    return a->score != b->score ? a->score > b->score : a->id < b->id;
}

static int by_score(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    return goes_before(a, b) ? -1 : goes_before(b, a);
}

/* Returns a random number in [0,1) that depends on the seed and the position only. */
static double draw(uint64_t seed, uint64_t position)
{
    const clv_philox counter = { { (uint32_t)position, (uint32_t)(position >> 32), 0, 0 } };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const clv_philox r = clv_philox_make(counter, key);
    return (double)(((uint64_t)r.word[0] << 32 | r.word[1]) >> 11) * 0x1p-53;
}

/* ---- the list -------------------------------------------------------------------------------------- */

/* Sinks element `at` of a heap to its place; the heap's root is the candidate that sorts last. */
static void sink(candidate *heap, size_t count, size_t at)
{
    const candidate moved = heap[at];
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && goes_before(&heap[child], &heap[child + 1])) ++child;
        if (!goes_before(&moved, &heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Moves the `most` candidates with the highest scores to the front of the list, in order. */
static void keep_highest(candidate *list, size_t count, size_t most)
{
    if (most < count) {
        for (size_t i = most / 2; i-- > 0;)
            sink(list, most, i);
        for (size_t i = most; i < count; ++i)
            if (goes_before(&list[i], &list[0])) {
                list[0] = list[i];
                sink(list, most, 0);
            }
        count = most;
    }
    qsort(list, count, sizeof *list, by_score);
}

/* Returns a score after the penalty. A penalty near 0 or near the largest float64 leaves finite scores finite. */
static double penalised(double score, double penalty)
{
    const double less = score > 0 ? score / penalty : score * penalty;
    return isfinite(score) ? fmin(fmax(less, -DBL_MAX), DBL_MAX) : less;
}

/* Applies the penalty to the recent tokens, only once to a token that occurs several times. */
static void penalise(candidate *list, size_t count, const clv_sampling *s, const int32_t *recent,
                     size_t recent_count)
{
    const size_t last = CLV_MIN(s->penalty_last, recent_count);
    recent += recent_count - last;
    if (!(s->penalty > 0) || s->penalty == 1) return;
    for (size_t i = 0; i < last; ++i) {
        bool seen = recent[i] < 0 || (size_t)recent[i] >= count;
        for (size_t k = 0; k < i && !seen; ++k)
            seen = recent[k] == recent[i];
        if (seen) continue;
        double *score = &list[recent[i]].score;
        *score = penalised(*score, s->penalty);
    }
}

/* Computes the probabilities of the remaining candidates, softmax(score / temperature). */
static void weigh(const candidate *list, size_t count, double temperature, double *p)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += p[i] = exp((list[i].score - list[0].score) / temperature);
    for (size_t i = 0; i < count; ++i)
        p[i] /= sum;
}

/* Sorts the list and moves the candidates to draw from to its front; returns their number, and writes their
 * probabilities to p. */
static size_t narrow(candidate *list, size_t count, const clv_sampling *s, double *p)
{
    size_t kept = s->top_k ? CLV_MIN(s->top_k, count) : count;
    if (s->temperature == 0) kept = 1;
    keep_highest(list, count, kept);
    while (kept > 1 && isinf(list[kept - 1].score))
        --kept;
    if (s->temperature == 0) {
        p[0] = 1;
        return 1;
    }
    if (s->top_p > 0 && s->top_p < 1) {
        double reached = 0;
        size_t i = 0;
        weigh(list, kept, 1, p);
        while (i < kept && (reached += p[i++]) < s->top_p - slack) {
        }
        kept = i;
    }
    for (size_t i = 1; s->min_p > 0 && i < kept; ++i)
        if (exp(list[i].score - list[0].score) < s->min_p) kept = i;
    weigh(list, kept, s->temperature, p);
    return kept;
}

static clv_status check(const clv_sampling *s)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return clv_fail(CLV_E_ARGUMENT, "sampling: the temperature is %g, but it must be 0 or more",
                        s->temperature);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return clv_fail(CLV_E_ARGUMENT, "sampling: top_p is %g, expected 0 to 1", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return clv_fail(CLV_E_ARGUMENT, "sampling: min_p is %g, expected 0 to 1", s->min_p);
    if (!(s->penalty >= 0) || isinf(s->penalty))
        return clv_fail(CLV_E_ARGUMENT, "sampling: the penalty is %g, but it must be 0 or more",
                        s->penalty);
    return CLV_OK;
}

/* Fills the list of candidates. Every score must be a number below infinity, and at least one must be finite. */
static clv_status make_list(const float *scores, size_t count, uint64_t position, candidate *list)
{
    bool any = false;
    for (size_t i = 0; i < count; ++i) {
        if (!(scores[i] < INFINITY))
            return clv_fail(
                CLV_E_WRONG_RESULT, "sampling: the score of id %zu for token %llu is %s", i,
                (unsigned long long)position, isnan(scores[i]) ? "not a number" : "infinite");
        any = any || isfinite(scores[i]);
        list[i] = (candidate){ (double)scores[i], (int32_t)i };
    }
    if (any) return CLV_OK;
    return clv_fail(CLV_E_WRONG_RESULT, "sampling: no score for token %llu is finite",
                    (unsigned long long)position);
}

static clv_status distribute(const float *scores, size_t count, const clv_sampling *given,
                             const int32_t *recent, size_t recent_count, uint64_t position,
                             clv_sampling *s, candidate *list, double *p, size_t *kept)
{
    CLV_TRY(clv_take_struct(s, sizeof *s, given, "clv_sample", "clv_sampling"));
    CLV_TRY(check(s));
    CLV_TRY(make_list(scores, count, position, list));
    penalise(list, count, s, recent, recent_count);
    *kept = narrow(list, count, s, p);
    return CLV_OK;
}

clv_status clv_sample_from(const float *scores, size_t count, const clv_sampling *sampling,
                           const int32_t *recent, size_t recent_count, int32_t *ids,
                           double *probabilities, size_t *kept)
{
    clv_sampling s;
    if (!scores || !count || !ids || !probabilities || !kept || (!recent && recent_count))
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_sample_from: an argument is NULL, or there is no score");
    candidate *list = clv_alloc(count, sizeof *list);
    if (!list) return clv_fail(CLV_E_MEMORY, "sampling: not enough memory for %zu scores", count);
    const clv_status status = distribute(scores, count, sampling, recent, recent_count,
                                         recent_count, &s, list, probabilities, kept);
    for (size_t i = 0; !status && i < *kept; ++i)
        ids[i] = list[i].id;
    clv_free(list);
    return status;
}

clv_status clv_sample(const float *scores, size_t count, const clv_sampling *sampling,
                      const int32_t *recent, size_t recent_count, uint64_t position, int32_t *id)
{
    clv_sampling s;
    size_t kept = 0;
    if (!scores || !count || !id || (!recent && recent_count))
        return clv_fail(CLV_E_ARGUMENT, "clv_sample: an argument is NULL, or there is no score");
    candidate *list = clv_alloc(count, sizeof *list);
    double *p = clv_alloc(count, sizeof *p), reached = 0;
    clv_status status =
        list && p ? CLV_OK
                  : clv_fail(CLV_E_MEMORY, "sampling: not enough memory for %zu scores", count);
    if (!status)
        status =
            distribute(scores, count, sampling, recent, recent_count, position, &s, list, p, &kept);
    if (!status) {
        const double at = kept > 1 ? draw(s.seed, position) : 0;
        size_t i = 0;
        while (i + 1 < kept && (reached += p[i]) <= at)
            ++i;
        *id = list[i].id;
    }
    clv_free(list), clv_free(p);
    return status;
}
