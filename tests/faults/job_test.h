/* SPDX-License-Identifier: Apache-2.0 */
/* A small job with a known result, on PoCL under the fault layer. */
#ifndef CLEAVE_TESTS_JOB_TEST_H
#define CLEAVE_TESTS_JOB_TEST_H

#include "fault_layer.h"
#include "test.h"

#include "runtime/record/context.h"

#include <cleave/job.h>
#include <cleave/model.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { JOB_UNIT = 64 }; /* numbers in a unit */

typedef struct test_job {
    size_t units; /* 0: 600 */
    size_t min_chunk;
    bool no_reference;
    clv_progress *progress;
    /* afterwards */
    uint32_t *from, *to;        /* [units,JOB_UNIT] */
    unsigned char *commits;     /* [units] */
    atomic_size_t by_reference; /* units */
    atomic_size_t committed;    /* units, also before the end */
} test_job;

/* In main, before anything: chooses PoCL alone, loads the layer, takes the user's environment away.
 * Skips the test where there is no PoCL, or where the loader does not load the layer. */
void job_test_begin(void);

void job_test_faults(const char *faults);
fault_stats job_test_stats(void);
/* Kernels that are held end now; how many were. */
unsigned job_test_release(void);

/* The same by another thread, after some seconds. */
typedef struct job_releaser {
    pthread_t thread;
    double after_s;
    atomic_bool due; /* it is about to be done */
    unsigned held;
} job_releaser;
void job_test_release_later(job_releaser *releaser, double seconds);
/* After something that had to wait for a held kernel: it is due by now, and one was held. */
void job_test_expect_released(job_releaser *releaser);

/* Nothing kept on disk, nothing tuned, nothing qualified unless `options` says otherwise. */
clv_context *job_test_context(const clv_context_options *options);
/* Closes, and nothing of OpenCL is left. */
void job_test_close(clv_context *context);
/* PoCL in two parts, or skips the test. */
clv_context *job_test_two_parts(clv_schedule schedule);
/* Treats the devices as cards: memory of their own, copies, two chunks in flight. Call it before the first use. */
void job_test_as_cards(clv_context *context);

clv_status job_test_run(clv_context *context, test_job *job, clv_report *report);
/* Every unit was committed once, with the right numbers; frees the job's memory. */
void job_test_expect_right(test_job *job);
void job_test_free(test_job *job);
/* Run and right. */
void job_test_expect_ok(clv_context *context);

/* Three texts, and how a small encoder for them is made; vectors of JOB_WIDTH numbers. */
enum { JOB_TEXTS = 3, JOB_TOKENS = 24, JOB_WIDTH = 32 };
extern const size_t job_test_offsets[JOB_TEXTS + 1];
extern const int32_t job_test_ids[JOB_TOKENS];
clv_model *job_test_model(size_t layers);
clv_status job_test_encode(clv_context *context, const clv_model *model, float *out);

#endif
