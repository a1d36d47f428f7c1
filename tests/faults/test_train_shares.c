/* SPDX-License-Identifier: Apache-2.0 */
/* Tests batches that devices share: the weights have the same bits whether one device computes all blocks, two share
 * them, or one of the two is lost meanwhile. */
#include "job_test.h"

#include "base/alloc.h"
#include "host/transformer/train/share.h"

#include <cleave/log.h>

#include <stdio.h>
#include <string.h>

enum { TEXTS = 6, CLASSES = 3, STEPS = 3, MOST = 64 * 1024 };
static const size_t offsets[TEXTS + 1] = { 0, 3, 9, 10, 14, 20, JOB_TOKENS };
static const int32_t labels[TEXTS] = { 0, 2, 1, 1, -100, 0 };

typedef struct learnt {
    float weights[MOST];
    double loss;
    size_t helpers; /* at the end */
    uint64_t checked, repeated;
} learnt;

static clv_trainer *open_trainer(clv_context *context, const clv_model *model, clv_train_task task,
                                 size_t frozen, size_t block)
{
    clv_trainer *t;
    const clv_trainer_options options = { .size = sizeof options,
                                          .task = task,
                                          .classes = CLASSES,
                                          .decay = 0.01,
                                          .clip = 0.5,
                                          .seed = 4,
                                          .frozen_layers = frozen,
                                          .check_every = 2,
                                          .block_tokens = block };
    EXPECT_OK(clv_trainer_open(context, model, &options, &t));
    return t;
}

static clv_context *context_of(unsigned parts)
{
    if (parts == 2) return job_test_two_parts(CLV_SCHEDULE_ADAPTIVE);
    return job_test_context(&(clv_context_options){ .size = sizeof(clv_context_options),
                                                    .cache_dir = "",
                                                    .no_tuning = true,
                                                    .no_qualification = true });
}

typedef struct batch {
    const int32_t *ids, *labels;
    const size_t *offsets;
    size_t texts;
} batch;

/* Takes steps on the batch with the faults; the next to last one also evaluates. */
static void train_on(const batch *b, clv_train_task task, size_t frozen, size_t block,
                     unsigned parts, const char *faults, learnt *out)
{
    const int32_t *const given = task == CLV_TRAIN_PAIRS ? NULL : b->labels;
    clv_train_result r;
    clv_model *model = job_test_model(2);
    clv_context *context = context_of(parts);
    clv_trainer *t = open_trainer(context, model, task, frozen, block);
    memset(out, 0, sizeof *out);
    job_test_faults(faults);
    for (int i = 0; i < STEPS; ++i) {
        EXPECT_OK(clv_trainer_step(t, b->ids, b->offsets, b->texts, given, 1e-2, NULL));
        if (i) continue;
        EXPECT_OK(clv_trainer_evaluate(t, b->ids, b->offsets, b->texts, given, &r));
        out->loss = r.loss;
    }
    job_test_faults("");
    assert_true(t->count <= MOST);
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ t->net.weights, 0 }, out->weights, t->count));
    out->helpers = clv_share_helpers(t);
    out->checked = clv_trainer_checked(t, &out->repeated);
    clv_trainer_close(t);
    job_test_close(context);
    clv_model_close(model);
}

static void train(clv_train_task task, size_t frozen, size_t block, unsigned parts,
                  const char *faults, learnt *out)
{
    train_on(&(batch){ job_test_ids, labels, offsets, TEXTS }, task, frozen, block, parts, faults,
             out);
}

static void expect_same(const learnt *got, const learnt *want, const char *what)
{
    if (memcmp(got->weights, want->weights, sizeof got->weights) != 0 || got->loss != want->loss)
        fail_msg("%s: other weights, or another loss", what);
    assert_int_equal(got->checked, 2); /* the gradient is plain C's, too */
    assert_int_equal(got->repeated, 0);
}

static void two_devices_give_the_bits_of_one(void **state)
{
    (void)state;
    static learnt want, got, whole;
    static const struct {
        clv_train_task task;
        size_t frozen, block;
    } cases[] = { { CLV_TRAIN_CLASSES, 0, 4 },
                  { CLV_TRAIN_PAIRS, 0, 8 },
                  { CLV_TRAIN_CLASSES, 1, 12 } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        train(cases[i].task, cases[i].frozen, cases[i].block, 1, "", &want);
        train(cases[i].task, cases[i].frozen, cases[i].block, 2, "", &got);
        assert_int_equal(want.helpers, 0);
        assert_int_equal(got.helpers, 1);
        expect_same(&got, &want, "two devices");
        train(cases[i].task, cases[i].frozen, 0, 2, "", &whole); /* too small to be cut */
        assert_int_equal(whole.helpers, 0);
        assert_memory_not_equal(whole.weights, want.weights, sizeof want.weights);
    }
}

/* Texts without tokens: at the end of the largest number of blocks, where formerly one more block was written beyond
 * the array; and behind a text that is as long as several blocks. */
static void texts_without_tokens_make_no_blocks(void **state)
{
    (void)state;
    enum { MANY = 66 };
    static learnt want, got;
    static int32_t ids[MANY], all[MANY];
    static size_t singles[MANY + 1];
    for (size_t i = 0; i < MANY; ++i) {
        ids[i] = job_test_ids[i % JOB_TOKENS], all[i] = (int32_t)(i % CLASSES);
        singles[i + 1] = CLV_MIN(i + 1, (size_t)64);
    }
    const batch cases[] = { { ids, all, singles, MANY },
                            { ids, all, (const size_t[]){ 0, 6, 6, 7 }, 3 },
                            { ids, all, (const size_t[]){ 0, 0, 6, 6 }, 3 } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        train_on(&cases[i], CLV_TRAIN_CLASSES, 0, 1, 1, "", &want);
        train_on(&cases[i], CLV_TRAIN_CLASSES, 0, 1, 2, "", &got);
        expect_same(&got, &want, "texts without tokens");
    }
}

static size_t warnings;

static void count_warning(clv_log_level level, const char *text, void *user)
{
    (void)user;
    warnings += level == CLV_LOG_WARN && strstr(text, "is not used any more") != NULL;
}

/* The second device is lost after some commands: while it is opened, there, or on the way back. */
static void a_lost_helper_changes_no_bit(void **state)
{
    (void)state;
    static learnt want, got;
    size_t lost = 0, kept = 0, told = 0;
    train(CLV_TRAIN_CLASSES, 0, 4, 1, "", &want);
    clv_log_set(CLV_LOG_WARN, count_warning, NULL);
    for (unsigned k = 1; !kept; k += 2 + k) {
        char faults[32];
        snprintf(faults, sizeof faults, "on=2;lost=%u", k);
        warnings = 0;
        train(CLV_TRAIN_CLASSES, 0, 4, 2, faults, &got);
        expect_same(&got, &want, faults);
        kept += got.helpers, lost += !got.helpers, told += warnings;
    }
    clv_log_set(CLV_LOG_NONE, NULL, NULL);
    printf("the helper was lost in %zu runs\n", lost);
    assert_true(lost > 5 && told > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_devices_give_the_bits_of_one),
        cmocka_unit_test(texts_without_tokens_make_no_blocks),
        cmocka_unit_test(a_lost_helper_changes_no_bit),
    };
    job_test_begin();
    return cmocka_run_group_tests_name("train_shares", tests, NULL, NULL);
}
