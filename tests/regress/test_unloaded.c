/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that called the library may outlive it.
 *
 * What a thread ordered is given back at its end, by a function of the library: after dlclose, in a program that loads
 * it as a plugin, the end of the thread was signal 11. */
#include "test.h"

#include <cleave/offload.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static void *library;
static pthread_barrier_t both;

static void *order(void *unused)
{
    clv_side (*force)(clv_side);
    *(void **)&force = dlsym(library, "clv_offload_force");
    if (force) force(CLV_SIDE_HOST);
    pthread_barrier_wait(&both); /* it has ordered */
    pthread_barrier_wait(&both); /* the library is gone */
    return force ? &both : unused;
}

static void threads_outlive_the_library(void **state)
{
    (void)state;
    const char *path = getenv("CLEAVE_TEST_LIBRARY");
    pthread_t thread;
    void *ordered = NULL;
    assert_non_null(path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    pthread_barrier_init(&both, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, order, NULL), 0);
    pthread_barrier_wait(&both);
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    pthread_barrier_wait(&both);
    pthread_join(thread, &ordered);
    assert_non_null(ordered);
    pthread_barrier_destroy(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_outlive_the_library) };
    return cmocka_run_group_tests_name("unloaded", tests, NULL, NULL);
}
