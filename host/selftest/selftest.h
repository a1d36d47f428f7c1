/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the checks of one device. A workload adds its own checks as one file with one function, and one row in
 * the table in selftest.c. */
#ifndef CLEAVE_HOST_SELFTEST_SELFTEST_H
#define CLEAVE_HOST_SELFTEST_SELFTEST_H

#include <cleave/model.h>
#include <cleave/runtime.h>

#include <stdio.h>

/* The device under test, in a process of its own. */
typedef struct selftest {
    clv_context *context; /* of this device alone */
    clv_device *device;
    clv_context_options options; /* options of `context`, to create others like it */
    FILE *out;
    double began;
} selftest;

/* Begins a check: begin, work, end. If the process ends before selftest_end, the check is reported as failed. */
void selftest_begin(selftest *test, const char *format, ...) CLV_PRINTF(2, 3);
/* Ends a check. It passes if `status` is CLV_OK and error <= limit (0: exact). NaN fails. */
void selftest_end(selftest *test, clv_status status, double error, double limit);
/* Adds another verdict on the results of the check that has just passed. */
void selftest_also(selftest *test, double error, double limit, const char *format, ...)
    CLV_PRINTF(4, 5);
/* Ends a check that cannot be judged here without counting it as a failure, and says why. */
void selftest_skip(selftest *test, const char *why);

/* The configuration of the small encoder that is run and trained. */
extern const clv_model_config selftest_encoder;

void selftest_runtime(selftest *test);
void selftest_paco(selftest *test);
void selftest_specfit(selftest *test);
void selftest_blobs(selftest *test);
void selftest_training(selftest *test);
void selftest_transformer(selftest *test);
void selftest_arrays(selftest *test);
void selftest_generate(selftest *test);
void selftest_search(selftest *test);

#endif
