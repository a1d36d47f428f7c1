/* SPDX-License-Identifier: Apache-2.0 */
/* A small job with a known result, on PoCL under the fault layer. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "job_test.h"

#include "device.h"
#include "run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include <cleave/transformer.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FROM, TO, GROUP = 16, TURNS = 50 };

static const char kernels[] =
    "__kernel void stir(__global const uint *from, ulong offset, __global uint *to, uint count)\n"
    "{\n"
    "    const size_t i = get_global_id(0);\n"
    "    if (i >= count) return;\n"
    "    uint x = from[offset + i];\n"
    "    for (int k = 0; k < TURNS; ++k) x = x * 1664525u + 1013904223u;\n"
    "    to[i] = x;\n"
    "}\n";
static const clv_cl_source source = { "job_test.cl", kernels, sizeof kernels - 1 };

static fault_set *set_faults;
static fault_get *get_stats;
static fault_release *release;

/* ---- the layer ------------------------------------------------------------------------------- */

/* The .icd file of PoCL in a folder, if it has one. */
static bool find_pocl(const char *folder, char *text, size_t capacity)
{
    DIR *directory = folder ? opendir(folder) : NULL;
    bool found = false;
    for (struct dirent *d; directory && !found && (d = readdir(directory));) {
        char path[1024];
        char *content;
        size_t length;
        snprintf(path, sizeof path, "%.500s/%s", folder, d->d_name);
        if (!clv_ends_with(d->d_name, ".icd") || clv_file_read(path, 4096, &content, &length))
            continue;
        found = strstr(content, "pocl") != NULL;
        if (found) clv_copy_string(text, capacity, content);
        clv_free(content);
    }
    if (directory) closedir(directory);
    return found;
}

static void choose_pocl(void)
{
    const char *const folders[] = { getenv("CLEAVE_TEST_ICDS"), getenv("OCL_ICD_VENDORS"),
                                    "/etc/OpenCL/vendors" };
    char icd[4096], folder[400];
    for (size_t i = 0; i < CLV_LEN(folders); ++i) {
        if (!find_pocl(folders[i], icd, sizeof icd)) continue;
        test_write(icd, "icd/pocl.icd");
        snprintf(folder, sizeof folder, "%s/icd", test_temp_dir());
        setenv("OCL_ICD_VENDORS", folder, 1);
        return;
    }
    const char *promised = getenv("CLEAVE_TEST_PLATFORMS");
    if (promised && strstr(promised, "pocl")) {
        printf("CLEAVE_TEST_PLATFORMS promises pocl, which is not here\n");
        exit(1);
    }
    test_skip_all("PoCL is not here");
}

void job_test_begin(void)
{
    test_isolate();
    choose_pocl();
    setenv("OPENCL_LAYERS", FAULT_LAYER, 1);
    unsetenv("CLEAVE_FAULTS");
    clv_probe_report *report;
    EXPECT_OK(clv_probe_run(NULL, &report)); /* the loader loads the layer */
    clv_probe_free(report);
    void *layer = dlopen(FAULT_LAYER, RTLD_NOW | RTLD_NOLOAD);
    if (!layer) test_skip_all("this loader knows no OPENCL_LAYERS");
    *(void **)&set_faults = dlsym(layer, "fault_layer_set");
    *(void **)&get_stats = dlsym(layer, "fault_layer_get");
    *(void **)&release = dlsym(layer, "fault_layer_release");
    assert_true(set_faults && get_stats && release);

    clv_context *context = job_test_context(NULL);
    job_test_expect_ok(context);
    job_test_close(context);
    assert_true(job_test_stats().kernels > 0); /* it is at work */
    assert_false(set_faults("no such fault=1"));
}

void job_test_faults(const char *faults)
{
    if (!set_faults(faults)) fail_msg("no faults: %s", faults);
}

fault_stats job_test_stats(void)
{
    return get_stats();
}

unsigned job_test_release(void)
{
    return release();
}

static void *release_now(void *argument)
{
    job_releaser *r = argument;
    clv_sleep(r->after_s);
    atomic_store(&r->due, true);
    r->held = job_test_release();
    return NULL;
}

void job_test_release_later(job_releaser *r, double seconds)
{
    *r = (job_releaser){ .after_s = seconds };
    assert_int_equal(pthread_create(&r->thread, NULL, release_now, r), 0);
}

void job_test_expect_released(job_releaser *r)
{
    assert_true(atomic_load(&r->due));
    assert_int_equal(pthread_join(r->thread, NULL), 0);
    assert_int_equal(r->held, 1);
}

/* ---- contexts -------------------------------------------------------------------------------- */

clv_context *job_test_context(const clv_context_options *options)
{
    clv_context_options o = { .size = sizeof(clv_context_options),
                              .cache_dir = "",
                              .no_tuning = true,
                              .no_qualification = true };
    if (options) o = *options;
    clv_context *context;
    EXPECT_OK(clv_context_create(&o, &context));
    if (!clv_context_device_count(context)) fail_msg("no device: %s", clv_context_reason(context));
    return context;
}

void job_test_close(clv_context *context)
{
    clv_context_free(context);
    assert_int_equal(job_test_stats().live, 0);
}

clv_context *job_test_two_parts(clv_schedule schedule)
{
    clv_context *context =
        job_test_context(&(clv_context_options){ .size = sizeof(clv_context_options),
                                                 .cache_dir = "",
                                                 .no_tuning = true,
                                                 .no_qualification = true,
                                                 .schedule = schedule,
                                                 .sub_devices = 2 });
    if (clv_device_facts(clv_context_device(context, 0))->compute_units < 2) {
        clv_context_free(context);
        test_skip_all("one core cannot be split");
    }
    return context;
}

void job_test_as_cards(clv_context *context)
{
    for (size_t i = 0; i < context->device_count; ++i) {
        context->devices[i].zero_copy = false;
        context->devices[i].depth = 2;
    }
}

/* ---- the job --------------------------------------------------------------------------------- */

static uint32_t stir(uint32_t x)
{
    for (int k = 0; k < TURNS; ++k)
        x = x * 1664525u + 1013904223u;
    return x;
}

static clv_cost cost(size_t first, size_t count, void *user)
{
    const double bytes = (double)(count * JOB_UNIT * sizeof(uint32_t));
    (void)first, (void)user;
    return (clv_cost){ .flops = (double)(count * JOB_UNIT) * 2 * TURNS,
                       .traffic_bytes = 2 * bytes,
                       .transfer_bytes = 2 * bytes,
                       .memory_bytes = (uint64_t)(2 * bytes) };
}

static clv_status enqueue(clv_slot *slot, size_t first, size_t count, void *user)
{
    const test_job *job = user;
    const clv_box box = { .host = job->from + first * JOB_UNIT,
                          .element_bytes = sizeof(uint32_t),
                          .extent = { 1, count, JOB_UNIT },
                          .stride = { count * JOB_UNIT, JOB_UNIT, 1 } };
    clv_place from;
    clv_buffer *to;
    CLV_TRY(clv_slot_input(slot, FROM, &box, &from));
    CLV_TRY(clv_slot_output(slot, TO, count * JOB_UNIT * sizeof(uint32_t), &to));
    const clv_launch launch = { .size = sizeof(clv_launch),
                                .source = &source,
                                .kernel = "stir",
                                .defines = { { "TURNS", TURNS } },
                                .global = { count * JOB_UNIT },
                                .local = { GROUP } };
    const clv_arg args[] = { clv_arg_buffer(from.buffer), clv_arg_u64(from.offset),
                             clv_arg_buffer(to), clv_arg_u32((uint32_t)(count * JOB_UNIT)) };
    return clv_launch_enqueue(clv_slot_queue(slot), &launch, args, CLV_LEN(args), NULL);
}

static clv_status commit(const clv_slot *slot, size_t first, size_t count, void *user)
{
    test_job *job = user;
    memcpy(job->to + first * JOB_UNIT, clv_slot_result(slot, TO),
           count * JOB_UNIT * sizeof *job->to);
    for (size_t i = 0; i < count; ++i)
        ++job->commits[first + i];
    atomic_fetch_add(&job->committed, count);
    return CLV_OK;
}

static clv_status reference(clv_slot *slot, size_t first, size_t count, void *user)
{
    test_job *job = user;
    void *result;
    CLV_TRY(clv_slot_result_create(slot, TO, count * JOB_UNIT * sizeof(uint32_t), &result));
    uint32_t *to = result;
    for (size_t i = 0; i < count * JOB_UNIT; ++i)
        to[i] = stir(job->from[first * JOB_UNIT + i]);
    atomic_fetch_add(&job->by_reference, count);
    return CLV_OK;
}

clv_status job_test_run(clv_context *context, test_job *job, clv_report *report)
{
    if (!job->units) job->units = 600;
    const size_t numbers = job->units * JOB_UNIT;
    job->from = aligned_alloc(4096, clv_round_up(numbers * sizeof *job->from, 4096));
    job->to = calloc(numbers, sizeof *job->to);
    job->commits = calloc(job->units, 1);
    atomic_store(&job->committed, 0);
    assert_true(job->from && job->to && job->commits);
    for (size_t i = 0; i < numbers; ++i)
        job->from[i] = (uint32_t)i * 2654435761u + 17;
    const clv_job described = { .size = sizeof(clv_job),
                                .name = "stir",
                                .units = job->units,
                                .min_chunk = job->min_chunk,
                                .cost = cost,
                                .enqueue = enqueue,
                                .commit = commit,
                                .reference = job->no_reference ? NULL : reference,
                                .progress = job->progress,
                                .progress_user = job };
    return clv_job_run(context, &described, job, report);
}

void job_test_free(test_job *job)
{
    free(job->from), free(job->to), free(job->commits);
    job->from = job->to = NULL;
    job->commits = NULL;
}

void job_test_expect_right(test_job *job)
{
    for (size_t u = 0; u < job->units; ++u)
        if (job->commits[u] != 1) fail_msg("unit %zu was committed %u times", u, job->commits[u]);
    for (size_t i = 0; i < job->units * JOB_UNIT; ++i)
        if (job->to[i] != stir(job->from[i])) fail_msg("unit %zu is wrong", i / JOB_UNIT);
    job_test_free(job);
}

void job_test_expect_ok(clv_context *context)
{
    test_job job = { 0 };
    EXPECT_OK(job_test_run(context, &job, NULL));
    job_test_expect_right(&job);
}

/* ---- texts ------------------------------------------------------------------------------------- */

const size_t job_test_offsets[] = { 0, 9, 10, JOB_TOKENS };
const int32_t job_test_ids[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8,
                                 9, 7, 9, 3, 2, 3, 8, 0, 0, 0, 0, 0 };

clv_model *job_test_model(size_t layers)
{
    const clv_model_config config = { .size = sizeof(clv_model_config),
                                      .width = JOB_WIDTH,
                                      .heads = 2,
                                      .layers = layers,
                                      .ffn = 48,
                                      .vocabulary = 30,
                                      .positions = 20,
                                      .types = 2,
                                      .eps = 1e-12f,
                                      .act = CLV_ACTIVATION_GELU,
                                      .pooling = CLV_MODEL_MEAN,
                                      .normalize = true,
                                      .max_length = 20 };
    clv_model *model;
    EXPECT_OK(clv_model_create_random(&config, 3, &model));
    return model;
}

clv_status job_test_encode(clv_context *context, const clv_model *model, float *out)
{
    const clv_encoder_options options = { .size = sizeof options, .batch_tokens = 10 };
    clv_encoder *encoder;
    CLV_TRY(clv_encoder_open(context, clv_model_get_config(model), clv_model_get_weights(model),
                             &options, &encoder));
    const clv_status status =
        clv_encode(encoder, job_test_ids, job_test_offsets, JOB_TEXTS, out, NULL);
    clv_encoder_close(encoder);
    return status;
}
