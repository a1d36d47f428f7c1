/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that clv_prepare_begin and clv_prepare_end compile all kernels of later calls, each once, and do nothing else.
 * The driver's cache and the library's own cache are empty at the start. */
#include "device.h"
#include "test.h"

#include "runtime/context/prepare.h"
#include "runtime/program/program.h"

#include <cleave/array.h>
#include <cleave/array_math.h>
#include <cleave/blas.h>
#include <cleave/offload.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N = 64, ALL = N * N };

/* Owned arrays between calls, a job, and a product. */
typedef struct problem {
    float x[ALL], filtered[ALL], product[ALL], mean, largest;
    clv_array *brought; /* its contents come from the host once */
} problem;

static clv_status compute(clv_context *c, problem *p)
{
    static const float blur[9] = { 1, 2, 1, 2, 4, 2, 1, 2, 1 };
    const size_t shape[] = { N, N };
    clv_array *z = NULL, *one[2] = { NULL, NULL };
    clv_status status = clv_array_create(c, 2, shape, &z);
    for (size_t i = 0; i < 2 && !status; ++i)
        status = clv_array_create(c, 0, NULL, &one[i]);
    if (!status) status = clv_reduce(c, CLV_REDUCE_MEAN, p->brought, -1, one[0]);
    const clv_map_input in[] = { { "x", p->brought, 0 }, { "mean", one[0], 0 } };
    if (!status) status = clv_map(c, "(x - mean) * 2", in, 2, z);
    if (!status) status = clv_reduce(c, CLV_REDUCE_MAX, z, -1, one[1]);
    if (!status) status = clv_convolve_2d(c, p->x, N, N, blur, 3, 3, NULL, p->filtered, NULL);
    if (!status) status = clv_matmul(c, N, N, N, p->x, p->x, NULL, p->product);
    if (!status && !clv_offload_dry(false)) { /* what was only planned cannot be read */
        status = clv_array_get(one[0], &p->mean);
        if (!status) status = clv_array_get(one[1], &p->largest);
    } else {
        clv_offload_dry(true);
    }
    clv_array_free(z), clv_array_free(one[0]), clv_array_free(one[1]);
    return status;
}

static void begin(problem *p, clv_context *context)
{
    const size_t shape[] = { N, N };
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < ALL; ++i)
        p->x[i] = (float)(i % 31) - 9;
    EXPECT_OK(clv_array_create(context, 2, shape, &p->brought));
    EXPECT_OK(clv_array_put(p->brought, p->x));
}

/* Kernels that are known of, each with a work-group size; those that will be launched. */
static size_t count_kernels(const clv_device *device)
{
    size_t count = 0;
    for (const clv_program *p = device->programs; p; p = p->next)
        for (const clv_kernel_use *u = p->uses; u; u = u->next)
            ++count;
    return count;
}

typedef struct told {
    size_t done, all;
} told;

static int note(size_t done, size_t all, void *user)
{
    told *t = user;
    assert_true(done >= t->done && done <= all);
    t->done = done, t->all = all;
    return 0;
}

static clv_context_options two_helpers(void)
{
    const char *helper = getenv("CLEAVE_TEST_HELPER");
    return (clv_context_options){ .size = sizeof(clv_context_options),
                                  .helper = helper,
                                  .compilers = 2 };
}

static void expect_the_same(const problem *got, const problem *want)
{
    assert_memory_equal(got->filtered, want->filtered, sizeof want->filtered);
    assert_memory_equal(got->product, want->product, sizeof want->product);
    assert_memory_equal(&got->mean, &want->mean, sizeof want->mean);
    assert_memory_equal(&got->largest, &want->largest, sizeof want->largest);
}

/* Returns the kernels that were prepared. */
static size_t prepare_and_compute(test_device *d, problem *p)
{
    told t = { 0 };
    problem before;
    begin(p, d->context);
    memcpy(&before, p, sizeof before);
    clv_prepare_begin(d->context);
    EXPECT_OK(compute(d->context, p));
    const size_t missing = clv_ahead_missing(d->device);
    clv_prepare_end(d->context, note, &t);
    assert_memory_equal(&before, p, sizeof before); /* nothing was computed */
    assert_int_equal(t.all, missing);
    assert_int_equal(t.done, missing);

    const clv_compile_cost ahead = clv_context_compiled(d->context);
    const size_t known = count_kernels(d->device);
    assert_true(known > 0);
    if (clv_ahead_helps(d->device)) assert_int_equal(ahead.kernels, missing);
    EXPECT_OK(compute(d->context, p));
    const clv_compile_cost after = clv_context_compiled(d->context);
    assert_int_equal(after.programs, ahead.programs); /* the calls found everything compiled */
    assert_int_equal(after.kernels, ahead.kernels);
    assert_int_equal(count_kernels(d->device), known);
    clv_array_free(p->brought);
    return missing;
}

static void each_kernel_is_compiled_ahead_and_once(void **state)
{
    (void)state;
    const clv_side side = clv_offload_force(CLV_SIDE_DEVICE);
    const clv_context_options options = two_helpers();
    for (size_t i = 0; i < test_device_count(); ++i) {
        static problem first, again, plain;
        test_device d;
        test_device_open(i, &options, &d);
        const size_t prepared = prepare_and_compute(&d, &first);
        printf("%s: %zu kernels prepared\n", d.name, prepared);
        char place[300];
        snprintf(place, sizeof place, "%s", d.cache_dir);
        test_device_close(&d);
        assert_true(prepared >= 6); /* mean, maximum, map, convolution, product */

        clv_context_options kept = options;
        kept.cache_dir = place;
        test_device_open(i, &kept, &d); /* nobody has to compile what is kept */
        if (clv_ahead_helps(d.device))
            assert_int_equal(prepare_and_compute(&d, &again), 0);
        else
            prepare_and_compute(&d, &again);
        expect_the_same(&again, &first);
        begin(&plain, d.context); /* never prepared */
        EXPECT_OK(compute(d.context, &plain));
        clv_array_free(plain.brought);
        expect_the_same(&plain, &first);
        test_device_close(&d);
    }
    clv_offload_force(side);
}

/* Helpers that cannot be started cost time, and no result. */
static void no_helper_is_no_failure(void **state)
{
    (void)state;
    const clv_side side = clv_offload_force(CLV_SIDE_DEVICE);
    clv_context_options options = two_helpers();
    options.helper = "/bin/false"; /* starts, and compiles nothing */
    for (size_t i = 0; i < test_device_count(); ++i) {
        static problem p;
        test_device d;
        test_device_open(i, &options, &d);
        begin(&p, d.context);
        clv_prepare_begin(d.context);
        EXPECT_OK(compute(d.context, &p));
        clv_prepare_end(d.context, NULL, NULL);
        EXPECT_OK(compute(d.context, &p));
        assert_true(clv_context_compiled(d.context).programs > 0);
        clv_array_free(p.brought);
        test_device_close(&d);
    }
    clv_offload_force(side);
}

int main(void)
{
    char place[400];
    snprintf(place, sizeof place, "%s/driver", test_temp_dir());
    mkdir(place, 0700);
    setenv("POCL_CACHE_DIR", place, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_is_compiled_ahead_and_once),
        cmocka_unit_test(no_helper_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
