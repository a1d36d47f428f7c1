/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens drawn from scores, against distributions in double precision; layers cut between devices. */
#include "data.h"
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "host/transformer/generate/language.h"

#include <cleave/init.h>

#include <math.h>
#include <string.h>

enum { MOST = 64 };

static float scores[MOST];
static size_t count;
static clv_json *golden;

static void read_golden(void)
{
    char *text;
    size_t length;
    EXPECT_OK(clv_file_read(test_data("generate/sampling.json"), 1 << 24, &text, &length));
    EXPECT_OK(clv_json_parse("sampling.json", text, length, &golden));
    clv_free(text);
    const clv_json *all = clv_json_get(golden, "logits");
    count = clv_json_count(all);
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; ++i) /* null: minus infinity */
        scores[i] = (float)clv_json_number(clv_json_at(all, i), -(double)INFINITY);
}

static clv_sampling options_of(const clv_json *o)
{
    clv_sampling s = CLV_INIT(clv_sampling);
    s.temperature = clv_json_number(clv_json_get(o, "temperature"), 1);
    s.top_k = (size_t)clv_json_number(clv_json_get(o, "top_k"), 0);
    s.top_p = clv_json_number(clv_json_get(o, "top_p"), 0);
    s.min_p = clv_json_number(clv_json_get(o, "min_p"), 0);
    s.penalty = clv_json_number(clv_json_get(o, "penalty"), 1);
    s.penalty_last = 64;
    return s;
}

static void distributions_are_the_reference_s(void **state)
{
    (void)state;
    read_golden();
    const clv_json *cases = clv_json_get(golden, "cases");
    assert_int_equal(clv_json_count(cases), 17);
    for (size_t i = 0; i < clv_json_count(cases); ++i) {
        const clv_json *c = clv_json_at(cases, i), *want = clv_json_get(c, "ids");
        const clv_json *recent = clv_json_get(clv_json_get(c, "options"), "recent");
        clv_sampling s = options_of(clv_json_get(c, "options"));
        int32_t ids[MOST], past[MOST], drawn;
        double p[MOST];
        size_t kept;
        for (size_t k = 0; k < clv_json_count(recent); ++k)
            past[k] = (int32_t)clv_json_number(clv_json_at(recent, k), 0);
        EXPECT_OK(clv_sample_from(scores, count, &s, past, clv_json_count(recent), ids, p, &kept));
        assert_int_equal(kept, clv_json_count(want));
        for (size_t k = 0; k < kept; ++k) {
            assert_int_equal(ids[k], (int)clv_json_number(clv_json_at(want, k), -1));
            const double probability = clv_json_number(clv_json_at(clv_json_get(c, "p"), k), -1);
            if (!(fabs(p[k] - probability) <= 1e-9))
                fail_msg("case %zu, place %zu: %.12f, expected %.12f", i, k, p[k], probability);
        }
        for (uint64_t position = 0; position < 50; ++position) { /* what is drawn is among them */
            size_t at = 0;
            EXPECT_OK(
                clv_sample(scores, count, &s, past, clv_json_count(recent), position, &drawn));
            while (at < kept && ids[at] != drawn)
                ++at;
            assert_true(at < kept);
        }
    }
    clv_json_free(golden);
}

static void refuses_scores_and_options_that_are_none(void **state)
{
    (void)state;
    float bad[3] = { 1, NAN, 2 }, none[2] = { -INFINITY, -INFINITY };
    clv_sampling s = CLV_SAMPLING_INIT;
    int32_t id;
    EXPECT_FAIL(CLV_E_WRONG_RESULT, "7", clv_sample(bad, 3, &s, NULL, 0, 7, &id));
    EXPECT_FAIL(CLV_E_WRONG_RESULT, "7", clv_sample(none, 2, &s, NULL, 0, 7, &id));
    bad[1] = INFINITY;
    EXPECT_FAIL(CLV_E_WRONG_RESULT, "the score of id 1 for token 7 is infinite",
                clv_sample(bad, 3, &s, NULL, 0, 7, &id));
    bad[1] = 0;
    s.temperature = -1;
    EXPECT_FAIL(CLV_E_ARGUMENT, "temperature", clv_sample(bad, 3, &s, NULL, 0, 0, &id));
    s.temperature = 1, s.top_p = 1.5;
    EXPECT_FAIL(CLV_E_ARGUMENT, "top_p", clv_sample(bad, 3, &s, NULL, 0, 0, &id));
}

/* Penalties by which a finite score would become infinite. */
static void any_penalty_leaves_probabilities(void **state)
{
    (void)state;
    static const double penalties[] = { 5e-324, 1e-300, 1e300, 1.7e308 };
    static const float some[2][3] = { { 1e9f, 5e8f, -1 }, { -1e9f, -5e8f, -7e8f } };
    static const int32_t recent[3] = { 0, 1, 2 };
    for (size_t i = 0; i < CLV_LEN(penalties); ++i)
        for (size_t k = 0; k < 2; ++k) {
            clv_sampling s = CLV_SAMPLING_INIT;
            int32_t ids[3];
            double p[3], sum = 0;
            size_t kept;
            s.temperature = 1, s.penalty = penalties[i], s.penalty_last = 3;
            EXPECT_OK(clv_sample_from(some[k], 3, &s, recent, 3, ids, p, &kept));
            for (size_t j = 0; j < kept; ++j)
                sum += p[j];
            if (!(fabs(sum - 1) < 1e-12))
                fail_msg("penalty %g: the probabilities add up to %g", penalties[i], sum);
        }
}

static void the_fastest_device_has_all_that_fits(void **state)
{
    (void)state;
    const uint64_t layers[] = { 10, 10, 10, 10 };
    clv_lm_place p[] = { { .room = 100, .speed = 1 }, { .room = 65, .speed = 5 } };
    assert_true(clv_lm_cut(layers, 4, 5, 5, p, 2));
    assert_true(p[0].layers == 0 && p[1].layers == 4 && p[1].first == 0);
    p[1].room = 26; /* the word table and two layers */
    assert_true(clv_lm_cut(layers, 4, 5, 5, p, 2));
    assert_true(p[1].first == 0 && p[1].layers == 2 && p[0].first == 2 && p[0].layers == 2);
    p[0].room = 24; /* the scores do not fit */
    assert_false(clv_lm_cut(layers, 4, 5, 5, p, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_are_the_reference_s),
        cmocka_unit_test(refuses_scores_and_options_that_are_none),
        cmocka_unit_test(any_penalty_leaves_probabilities),
        cmocka_unit_test(the_fastest_device_has_all_that_fits),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
