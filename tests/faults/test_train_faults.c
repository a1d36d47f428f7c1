/* SPDX-License-Identifier: Apache-2.0 */
/* Tests training on a device that transfers or stores wrong bits: either the weights are those of a run without
 * faults, or the step fails and the weights are those before it. */
#include "job_test.h"

#include "base/alloc.h"
#include "host/transformer/train/trainer.h"

#include <cleave/log.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES = 3, STEPS = 4, MOST = 64 * 1024 };
static const int32_t labels[JOB_TEXTS] = { 0, 2, 1 };

typedef struct learnt {
    float weights[MOST];
    uint64_t checked, repeated;
} learnt;

static size_t warnings;

static void count_warning(clv_log_level level, const char *text, void *user)
{
    (void)user;
    warnings += level == CLV_LOG_WARN && strstr(text, "again") != NULL;
}

static clv_context *context_of_device(void)
{
    return job_test_context(&(clv_context_options){ .size = sizeof(clv_context_options),
                                                    .cache_dir = "",
                                                    .no_tuning = true,
                                                    .no_qualification = true });
}

static clv_trainer *trainer_of(clv_context *context, const clv_model *model, uint64_t every)
{
    clv_trainer *t;
    const clv_trainer_options options = { .size = sizeof options,
                                          .classes = CLASSES,
                                          .decay = 0.01,
                                          .clip = 0.5,
                                          .seed = 4,
                                          .check_every = every,
                                          .check_every_given = true };
    EXPECT_OK(clv_trainer_open(context, model, &options, &t));
    return t;
}

static clv_status step(clv_trainer *t)
{
    return clv_trainer_step(t, job_test_ids, job_test_offsets, JOB_TEXTS, labels, 1e-2, NULL);
}

static void take_weights(clv_trainer *t, learnt *out)
{
    assert_true(t->count <= MOST);
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ t->net.weights, 0 }, out->weights, t->count));
    out->checked = clv_trainer_checked(t, &out->repeated);
}

static void train(const clv_model *model, uint64_t every, const char *faults, learnt *out)
{
    clv_context *context = context_of_device();
    job_test_faults(faults);
    clv_trainer *t = trainer_of(context, model, every);
    for (int i = 0; i < STEPS; ++i)
        EXPECT_OK(step(t));
    memset(out, 0, sizeof *out);
    take_weights(t, out);
    const unsigned long reads = job_test_stats().injected;
    job_test_faults("");
    clv_trainer_close(t);
    job_test_close(context);
    if (reads) out->repeated += MOST; /* a fault happened */
}

static void checks_change_no_bit(void **state)
{
    (void)state;
    static learnt with, without;
    clv_model *model = job_test_model(2);
    train(model, 0, "", &without);
    train(model, 2, "", &with);
    assert_int_equal(without.checked, 0);
    assert_int_equal(with.checked, 2);
    assert_int_equal(with.repeated, 0);
    assert_memory_equal(with.weights, without.weights, sizeof with.weights);
    clv_model_close(model);
}

/* Whatever read is wrong, of a step with or without a check, or of the weights. */
static void a_wrong_read_changes_no_weight(void **state)
{
    (void)state;
    static learnt want, got;
    unsigned long k = 1, runs = 0, untold = 0;
    clv_model *model = job_test_model(1);
    train(model, 3, "", &want);
    clv_log_set(CLV_LOG_WARN, count_warning, NULL);
    for (bool met = true; met; k += 1 + k / 12, ++runs) {
        char faults[32];
        snprintf(faults, sizeof faults, "wrong=%lu", k);
        warnings = 0;
        train(model, 3, faults, &got);
        untold += !warnings;
        if (!warnings) printf("%s: not told\n", faults);
        met = got.repeated >= MOST;
        if (memcmp(got.weights, want.weights, sizeof got.weights) != 0)
            fail_msg("%s: other weights", faults);
    }
    clv_log_set(CLV_LOG_NONE, NULL, NULL);
    printf("%lu runs, reads up to %lu\n", runs, k);
    assert_true(runs > 40);
    assert_true(untold <= 4); /* three of the choice of kernels; the last run met none */
    clv_model_close(model);
}

/* ---- what a device computes wrong: the ops lie in the place of a kernel -------------------------- */

static struct {
    clv_status (*linear_back)(clv_train_ops *ops, const clv_train_linear *call);
    clv_status (*update)(clv_train_ops *ops, const clv_train_rule *rule,
                         const clv_train_update *update);
    size_t calls, wrong_from, wrong_to;
} lie;

/* Flips the highest bit of an exponent: the number becomes much larger. */
static clv_status flip(clv_train_ops *ops, void *memory, size_t at)
{
    uint32_t bits;
    CLV_TRY(ops->get(ops, (clv_mem){ memory, at }, &bits, 1));
    bits ^= 1u << 30;
    return ops->put(ops, (clv_mem){ memory, at }, &bits, 1);
}

static bool lies(void)
{
    ++lie.calls;
    return lie.calls >= lie.wrong_from && lie.calls < lie.wrong_to;
}

static clv_status lying_linear_back(clv_train_ops *ops, const clv_train_linear *call)
{
    CLV_TRY(lie.linear_back(ops, call));
    return call->dw.memory && lies() ? flip(ops, call->dw.memory, call->dw.at + 5) : CLV_OK;
}

static clv_status lying_update(clv_train_ops *ops, const clv_train_rule *rule,
                               const clv_train_update *update)
{
    CLV_TRY(lie.update(ops, rule, update));
    return lies() ? flip(ops, update->weights, update->at + update->count / 2) : CLV_OK;
}

static void lie_from(clv_trainer *t, bool updates, size_t from, size_t to)
{
    lie.linear_back = t->ops->linear_back;
    lie.update = t->ops->update;
    lie.calls = 0, lie.wrong_from = from, lie.wrong_to = to;
    if (updates)
        t->ops->update = lying_update;
    else
        t->ops->linear_back = lying_linear_back;
}

static void tell_truth(clv_trainer *t)
{
    t->ops->linear_back = lie.linear_back;
    t->ops->update = lie.update;
}

static void a_wrong_sum_is_computed_again(bool updates)
{
    static learnt want, got;
    clv_model *model = job_test_model(1);
    size_t repeated = 0, k = 1;
    for (bool met = true; met; ++k) {
        clv_context *context = context_of_device();
        clv_trainer *t = trainer_of(context, model, 1);
        lie_from(t, updates, k, k + 1);
        EXPECT_OK(step(t));
        met = lie.calls >= k;
        take_weights(t, &got);
        if (met) {
            assert_int_equal(got.repeated, 1);
            ++repeated;
        }
        tell_truth(t);
        clv_trainer_close(t);
        clv_trainer *honest = trainer_of(context, model, 0);
        EXPECT_OK(step(honest));
        take_weights(honest, &want);
        assert_memory_equal(got.weights, want.weights, sizeof got.weights);
        clv_trainer_close(honest);
        job_test_close(context);
    }
    printf("%zu wrong results, each noticed\n", repeated);
    assert_true(repeated >= (updates ? 10 : 5));
    clv_model_close(model);
}

static void a_wrong_gradient_is_computed_again(void **state)
{
    (void)state;
    a_wrong_sum_is_computed_again(false);
}

static void a_wrong_update_is_computed_again(void **state)
{
    (void)state;
    a_wrong_sum_is_computed_again(true);
}

/* ---- between two checks --------------------------------------------------------------------------- */

enum { LONG = 7 };

static void train_with(clv_context *context, const clv_model *model, size_t wrong_from,
                       size_t wrong_to, learnt *out)
{
    clv_trainer *t = trainer_of(context, model, 100);
    lie_from(t, false, wrong_from, wrong_to);
    for (int i = 0; i < LONG; ++i)
        EXPECT_OK(step(t));
    take_weights(t, out);
    tell_truth(t);
    clv_trainer_close(t);
}

/* Only the first step is compared with plain C; the gradient of another one is far too long. */
static void a_wrong_gradient_between_checks_is_noticed(void **state)
{
    (void)state;
    static learnt want, got;
    size_t runs = 0;
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    train_with(context, model, 0, 0, &want);
    assert_int_equal(want.checked, 1);
    const size_t calls = lie.calls, first = calls / LONG + 1;
    for (size_t k = first; k <= calls; k += 3, ++runs) {
        train_with(context, model, k, k + 1, &got);
        assert_int_equal(got.repeated, 1);
        assert_int_equal(got.checked, 2);
        assert_memory_equal(got.weights, want.weights, sizeof got.weights);
    }
    printf("%zu wrong gradients in %d steps, each noticed\n", runs, LONG - 1);
    assert_true(runs >= 10);
    job_test_close(context);
    clv_model_close(model);
}

/* A bit of weight or moment `at` flips. */
static void flip_bit(clv_trainer *t, size_t which, size_t at, size_t bit)
{
    void *const blocks[] = { t->net.weights, t->first, t->second };
    uint32_t bits;
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ blocks[which], at }, &bits, 1));
    bits ^= (uint32_t)1 << bit;
    EXPECT_OK(t->ops->put(t->ops, (clv_mem){ blocks[which], at }, &bits, 1));
}

/* Expects a failure that brought back the weights of the last check, and that the next step goes on from there. */
static void expect_return(clv_trainer *t, const learnt *before, uint64_t steps)
{
    static learnt now;
    assert_int_equal(clv_trainer_steps(t), steps);
    take_weights(t, &now);
    assert_memory_equal(now.weights, before->weights, sizeof now.weights);
    EXPECT_OK(step(t));
}

/* A bit of a weight or moment flips between two steps, each of the 32 twice. The next step notices it, whether it is
 * checked or not, and so do saving and, for weights, writing. */
static void flipped_bits_of_memory_are_noticed(void **state)
{
    (void)state;
    enum { EVERY = 4, TRIES = 64 };
    static learnt before;
    static const char *const said = "a bit of the device's memory is wrong";
    char path[4200];
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    snprintf(path, sizeof path, "%s/state", test_temp_dir());
    for (size_t i = 0; i < TRIES; ++i) {
        clv_trainer *t = trainer_of(context, model, EVERY);
        for (int k = 0; k < EVERY; ++k)
            EXPECT_OK(step(t));
        take_weights(t, &before);
        for (size_t k = 0; k < 1 + i % EVERY; ++k) /* after the last of them, a check is due */
            EXPECT_OK(step(t));
        const clv_trainable *part = &t->parts[i % t->part_count];
        flip_bit(t, i % 3, part->at + i * 7919 % part->count, i / 2);
        EXPECT_FAIL(CLV_E_DEVICE, said, clv_trainer_save(t, path, NULL));
        if (i % 3 == 0) EXPECT_FAIL(CLV_E_DEVICE, said, clv_trainer_write(t, path, NULL));
        EXPECT_FAIL(CLV_E_DEVICE, said, step(t));
        expect_return(t, &before, EVERY);
        clv_trainer_close(t);
    }
    printf("%d flipped bits, each noticed\n", (int)TRIES);
    job_test_close(context);
    clv_model_close(model);
}

/* No step reads these weights: they are compared before they are written. */
static void flipped_bits_of_weights_that_stay_are_noticed(void **state)
{
    (void)state;
    char path[4200];
    size_t at = 0;
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    clv_trainer *t = trainer_of(context, model, 4);
    snprintf(path, sizeof path, "%s/stays", test_temp_dir());
    for (size_t i = 0; i < t->part_count && t->parts[i].at == at; ++i)
        at += t->parts[i].count;
    assert_true(at < t->head); /* the model's own pooler, which this head does not use */
    EXPECT_OK(step(t));
    EXPECT_OK(clv_trainer_write(t, path, NULL));
    flip_bit(t, 0, at, 0);
    EXPECT_OK(step(t));
    EXPECT_FAIL(CLV_E_DEVICE, "although only a step may change them",
                clv_trainer_write(t, path, NULL));
    clv_trainer_close(t);
    job_test_close(context);
    clv_model_close(model);
}

/* An update between two checks computes a weight that AdamW cannot have made, and sums it. The next check notices it,
 * and so does writing. */
static void a_wrong_update_between_checks_is_noticed(void **state)
{
    (void)state;
    enum { EVERY = 4, TRIES = 4 };
    static learnt before;
    static const char *const said = "more than AdamW can change them";
    char path[4200];
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    snprintf(path, sizeof path, "%s/state", test_temp_dir());
    for (size_t i = 1; i <= TRIES; ++i) {
        clv_trainer *t = trainer_of(context, model, EVERY);
        for (int k = 0; k < EVERY; ++k)
            EXPECT_OK(step(t));
        take_weights(t, &before);
        EXPECT_OK(step(t));
        flip_bit(t, 0, i * 7919 % t->count, 30);
        t->summed = false;
        EXPECT_FAIL(CLV_E_DEVICE, said, clv_trainer_save(t, path, NULL));
        EXPECT_FAIL(CLV_E_DEVICE, said, clv_trainer_write(t, path, NULL));
        clv_status taken = CLV_OK;
        for (int k = 0; k < EVERY && !taken; ++k)
            taken = step(t);
        EXPECT_FAIL(CLV_E_DEVICE, said, taken);
        expect_return(t, &before, EVERY);
        clv_trainer_close(t);
    }
    job_test_close(context);
    clv_model_close(model);
}

/* In the numbers of a state that was saved: nothing of it is used. */
static void flipped_bits_of_a_state_are_noticed(void **state)
{
    (void)state;
    static learnt before, after;
    char path[4200];
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    clv_trainer *t = trainer_of(context, model, 0);
    snprintf(path, sizeof path, "%s/flipped", test_temp_dir());
    EXPECT_OK(step(t));
    EXPECT_OK(clv_trainer_save(t, path, NULL));
    EXPECT_OK(step(t));
    take_weights(t, &before);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    const long numbers = (long)(3 * t->count * sizeof(float));
    for (long i = 0; i < 9; ++i) {
        const long at = -numbers + i * (numbers / 9);
        assert_int_equal(fseek(file, at, SEEK_END), 0);
        const int byte = fgetc(file);
        for (int flip = 1; flip >= 0; --flip) {
            assert_int_equal(fseek(file, at, SEEK_END), 0);
            assert_true(fputc(flip ? byte ^ 1 << i % 8 : byte, file) != EOF);
            assert_int_equal(fflush(file), 0);
            if (flip)
                EXPECT_FAIL(CLV_E_FORMAT, "does not have the digest", clv_trainer_restore(t, path));
        }
    }
    take_weights(t, &after);
    assert_memory_equal(before.weights, after.weights, sizeof before.weights);
    EXPECT_OK(clv_trainer_restore(t, path));
    assert_int_equal(clv_trainer_steps(t), 1);
    assert_int_equal(fclose(file), 0);
    clv_trainer_close(t);
    job_test_close(context);
    clv_model_close(model);
}

static void a_device_that_stays_wrong_is_refused(void **state)
{
    (void)state;
    static learnt before, after;
    for (int updates = 0; updates < 2; ++updates) {
        clv_model *model = job_test_model(1);
        clv_context *context = context_of_device();
        clv_trainer *t = trainer_of(context, model, 1);
        EXPECT_OK(step(t));
        take_weights(t, &before);
        lie_from(t, updates, 1, SIZE_MAX);
        EXPECT_FAIL(CLV_E_DEVICE, "step 2 differ from those of plain C", step(t));
        tell_truth(t);
        take_weights(t, &after);
        assert_memory_equal(before.weights, after.weights, sizeof before.weights);
        assert_int_equal(clv_trainer_steps(t), 1);
        EXPECT_OK(step(t)); /* and goes on where it was */
        assert_int_equal(clv_trainer_steps(t), 2);
        clv_trainer_close(t);
        job_test_close(context);
        clv_model_close(model);
    }
}

static void all_reads_wrong_are_refused(void **state)
{
    (void)state;
    clv_model *model = job_test_model(1);
    clv_context *context = context_of_device();
    clv_trainer *t = trainer_of(context, model, 0);
    job_test_faults("wrong=0");
    EXPECT_FAIL(
        CLV_E_DEVICE, "each time",
        t->ops->put(t->ops, (clv_mem){ t->net.weights, 0 }, (const float[4]){ 1, 2, 3, 4 }, 4));
    job_test_faults("");
    clv_trainer_close(t);
    job_test_close(context);
    clv_model_close(model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_change_no_bit),
        cmocka_unit_test(a_wrong_read_changes_no_weight),
        cmocka_unit_test(a_wrong_gradient_is_computed_again),
        cmocka_unit_test(a_wrong_update_is_computed_again),
        cmocka_unit_test(a_wrong_gradient_between_checks_is_noticed),
        cmocka_unit_test(flipped_bits_of_memory_are_noticed),
        cmocka_unit_test(flipped_bits_of_weights_that_stay_are_noticed),
        cmocka_unit_test(a_wrong_update_between_checks_is_noticed),
        cmocka_unit_test(flipped_bits_of_a_state_are_noticed),
        cmocka_unit_test(a_device_that_stays_wrong_is_refused),
        cmocka_unit_test(all_reads_wrong_are_refused),
    };
    job_test_begin();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("train_faults", tests, NULL, NULL);
}
