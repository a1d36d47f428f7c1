/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a classifier with a pooler learns as PyTorch's BertForSequenceClassification does, and that the written
 * model gives the same scores as the trainer. */
#include "data.h"
#include "device.h"
#include "test.h"

#include "base/alloc.h"
#include "host/transformer/train/trainer.h"

#include <cleave/classes.h>
#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { D = 16, CLASSES = 3, TEXTS = 8, STEPS = 6, MOST_TOKENS = 64 };

static clv_tensors *golden;
static clv_model *model;
static int32_t ids[MOST_TOKENS], labels[TEXTS];
static size_t offsets[TEXTS + 1];

static const float *read_f32(const char *rule, const char *name, size_t count)
{
    static float values[D * D];
    char full[80];
    snprintf(full, sizeof full, "%s%s", rule, name);
    const clv_tensor *tensor = clv_tensors_find(golden, full);
    if (!tensor || tensor->count != count || count > CLV_LEN(values)) fail_msg("golden %s", full);
    EXPECT_OK(clv_tensors_read_f32(golden, tensor, 0, count, values));
    return values;
}

static void read_i32(const char *name, int32_t *out, size_t most, size_t *count)
{
    const clv_tensor *tensor = clv_tensors_find(golden, name);
    if (!tensor || tensor->type != CLV_TENSOR_I32 || tensor->count > most) fail_msg("%s", name);
    EXPECT_OK(clv_tensors_read(golden, tensor, out, tensor->count * sizeof *out));
    *count = tensor->count;
}

static void expect_near(const char *rule, const char *name, const float *got, size_t count,
                        double tolerance)
{
    const float *want = read_f32(rule, name, count);
    for (size_t i = 0; i < count; ++i)
        if (!(fabs((double)got[i] - (double)want[i]) <= tolerance))
            fail_msg("%s%s: number %zu is %.8g, expected %.8g", rule, name, i, (double)got[i],
                     (double)want[i]);
}

static void expect_part(clv_trainer *t, const char *rule, const char *name, size_t at, size_t count,
                        double tolerance)
{
    float got[D * D];
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ t->net.weights, at }, got, count));
    expect_near(rule, name, got, count, tolerance);
}

/* Starts with the golden's layer of classes instead of random numbers. */
static void take_classes(clv_trainer *t)
{
    clv_tensors *file;
    char path[400];
    float values[CLASSES * D];
    const struct {
        const char *name;
        size_t at, count;
    } all[] = { { "classifier.weight", t->head, (size_t)CLASSES * D },
                { "classifier.bias", t->head_bias, CLASSES } };
    snprintf(path, sizeof path, "%s/model.safetensors", test_data("pooler_head"));
    EXPECT_OK(clv_tensors_open(path, &file));
    for (size_t i = 0; i < CLV_LEN(all); ++i) {
        const clv_tensor *tensor = clv_tensors_find(file, all[i].name);
        assert_true(tensor && tensor->count == all[i].count);
        EXPECT_OK(clv_tensors_read_f32(file, tensor, 0, tensor->count, values));
        EXPECT_OK(
            t->ops->put(t->ops, (clv_mem){ t->net.weights, all[i].at }, values, tensor->count));
    }
    clv_tensors_close(file);
}

/* Writes the model, reads it as a classifier, and compares its probabilities with the trainer's scores. */
static void expect_written(clv_context *context, clv_trainer *t, const float *scores)
{
    char path[400], config[400], text[1200];
    float vectors[TEXTS * D], found[TEXTS * CLASSES];
    clv_model *written;
    clv_classes *classes;
    clv_encoder *encoder;
    snprintf(path, sizeof path, "%s/model.safetensors", test_temp_dir());
    EXPECT_OK(clv_trainer_write(t, path, NULL));
    snprintf(config, sizeof config, "%s/config.json", test_data("pooler_head"));
    FILE *from = fopen(config, "r");
    assert_non_null(from);
    const size_t length = fread(text, 1, sizeof text, from);
    fclose(from);
    snprintf(config, sizeof config, "%s/config.json", test_temp_dir());
    FILE *to = fopen(config, "w");
    assert_true(to && fwrite(text, 1, length, to) == length && !fclose(to));
    EXPECT_OK(clv_model_open(test_temp_dir(), &written));
    EXPECT_OK(clv_classes_open(written, test_temp_dir(), &classes));
    assert_string_equal(clv_classes_name(classes, 1), "middle");
    EXPECT_OK(clv_encoder_open(context, clv_classes_get_config(classes),
                               clv_model_get_weights(written), NULL, &encoder));
    EXPECT_OK(clv_encode(encoder, ids, offsets, TEXTS, vectors, NULL));
    EXPECT_OK(clv_classes_probabilities(classes, vectors, TEXTS, found));
    for (size_t i = 0; i < TEXTS; ++i) {
        double sum = 0;
        for (size_t c = 0; c < CLASSES; ++c)
            sum += exp((double)scores[i * CLASSES + c]);
        for (size_t c = 0; c < CLASSES; ++c) {
            const double want = exp((double)scores[i * CLASSES + c]) / sum;
            if (!(fabs((double)found[i * CLASSES + c] - want) <= 1e-5))
                fail_msg("text %zu, class %zu: %.8g written, the trainer says %.8g", i, c,
                         (double)found[i * CLASSES + c], want);
        }
    }
    clv_encoder_close(encoder);
    clv_classes_close(classes);
    clv_model_close(written);
}

static void run_steps(clv_context *context, const char *rule, const clv_trainer_options *options,
                      double rate, double tolerance)
{
    clv_trainer *t;
    clv_train_result r;
    float scores[TEXTS * CLASSES], losses[STEPS];
    EXPECT_OK(clv_trainer_open(context, model, options, &t));
    take_classes(t);
    EXPECT_OK(clv_trainer_scores(t, ids, offsets, TEXTS, labels, scores, &r));
    expect_near("", "scores", scores, CLV_LEN(scores), 1e-5);
    assert_int_equal(r.counted, TEXTS);
    for (size_t s = 0; s < STEPS; ++s) {
        const size_t first = s % 2 ? TEXTS / 2 : 0;
        EXPECT_OK(clv_trainer_step(t, ids, offsets + first, TEXTS / 2, labels + first, rate, &r));
        losses[s] = (float)r.loss;
    }
    expect_near(rule, "losses", losses, STEPS, tolerance);
    expect_part(t, rule, "classifier.weight", t->head, (size_t)CLASSES * D, tolerance);
    expect_part(t, rule, "classifier.bias", t->head_bias, CLASSES, tolerance);
    expect_part(t, rule, "bert.pooler.dense.weight", t->pooler, (size_t)D * D, tolerance);
    expect_part(t, rule, "bert.pooler.dense.bias", t->pooler_bias, D, tolerance);
    EXPECT_OK(clv_trainer_scores(t, ids, offsets, TEXTS, labels, scores, &r));
    expect_near(rule, "scores", scores, CLV_LEN(scores), 10 * tolerance);
    expect_written(context, t, scores);
    clv_trainer_close(t);
}

static void run_goldens(clv_context *context)
{
    const clv_trainer_options sgd = { .size = sizeof sgd,
                                      .classes = CLASSES,
                                      .optimizer = CLV_OPTIMIZER_SGD,
                                      .head = CLV_TRAIN_HEAD_POOLER };
    const clv_trainer_options adamw = { .size = sizeof adamw,
                                        .classes = CLASSES,
                                        .head = CLV_TRAIN_HEAD_POOLER };
    run_steps(context, "sgd.", &sgd, 0.05, 2e-5);
    run_steps(context, "adamw.", &adamw, 3e-3, 2e-4);
}

static void check_goldens(test_device *device)
{
    if (!test_left_out(device, device->tiny, "steps of a classifier")) run_goldens(device->context);
}

static void steps_are_pytorchs(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    run_goldens(context);
    clv_context_free(context);
    test_each_device(check_goldens);
}

/* Checks that the pooler learns although layers are frozen, and that a state of the other head is refused. */
static void pooler_learns_alone(void **state)
{
    (void)state;
    clv_context *context = test_plain_context();
    clv_trainer_options options = { .size = sizeof options,
                                    .classes = CLASSES,
                                    .frozen_layers = 2,
                                    .head = CLV_TRAIN_HEAD_POOLER };
    clv_trainer *t, *other;
    clv_train_result before, after;
    char file[400];
    snprintf(file, sizeof file, "%s/state.safetensors", test_temp_dir());
    EXPECT_OK(clv_trainer_open(context, model, &options, &t));
    assert_int_equal(t->count, CLASSES * D + CLASSES + D * D + D);
    EXPECT_OK(clv_trainer_evaluate(t, ids, offsets, TEXTS, labels, &before));
    for (int i = 0; i < 20; ++i)
        EXPECT_OK(clv_trainer_step(t, ids, offsets, TEXTS, labels, 0.01, NULL));
    EXPECT_OK(clv_trainer_evaluate(t, ids, offsets, TEXTS, labels, &after));
    assert_true(after.loss < 0.7 * before.loss);
    EXPECT_OK(clv_trainer_save(t, file, NULL));
    options.head = CLV_TRAIN_HEAD_LINEAR;
    EXPECT_OK(clv_trainer_open(context, model, &options, &other));
    EXPECT_FAIL(CLV_E_FORMAT, "other options", clv_trainer_restore(other, file));
    clv_trainer_close(other);
    options.head = (clv_train_head)2;
    EXPECT_FAIL(CLV_E_ARGUMENT, "head 2", clv_trainer_open(context, model, &options, &other));
    EXPECT_FAIL(CLV_E_ARGUMENT, "scores is NULL",
                clv_trainer_scores(t, ids, offsets, TEXTS, labels, NULL, NULL));
    clv_trainer_close(t);
    clv_context_free(context);
}

static int open_goldens(void **state)
{
    (void)state;
    char path[400];
    int32_t lengths[TEXTS];
    size_t tokens, count;
    snprintf(path, sizeof path, "%s/steps.safetensors", test_data("pooler_head"));
    EXPECT_OK(clv_tensors_open(path, &golden));
    EXPECT_OK(clv_model_open(test_data("pooler_head"), &model));
    read_i32("ids", ids, MOST_TOKENS, &tokens);
    read_i32("lengths", lengths, TEXTS, &count);
    read_i32("labels", labels, TEXTS, &count);
    for (size_t i = 0; i < TEXTS; ++i)
        offsets[i + 1] = offsets[i] + (size_t)lengths[i];
    assert_int_equal(offsets[TEXTS], tokens);
    return 0;
}

static int close_goldens(void **state)
{
    (void)state;
    clv_tensors_close(golden);
    clv_model_close(model);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_pytorchs),
        cmocka_unit_test(pooler_learns_alone),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("trainer_pooler", tests, open_goldens, close_goldens);
}
