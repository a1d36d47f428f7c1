/* SPDX-License-Identifier: Apache-2.0 */
/* Tests training with frozen layers: the other parameters have the same bits, less memory is needed, and a run can be
 * resumed on the same model. */
#include "device.h"
#include "test.h"
#include "training_runs.h"

#include "base/alloc.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static clv_model *model;
static training_run first_run, second_run, stays_on_host;

static const float *read_tensor(const clv_tensors *file, const char *name, size_t count)
{
    static float got[CLV_MAX(RUN_V, RUN_F) * RUN_D];
    const clv_tensor *tensor = clv_tensors_find(file, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->count, count);
    assert_true(count <= CLV_LEN(got));
    EXPECT_OK(clv_tensors_read_f32(file, tensor, 0, count, got));
    return got;
}

/* What is written is the model's where it stays, and else what was learnt. */
static void expect_written(clv_trainer *t, const char *file)
{
    clv_tensors *tensors;
    const clv_model_weights *w = clv_model_get_weights(model);
    const size_t up = t->net.layers[0].up;
    EXPECT_OK(clv_trainer_write(t, file, NULL));
    EXPECT_OK(clv_tensors_open(file, &tensors));
    assert_memory_equal(read_tensor(tensors, "embeddings.word_embeddings.weight", RUN_V * RUN_D),
                        w->word, RUN_V * RUN_D * sizeof(float));
    assert_memory_equal(
        read_tensor(tensors, "encoder.layer.0.intermediate.dense.weight", RUN_F * RUN_D),
        w->layer[0].up_weight, RUN_F * RUN_D * sizeof(float));
    const float *learnt =
        read_tensor(tensors, "encoder.layer.1.intermediate.dense.weight", RUN_F * RUN_D);
    assert_memory_equal(learnt, second_run.weights + up, RUN_F * RUN_D * sizeof(float));
    assert_memory_not_equal(learnt, w->layer[1].up_weight, RUN_F * RUN_D * sizeof(float));
    clv_tensors_close(tensors);
}

/* One step with `stay` layers that stay, without a common length of all gradients; `used` is what the
 * trainer takes of the device before its first step. */
static clv_trainer *first_step(clv_context *context, clv_device *device, size_t stay,
                               training_run *out, uint64_t *used)
{
    const uint64_t before = device ? clv_device_memory(device).used_bytes : 0;
    clv_trainer *t = runs_open(context, model, CLV_TRAIN_CLASSES, stay);
    *used = device ? clv_device_memory(device).used_bytes - before : 0;
    t->options.clip = 0;
    runs_take(t, 0, 1, out);
    return t;
}

/* What learns gets the same bits whether what lies below stays or not, and takes the room alone. */
static void steps_are_the_same(clv_context *context, clv_device *device, const char *file)
{
    uint64_t all, part;
    clv_trainer_close(first_step(context, device, 0, &first_run, &all));
    for (size_t stay = 1; stay <= 2; ++stay) {
        clv_trainer *t = first_step(context, device, stay, &second_run, &part);
        assert_true(first_run.loss[0] == second_run.loss[0]);
        assert_true(second_run.count < first_run.count / stay);
        assert_memory_equal(first_run.weights + first_run.count - second_run.count,
                            second_run.weights, second_run.count * sizeof(float));
        if (stay == 1) expect_written(t, file);
        clv_trainer_close(t);
        if (!device) continue;
        printf("%s: %zu layers stay: %llu bytes, none: %llu\n", clv_device_label(device), stay,
               (unsigned long long)part, (unsigned long long)all);
        assert_true(stay == 1 ? part < all * 3 / 4 : part < all / 2);
    }
}

/* On after a pause, on the same model only. */
static void resumes_on_its_model(clv_context *context, const char *file)
{
    clv_model *other;
    clv_trainer *t = runs_open(context, model, CLV_TRAIN_CLASSES, 1);
    runs_take(t, 0, 3, &first_run);
    EXPECT_OK(clv_trainer_save(t, file, NULL));
    runs_take(t, 3, 6, &first_run);
    clv_trainer_close(t);
    t = runs_open(context, model, CLV_TRAIN_CLASSES, 1);
    EXPECT_OK(clv_trainer_restore(t, file));
    runs_take(t, 3, 6, &second_run);
    assert_memory_equal(first_run.weights, second_run.weights, first_run.count * sizeof(float));
    clv_trainer_close(t);
    EXPECT_OK(clv_model_create_random(&runs_config, 9, &other));
    t = runs_open(context, other, CLV_TRAIN_CLASSES, 1);
    EXPECT_FAIL(CLV_E_FORMAT, "different frozen weights", clv_trainer_restore(t, file));
    clv_trainer_close(t);
    clv_model_close(other);
    t = runs_open(context, model, CLV_TRAIN_CLASSES, 2); /* their own layer alone learns */
    runs_take(t, 0, 1, &second_run);
    EXPECT_OK(clv_trainer_save(t, file, NULL));
    EXPECT_OK(clv_trainer_restore(t, file));
    clv_trainer_close(t);
}

/* A state without one of its parts: the trainer goes on as if it had not been asked. */
static void takes_all_or_nothing(clv_context *context, const char *file)
{
    static const char *const keys[] = { "cleave.rules", "cleave.steps", "cleave.stays" };
    const char *metadata[2 * CLV_LEN(keys) + 1] = { NULL };
    static float zeros[CLV_LEN(first_run.weights)];
    clv_tensors *state;
    clv_train_result before, after;
    clv_trainer *t = runs_open(context, model, CLV_TRAIN_CLASSES, 1);
    runs_take(t, 0, 1, &first_run);
    EXPECT_OK(clv_trainer_save(t, file, NULL));
    EXPECT_OK(clv_tensors_open(file, &state));
    for (size_t i = 0; i < CLV_LEN(keys); ++i)
        metadata[2 * i] = keys[i], metadata[2 * i + 1] = clv_tensors_metadata(state, keys[i]);
    const clv_tensor_source sources[] = {
        { "weights", CLV_TENSOR_F32, 1, { t->count }, zeros },
        { "first_moment", CLV_TENSOR_F32, 1, { t->count }, zeros },
    };
    EXPECT_OK(clv_tensors_write(file, sources, CLV_LEN(sources), metadata));
    clv_tensors_close(state);
    runs_take(t, 1, 2, &first_run);
    EXPECT_OK(clv_trainer_evaluate(t, run_ids, run_offsets, RUN_TEXTS, run_labels, &before));
    EXPECT_FAIL(CLV_E_FORMAT, "no tensor \"second_moment\"", clv_trainer_restore(t, file));
    EXPECT_OK(clv_trainer_evaluate(t, run_ids, run_offsets, RUN_TEXTS, run_labels, &after));
    assert_true(before.loss == after.loss && clv_trainer_steps(t) == 2);
    clv_trainer_close(t);
}

static void run_frozen(clv_context *context, clv_device *device)
{
    char file[400];
    snprintf(file, sizeof file, "%s/stays.safetensors", test_temp_dir());
    steps_are_the_same(context, device, file);
    takes_all_or_nothing(context, file);
    resumes_on_its_model(context, file);
    if (!device) stays_on_host = first_run;
    for (int s = 0; s < 6; ++s)
        if (!(fabs(first_run.loss[s] - stays_on_host.loss[s]) <=
              2e-5 * (1 + stays_on_host.loss[s])))
            fail_msg("step %d: loss %.9g, expected %.9g", s, first_run.loss[s],
                     stays_on_host.loss[s]);
}

static void check_frozen(test_device *device)
{
    if (test_left_out(device, device->tiny, "runs of training")) return;
    run_frozen(device->context, device->device);
}

static void layers_that_stay_take_no_part(void **state)
{
    (void)state;
    clv_context *context = runs_on_host();
    EXPECT_OK(clv_model_create_random(&runs_config, 3, &model));
    run_frozen(context, NULL);
    clv_context_free(context);
    test_each_device(check_frozen);
    clv_model_close(model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_that_stay_take_no_part),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("trainer_frozen", tests, NULL, NULL);
}
