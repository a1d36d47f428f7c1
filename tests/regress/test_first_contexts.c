/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads may create the first contexts of a process at once. PoCL, which starts in the first call to it, then
 * ended the process by SIGSEGV: another thread was told of devices that were not ready yet. */
#include "test.h"

#include <cleave/runtime.h>

#include <pthread.h>

enum { THREADS = 8 };

static pthread_barrier_t together;

static void *create_one(void *created)
{
    clv_context *context;
    pthread_barrier_wait(&together);
    if (clv_context_create(NULL, &context)) return NULL;
    clv_context_free(context);
    return created;
}

static void threads_create_the_first_contexts(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (size_t i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&thread[i], NULL, create_one, &together), 0);
    for (size_t i = 0; i < THREADS; ++i) {
        void *created;
        assert_int_equal(pthread_join(thread[i], &created), 0);
        assert_non_null(created);
    }
    pthread_barrier_destroy(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_create_the_first_contexts) };
    return cmocka_run_group_tests_name("first_contexts", tests, NULL, NULL);
}
