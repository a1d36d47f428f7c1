/* SPDX-License-Identifier: Apache-2.0 */
/* Tests on every OpenCL device of the machine: a context for each, and arrays with guards. */
#ifndef CLEAVE_TESTS_DEVICE_H
#define CLEAVE_TESTS_DEVICE_H

#include "runtime/record/context.h"

#include <cleave/runtime.h>

/* A device with a context of its own: nothing is tuned, its cache directory is private. */
typedef struct test_device {
    clv_context *context;
    clv_device *device;
    clv_queue *queue;
    const char *name; /* its label */
    const clv_probe_device *facts;
    bool slow; /* a rasteriser on the CPU: keep cases small */
    bool tiny; /* an interpreter that checks every access: keep them tiny */
    char cache_dir[300];
    clv_probe_device disguise; /* see test_device_disguise */
} test_device;

/* Takes what belongs to the user out of the environment, and the caches of drivers into a private
 * place where the runner has not chosen one. Called by all that follow. */
void test_isolate(void);

/* A context that computes in plain C and keeps nothing from earlier runs. */
clv_context *test_plain_context(void);

/* Devices that can be used, duplicates included; each is printed once. $CLEAVE_TEST_PLATFORMS
 * ("pocl,mesa,intel": names as clv_vendor_name gives them) are promised: one that is missing fails
 * the test. Without any device the test is skipped. */
size_t test_device_count(void);

/* `options` (may be NULL) fill what the test does not choose itself. */
void test_device_open(size_t nth, const clv_context_options *options, test_device *device);
/* To be called at the beginning of main: all contexts of a device keep what they compile in one place. Some drivers
 * compile for seconds what every claim needs again. */
void test_share_compiled(void);
void test_device_close(test_device *device);

/* Calls `claim` with every device, opened without options. */
void test_each_device(void (*claim)(test_device *device));

/* A case that is not run where `when` holds says so with its reason, so that the log shows all that is
 * left out. Returns `when`; without a device (plain C) false. */
bool test_left_out(const test_device *device, bool when, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* The context's devices take themselves for something else from now on: the forms of a kernel that
 * another kind of hardware would get run here too. To be called before anything ran. */
void test_device_disguise(test_device *device, clv_device_class device_class);
/* Tells whether an earlier device is also this CPU, with another driver. Kernels of cards that take its compiler half a
 * minute need not run on both: no user's CPU is given them. */
bool test_device_is_another_driver(const test_device *device);
/* Calls `claim` with every device in that disguise; rasterisers are left out, which have the forms of
 * cards already, in the groups that they take, and for cards all drivers of a CPU but the first. */
void test_each_device_as(clv_device_class device_class, void (*claim)(test_device *device));
/* Treats the device as a card: it has memory of its own, so there are copies, staging and two chunks in flight. */
void test_device_as_card(test_device *device);

/* ---- memory of a device with a guard behind it; exact where every access is checked ------------ */

enum { TEST_GUARD_BYTES = 256 };

typedef struct test_array {
    clv_buffer *buffer;
    unsigned char *host; /* `bytes`, and what was read of the guard */
    void *own;           /* memory of an exact buffer, or NULL */
    size_t bytes, guard;
    test_device *device;
} test_array;

/* On the device every byte is 0xA5, on the host 0. */
test_array test_array_new(test_device *device, size_t bytes);
test_array test_array_from(test_device *device, const void *data, size_t bytes);
void test_array_read(test_array *array);                    /* checks the guard */
void test_array_write(test_array *array, const void *data); /* of all bytes */
void test_array_free(test_array *array);

/* ---- comparisons ----------------------------------------------------------------------------- */

/* Steps of float32 between two numbers; 0 for two NaNs, UINT32_MAX for one. */
uint32_t test_ulps(float a, float b);

/* Largest |got - want| / allowed of `count` numbers; fails with place and figures when it is more
 * than 1. A NaN wants a NaN. */
void test_expect_within(const char *what, const double *want, const float *got,
                        const double *allowed, size_t count);

#endif
