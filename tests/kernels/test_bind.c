/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that each of a driver's threads gets a core of its own where the library may bind threads. Binding happens
 * once per process, so each test starts this program again, which then prints what became of the device and its
 * threads. */
#define _GNU_SOURCE
#include "device.h"
#include "run.h"
#include "test.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/device/bind.h"
#include "runtime/device/device.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads of this process that may run on one core only, and how many cores those are together. */
static void count_bound(int *threads, int *cores)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    *threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        cpu_set_t one;
        const int id = atoi(d->d_name);
        if (!id || sched_getaffinity(id, sizeof one, &one) || CPU_COUNT(&one) != 1) continue;
        CPU_OR(&all, &all, &one);
        ++*threads;
    }
    if (tasks) closedir(tasks);
    *cores = CPU_COUNT(&all);
}

static int cores_of_this_process(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) ? 0 : CPU_COUNT(&mine);
}

static bool has_free_threads(const test_device *device)
{
    return strstr(device->name, "[pocl]") &&
           (int)device->facts->compute_units == cores_of_this_process();
}

/* ---- the process of a claim ---------------------------------------------------------------------- */

static void open_twice(size_t nth, const clv_context_options *options, const char *want)
{
    test_device one, two;
    int before, after, cores;
    count_bound(&before, &cores);
    test_device_open(nth, options, &one);
    test_device_open(nth, options, &two);
    const bool may = has_free_threads(&one), bound = one.device->bound;
    count_bound(&after, &cores);
    printf("%s: %s, %d threads more, now on %d cores\n", one.name, bound ? "bound" : "not bound",
           after - before, cores);
    assert_int_equal(two.device->bound, bound);
    assert_int_equal(bound, may && strcmp(want, "bound") == 0);
    if (bound) assert_int_equal(after - before, cores_of_this_process());
    if (bound) assert_int_equal(cores, cores_of_this_process());
    if (may && strcmp(want, "free") == 0) assert_int_equal(after, before);
    test_device_close(&two);
    test_device_close(&one);
}

/* "bound", "free" or "kept" (whatever the driver does), "one" core or "all", "option" or "-", parts */
static int be_a_claim(char **words)
{
    cpu_set_t mine;
    if (strcmp(words[1], "one") == 0) {
        if (sched_getaffinity(0, sizeof mine, &mine)) return 1;
        int core = 0;
        while (!CPU_ISSET(core, &mine))
            ++core;
        CPU_ZERO(&mine);
        CPU_SET(core, &mine);
        if (sched_setaffinity(0, sizeof mine, &mine)) return 1;
    }
    clv_bind_patience_s = 10;                     /* other tests may have the cores */
    const char *switched = getenv("CLEAVE_BIND"); /* test_isolate forgets what a user set */
    char kept[8];
    snprintf(kept, sizeof kept, "%s", switched ? switched : "");
    const size_t count = test_device_count();
    if (*kept) setenv("CLEAVE_BIND", kept, 1);
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .bind_threads = strcmp(words[2], "option") != 0,
                                          .sub_devices = (unsigned)atoi(words[3]) };
    const int cores = cores_of_this_process();
    for (size_t i = 0; i < count; ++i) {
        test_device look;
        test_device_open(i, NULL, &look);
        const bool here =
            strstr(look.name, "[pocl]") != NULL || look.facts->device_class == CLV_CLASS_CPU;
        test_device_close(&look);
        if (here) open_twice(i, &options, words[0]);
    }
    assert_int_equal(cores_of_this_process(), cores); /* the caller's thread is left alone */
    return 0;
}

/* ---- claims ---------------------------------------------------------------------------------------- */

static void run(const char *want, const char *where, const char *option, const char *parts,
                const char *change)
{
    if (cores_of_this_process() < 2) test_skip("one core only");
    const char *const argv[] = { "/proc/self/exe", want, where, option, parts, NULL };
    const char *const changes[] = { "CLEAVE_BIND", "POCL_AFFINITY", change, NULL };
    test_outcome outcome = test_run(argv, changes);
    printf("%s", outcome.out);
    if (outcome.code) fail_msg("code %d: %s%s", outcome.code, outcome.out, outcome.err);
    test_outcome_clear(&outcome);
}

static void free_threads_get_a_core_each(void **state)
{
    (void)state;
    run("bound", "all", "-", "0", NULL);
}

static void a_device_in_parts_is_left_alone(void **state)
{
    (void)state;
    run("free", "all", "-", "2", NULL);
}

static void a_process_with_fewer_cores_is_left_alone(void **state)
{
    (void)state;
    run("kept", "one", "-", "0", NULL);
}

static void the_option_and_the_variable_switch_it_off(void **state)
{
    (void)state;
    run("free", "all", "option", "0", NULL);
    run("free", "all", "-", "0", "CLEAVE_BIND=0");
}

static void what_the_user_bound_stays(void **state)
{
    (void)state;
    run("kept", "all", "-", "0", "POCL_AFFINITY=1");
}

static void a_caller_goes_to_its_core_and_stays_free(void **state)
{
    (void)state;
    cpu_set_t may, after;
    assert_int_equal(sched_getaffinity(0, sizeof may, &may), 0);
    if (CPU_COUNT(&may) < 2) test_skip("one core only");
    for (int i = 0; i < 40; ++i) {
        const int here = sched_getcpu();
        int core = 0;
        while (!CPU_ISSET(core, &may) || core == here)
            ++core;
        const clv_bind_stay stay = clv_bind_come(core);
        for (int k = 0; k < 10; ++k, clv_sleep(1e-4))
            assert_int_equal(sched_getcpu(), core);
        clv_bind_leave(&stay);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&may, &after));
    }
    const int none[] = { -1, CPU_SETSIZE - 1, CPU_SETSIZE };
    for (size_t i = 0; i < CLV_LEN(none); ++i) {
        const clv_bind_stay stay = clv_bind_come(none[i]);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&may, &after));
        clv_bind_leave(&stay);
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&may, &after));
}

int main(int argc, char **argv)
{
    if (argc == 5) return be_a_claim(argv + 1);
    test_isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_threads_get_a_core_each),
        cmocka_unit_test(a_device_in_parts_is_left_alone),
        cmocka_unit_test(a_process_with_fewer_cores_is_left_alone),
        cmocka_unit_test(the_option_and_the_variable_switch_it_off),
        cmocka_unit_test(what_the_user_bound_stays),
        cmocka_unit_test(a_caller_goes_to_its_core_and_stays_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
