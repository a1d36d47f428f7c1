/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whole training runs: 12 steps compared with PyTorch's, and the same bits in a second run, after a pause, on
 * every device and on the host. */
#include "device.h"
#include "golden.h"
#include "test.h"
#include "training_runs.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    V = RUN_V,
    D = RUN_D,
    F = RUN_F,
    HEADS = RUN_HEADS,
    CLASSES = RUN_CLASSES,
    TEXTS = RUN_TEXTS,
    LENGTH = RUN_LENGTH,
    STEPS = 12
};

static const clv_model_config small = { .size = sizeof(clv_model_config),
                                        .width = D,
                                        .heads = HEADS,
                                        .layers = 1,
                                        .ffn = F,
                                        .vocabulary = V,
                                        .positions = LENGTH,
                                        .types = 1,
                                        .eps = 1e-5f,
                                        .act = CLV_ACTIVATION_GELU,
                                        .pooling = CLV_MODEL_MEAN,
                                        .max_length = LENGTH };

/* Golden texts without their padding: texts of LENGTH and of 7. */
static size_t texts_of(const char *name, int32_t *ids, size_t offsets[TEXTS + 1])
{
    const int32_t *all = golden_get(name, "ids").i32, *mask = golden_get(name, "mask").i32;
    size_t used = 0;
    for (size_t i = 0; i < TEXTS; ++i) {
        offsets[i] = used;
        for (size_t t = 0; t < LENGTH; ++t)
            if (mask[i * LENGTH + t]) ids[used++] = all[i * LENGTH + t];
    }
    return offsets[TEXTS] = used;
}

static void set(const float *place, const char *name, const char *role)
{
    const golden_array a = golden_get(name, role);
    memcpy((float *)(uintptr_t)place, a.f32, a.count * sizeof *a.f32);
}

/* The golden's model: no type, no norm behind the embeddings. */
static clv_model *golden_model(const char *name)
{
    clv_model *model;
    EXPECT_OK(clv_model_create_random(&small, 1, &model));
    const clv_model_weights *w = clv_model_get_weights(model);
    const clv_model_layer *l = w->layer;
    memset((float *)(uintptr_t)w->type, 0, D * sizeof(float));
    const struct {
        const float *place;
        const char *role;
    } all[] = { { w->word, "emb" },     { w->position, "pos" },      { l->q_weight, "wq" },
                { l->k_weight, "wk" },  { l->v_weight, "wv" },       { l->q_bias, "bq" },
                { l->k_bias, "bk" },    { l->v_bias, "bv" },         { l->out_weight, "wo" },
                { l->out_bias, "bo" },  { l->norm1_weight, "ln1w" }, { l->norm1_bias, "ln1b" },
                { l->up_weight, "w1" }, { l->up_bias, "b1" },        { l->down_weight, "w2" },
                { l->down_bias, "b2" }, { l->norm2_weight, "ln2w" }, { l->norm2_bias, "ln2b" } };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        set(all[i].place, name, all[i].role);
    return model;
}

static void expect_part(clv_trainer *t, const char *name, const char *role, size_t at)
{
    const golden_array want = golden_get(name, role + 4); /* the size of what it was */
    float *got = clv_alloc(want.count, sizeof *got);
    assert_non_null(got);
    EXPECT_OK(t->ops->get(t->ops, (clv_mem){ t->net.weights, at }, got, want.count));
    golden_expect(name, role, got);
    clv_free(got);
}

static void expect_weights(clv_trainer *t, const char *name)
{
    const clv_net_layer *l = &t->net.layers[0];
    const struct {
        const char *role;
        size_t at;
    } all[] = { { "out.emb", t->net.word },
                { "out.pos", t->net.position },
                { "out.wq", l->qkv },
                { "out.wk", l->qkv + D * D },
                { "out.wv", l->qkv + 2 * D * D },
                { "out.bq", l->qkv_bias },
                { "out.bk", l->qkv_bias + D },
                { "out.bv", l->qkv_bias + 2 * D },
                { "out.wo", l->out },
                { "out.bo", l->out_bias },
                { "out.ln1w", l->norm1 },
                { "out.ln1b", l->norm1_bias },
                { "out.w1", l->up },
                { "out.b1", l->up_bias },
                { "out.w2", l->down },
                { "out.b2", l->down_bias },
                { "out.ln2w", l->norm2 },
                { "out.ln2b", l->norm2_bias },
                { "out.wc", t->head },
                { "out.bc", t->head_bias } };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        expect_part(t, name, all[i].role, all[i].at);
}

static void run_golden(clv_context *context, const char *name, const clv_trainer_options *options,
                       double rate)
{
    int32_t ids[TEXTS * LENGTH];
    size_t offsets[TEXTS + 1];
    float losses[STEPS];
    clv_trainer *t;
    clv_model *model = golden_model(name);
    texts_of(name, ids, offsets);
    EXPECT_OK(clv_trainer_open(context, model, options, &t));
    t->net.bare_embed = true;
    EXPECT_OK(clv_trainer_choose_parts(t));
    const golden_array wc = golden_get(name, "wc"), bc = golden_get(name, "bc");
    EXPECT_OK(t->ops->put(t->ops, (clv_mem){ t->net.weights, t->head }, wc.f32, wc.count));
    EXPECT_OK(t->ops->put(t->ops, (clv_mem){ t->net.weights, t->head_bias }, bc.f32, bc.count));
    for (size_t s = 0; s < STEPS; ++s) {
        clv_train_result r;
        EXPECT_OK(
            clv_trainer_step(t, ids, offsets, TEXTS, golden_get(name, "labels").i32, rate, &r));
        losses[s] = (float)r.loss;
        assert_int_equal(r.counted, TEXTS);
    }
    golden_expect(name, "out.loss", losses);
    expect_weights(t, name);
    clv_trainer_close(t);
    clv_model_close(model);
}

static void run_goldens(clv_context *context)
{
    const clv_trainer_options adamw = {
        .size = sizeof adamw, .classes = CLASSES, .decay = 0.01, .decay_all = true
    };
    const clv_trainer_options sgd = { .size = sizeof sgd,
                                      .classes = CLASSES,
                                      .optimizer = CLV_OPTIMIZER_SGD };
    run_golden(context, "finetune_sgd", &sgd, 0.05);
    run_golden(context, "finetune_adamw", &adamw, 3e-3);
}

static void check_goldens(test_device *device)
{
    if (!test_left_out(device, device->tiny, "12 steps of training")) run_goldens(device->context);
}

static void twelve_steps_are_pytorchs(void **state)
{
    (void)state;
    clv_context *context = runs_on_host();
    run_goldens(context);
    clv_context_free(context);
    test_each_device(check_goldens);
}

/* ---- runs of a random model ------------------------------------------------------------------------- */

static clv_model *model;
static training_run plain[2], first_run, second_run;

static void check_runs(test_device *device)
{
    char file[400];
    if (test_left_out(device, device->tiny, "runs of training")) return;
    snprintf(file, sizeof file, "%s/state.safetensors", test_temp_dir());
    for (clv_train_task task = CLV_TRAIN_CLASSES; task <= CLV_TRAIN_PAIRS; ++task) {
        clv_trainer *t = runs_open(device->context, model, task, 0);
        runs_take(t, 0, 3, &first_run);
        EXPECT_OK(clv_trainer_save(t, file, NULL));
        runs_take(t, 3, 6, &first_run);
        clv_trainer_close(t);
        for (int s = 0; s < 6; ++s)
            if (!(fabs(first_run.loss[s] - plain[task].loss[s]) <=
                  2e-5 * (1 + plain[task].loss[s])))
                fail_msg("task %d, step %d: loss %.9g, expected %.9g", (int)task, s,
                         first_run.loss[s], plain[task].loss[s]);
        t = runs_open(device->context, model, task, 0); /* goes on where the other stopped */
        EXPECT_OK(clv_trainer_restore(t, file));
        assert_int_equal(clv_trainer_steps(t), 3);
        runs_take(t, 3, 6, &second_run);
        clv_trainer_close(t);
        if (memcmp(first_run.weights, second_run.weights, first_run.count * sizeof(float)) != 0)
            fail_msg("task %d: other bits after a pause", (int)task);
    }
    clv_trainer *t = runs_open(device->context, model, CLV_TRAIN_CLASSES, 1);
    EXPECT_FAIL(CLV_E_FORMAT, "other options", clv_trainer_restore(t, file));
    clv_trainer_close(t);
}

/* Texts whose keys, or in the backward pass queries, a device would not see are refused before anything
 * changes. The longest has 6 tokens. */
static void check_short_loops(test_device *device)
{
    enum { LONGEST = 6 };
    clv_train_result r;
    if (test_left_out(device, device->tiny, "a trainer")) return;
    clv_trainer *t = runs_open(device->context, model, CLV_TRAIN_CLASSES, 0);
    test_device_disguise(device, device->facts->device_class);
    uint64_t *limit = &device->disguise.flags.loop_limit;
    *limit = 1;
    while (clv_attention_check(device->device, LONGEST, D / HEADS))
        ++*limit;
    EXPECT_OK(clv_trainer_evaluate(t, run_ids, run_offsets, TEXTS / 2, run_labels, &r));
    EXPECT_FAIL(CLV_E_DEVICE, "got 6 keys",
                clv_trainer_step(t, run_ids, run_offsets, TEXTS / 2, run_labels, 1, &r));
    --*limit;
    EXPECT_FAIL(CLV_E_DEVICE, "got 6 keys",
                clv_trainer_evaluate(t, run_ids, run_offsets, TEXTS / 2, run_labels, &r));
    assert_int_equal(clv_trainer_steps(t), 0);
    runs_take(t, 0, 0, &second_run);
    const float *before;
    const size_t count = clv_model_parameters(model, &before);
    assert_memory_equal(before, second_run.weights, count * sizeof *before);
    clv_trainer_close(t);
}

static void runs_repeat_and_resume(void **state)
{
    (void)state;
    clv_context *context = runs_on_host();
    EXPECT_OK(clv_model_create_random(&runs_config, 3, &model));
    for (clv_train_task task = CLV_TRAIN_CLASSES; task <= CLV_TRAIN_PAIRS; ++task) {
        clv_trainer *t = runs_open(context, model, task, 0);
        assert_string_equal(clv_trainer_device(t), "host");
        runs_take(t, 0, 6, &plain[task]);
        clv_trainer_close(t);
    }
    clv_context_free(context);
    test_each_device(check_runs);
    test_each_device(check_short_loops);
    clv_model_close(model);
}

/* ---- what is refused, what is written --------------------------------------------------------------- */

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    clv_context *context = runs_on_host();
    clv_trainer *t;
    clv_train_result r;
    const int32_t wrong[] = { 0, 3, 0, 0, 0, 0, 0, 0 };
    const int32_t ignored[] = { -100, -100, -100, -100, -100, -100, -100, -100 };
    clv_trainer_options o = { .size = sizeof o, .classes = 1 };
    EXPECT_OK(clv_model_create_random(&runs_config, 3, &model));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL", clv_trainer_open(NULL, model, &o, &t));
    EXPECT_FAIL(CLV_E_ARGUMENT, "1 classes", clv_trainer_open(context, model, &o, &t));
    o = (clv_trainer_options){ .size = sizeof(clv_trainer_options),
                               .classes = CLASSES,
                               .frozen_layers = 3 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "the model has only 2", clv_trainer_open(context, model, &o, &t));
    o = (clv_trainer_options){ .size = sizeof(clv_trainer_options),
                               .task = CLV_TRAIN_PAIRS,
                               .frozen_layers = 2 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "all 2 layers of the model are frozen, and pairs add no layer",
                clv_trainer_open(context, model, &o, &t));
    o = (clv_trainer_options){ .size = sizeof(clv_trainer_options),
                               .classes = CLASSES,
                               .beta1 = 1 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "beta1 is 1, but it must be from 0 to less than 1",
                clv_trainer_open(context, model, &o, &t));
    o = (clv_trainer_options){ .size = sizeof(clv_trainer_options),
                               .classes = CLASSES,
                               .clip = NAN };
    EXPECT_FAIL(CLV_E_ARGUMENT, "clip is nan, but it must be from 0 to less than inf",
                clv_trainer_open(context, model, &o, &t));
    o = (clv_trainer_options){ .size = sizeof(clv_trainer_options),
                               .classes = CLASSES,
                               .eps = 1e-46 };
    EXPECT_FAIL(CLV_E_ARGUMENT, "eps is 1e-46, but it must be at least 1e-20",
                clv_trainer_open(context, model, &o, &t));
    t = runs_open(context, model, CLV_TRAIN_CLASSES, 0);
    EXPECT_FAIL(CLV_E_ARGUMENT, "label 1 is 3",
                clv_trainer_step(t, run_ids, run_offsets, TEXTS, wrong, 1e-3, &r));
    EXPECT_FAIL(CLV_E_ARGUMENT, "rate",
                clv_trainer_step(t, run_ids, run_offsets, TEXTS, run_labels, -1, &r));
    EXPECT_FAIL(CLV_E_ARGUMENT, "the rate is 1e+39, but it must be from 0 to 1e+30",
                clv_trainer_step(t, run_ids, run_offsets, TEXTS, run_labels, 1e39, &r));
    EXPECT_FAIL(CLV_E_ARGUMENT, "NULL",
                clv_trainer_step(t, run_ids, run_offsets, TEXTS, NULL, 1, &r));
    EXPECT_FAIL(CLV_E_IO, "nothing_here", clv_trainer_restore(t, "/nothing_here/x"));
    EXPECT_OK(clv_trainer_evaluate(t, run_ids, run_offsets, TEXTS, ignored, &r));
    assert_true(r.loss == 0 && r.counted == 0);
    EXPECT_OK(clv_trainer_evaluate(t, run_ids, run_offsets, TEXTS, run_labels, &r));
    assert_true(r.loss > 0.5 && r.counted == TEXTS - 1);
    clv_trainer_close(t);
    t = runs_open(context, model, CLV_TRAIN_PAIRS, 0);
    EXPECT_FAIL(CLV_E_SHAPE, "3 texts", clv_trainer_step(t, run_ids, run_offsets, 3, NULL, 1, &r));
    clv_trainer_close(t);
    clv_model_close(model);
    clv_context_free(context);
}

/* Without memory at any time, and then with other texts: as if there had been the others alone. */
static void a_step_that_failed_leaves_nothing(void **state)
{
    (void)state;
    enum { OTHERS = TEXTS / 2 };
    const clv_trainer_options options = {
        .size = sizeof options, .classes = CLASSES, .optimizer = CLV_OPTIMIZER_SGD, .seed = 4
    };
    static float weights[2][64 * 1024];
    clv_context *context = runs_on_host();
    EXPECT_OK(clv_model_create_random(&runs_config, 3, &model));
    unsigned long k = 0, failed = 0;
    for (bool fails = true; fails;
         ++k) { /* the first one is not hindered, and makes no first step */
        clv_trainer *t;
        EXPECT_OK(clv_trainer_open(context, model, &options, &t));
        clv_alloc_fail_at(k);
        const clv_status status =
            k ? clv_trainer_step(t, run_ids, run_offsets, OTHERS, run_labels, 0.1, NULL)
              : CLV_E_MEMORY;
        clv_alloc_fail_at(0);
        fails = status != CLV_OK;
        failed += k && fails;
        if (fails) {
            assert_int_equal(status, CLV_E_MEMORY);
            EXPECT_OK(clv_trainer_step(t, run_ids, run_offsets + OTHERS, OTHERS,
                                       run_labels + OTHERS, 0.1, NULL));
            assert_true(t->count <= CLV_LEN(weights[0]));
            EXPECT_OK(
                t->ops->get(t->ops, (clv_mem){ t->net.weights, 0 }, weights[k > 0], t->count));
            if (k && memcmp(weights[0], weights[1], t->count * sizeof **weights) != 0)
                fail_msg("after the failure of allocation %lu", k);
        }
        clv_trainer_close(t);
    }
    printf("%lu allocations of a step\n", failed);
    assert_true(failed > 3);
    clv_model_close(model);
    clv_context_free(context);
}

static void writes_a_model_with_its_classes(void **state)
{
    (void)state;
    char file[400];
    clv_context *context = runs_on_host();
    clv_tensors *tensors;
    snprintf(file, sizeof file, "%s/model.safetensors", test_temp_dir());
    EXPECT_OK(clv_model_create_random(&runs_config, 3, &model));
    clv_trainer *t = runs_open(context, model, CLV_TRAIN_CLASSES, 0);
    runs_take(t, 0, 1, &first_run);
    EXPECT_OK(clv_trainer_write(t, file, NULL));
    EXPECT_OK(clv_tensors_open(file, &tensors));
    assert_int_equal(clv_tensors_count(tensors), 7 + 2 * 16 + 2);
    const clv_tensor *head = clv_tensors_find(tensors, "classifier.weight");
    const clv_tensor *up = clv_tensors_find(tensors, "encoder.layer.1.intermediate.dense.weight");
    assert_true(head && up && head->shape[0] == CLASSES && head->shape[1] == D);
    float got[F * D];
    EXPECT_OK(clv_tensors_read_f32(tensors, head, 0, CLASSES * D, got));
    assert_memory_equal(got, first_run.weights + t->head, CLASSES * D * sizeof(float));
    EXPECT_OK(clv_tensors_read_f32(tensors, up, 0, F * D, got));
    assert_memory_equal(got, first_run.weights + t->net.layers[1].up, F * D * sizeof(float));
    clv_tensors_close(tensors);
    clv_trainer_close(t);
    clv_model_close(model);
    clv_context_free(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twelve_steps_are_pytorchs),
        cmocka_unit_test(runs_repeat_and_resume),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(a_step_that_failed_leaves_nothing),
        cmocka_unit_test(writes_a_model_with_its_classes),
    };
    test_share_compiled();
    test_choose(argc, argv);
    return cmocka_run_group_tests_name("trainer", tests, golden_setup, golden_teardown);
}
