/* SPDX-License-Identifier: Apache-2.0 */
/* As many threads as cores that this process may use, not as the machine has.
 *
 * Spots were refined by sysconf(_SC_NPROCESSORS_ONLN) threads: on a large machine, in a job that a scheduler
 * had given two cores, dozens of threads shared these. The tokenizer knew affinity, but no quota, and Python's
 * counted every core of the machine. All ask clv_host_threads now, by the probe's report or themselves. */
#define _GNU_SOURCE
#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "probe/host/host.h"

#include <cleave/blob.h>
#include <cleave/tokenizer.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int started;

/* The one that every thread of the process comes from. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real, &found, sizeof real);
    atomic_fetch_add(&started, 1);
    return real(thread, attributes, body, argument);
}

/* Frames so full of spots that every core would have some to refine. */
enum { FRAMES = 16, SIDE = 128 };

static int threads_of_blobs(void)
{
    static unsigned short pixels[FRAMES * SIDE * SIDE];
    const clv_context_options plain = { .size = sizeof(clv_context_options),
                                        .mode = CLV_MODE_REFERENCE,
                                        .cache_dir = "" };
    const clv_blob_frames shape = { sizeof(clv_blob_frames), CLV_BLOB_U16, FRAMES, SIDE, SIDE };
    const clv_blob_options options = { .size = sizeof options,
                                       .min_sigma_px = 1,
                                       .max_sigma_px = 2,
                                       .num_sigma = 3,
                                       .threshold_given = true,
                                       .threshold = 1 };
    clv_context *context;
    clv_blob_stream *stream;
    for (size_t i = 0; i < CLV_LEN(pixels); ++i)
        pixels[i] = (unsigned short)(i % SIDE % 8 == 4 && i / SIDE % 8 == 4 ? 1000 : 10);
    EXPECT_OK(clv_context_create(&plain, &context));
    EXPECT_OK(clv_blobs_open(context, &shape, &options, &stream));
    const int before = atomic_load(&started);
    EXPECT_OK(clv_blobs_push(stream, pixels, FRAMES, NULL));
    const int count = atomic_load(&started) - before;
    assert_true(clv_blobs_summary(stream).spots > 1000);
    clv_blobs_close(stream);
    clv_context_free(context);
    return count;
}

static int threads_of_tokenizer(void)
{
    enum { TEXTS = 4000 };
    static const char *texts[TEXTS];
    char path[4096];
    clv_tokenizer *tokenizer;
    clv_token_rows rows = { 0 };
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n";
    snprintf(path, sizeof path, "%s/vocab.txt", test_temp_dir());
    EXPECT_OK(clv_file_write(path, words, sizeof words - 1));
    EXPECT_OK(clv_tokenizer_open(test_temp_dir(), NULL, &tokenizer));
    for (size_t i = 0; i < TEXTS; ++i)
        texts[i] = "word word word word word word word word word word word word word word word";
    const int before = atomic_load(&started);
    EXPECT_OK(clv_tokenize(tokenizer, texts, NULL, TEXTS, NULL, &rows));
    const int count = atomic_load(&started) - before;
    assert_int_equal(rows.rows, TEXTS);
    clv_token_rows_clear(&rows);
    clv_tokenizer_close(tokenizer);
    return count;
}

static void one_core_is_one_thread(void **state)
{
    cpu_set_t all, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) test_skip("one core only");
    assert_true(threads_of_blobs() > 0 && threads_of_tokenizer() > 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(clv_host_threads(""), 1);
    assert_int_equal(threads_of_tokenizer(), 0);
    assert_int_equal(threads_of_blobs(), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_core_is_one_thread) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
