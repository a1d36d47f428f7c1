/* SPDX-License-Identifier: Apache-2.0 */
/* Runs tests on every OpenCL device of the machine, each in a context of its own, and makes device arrays with guard
 * bytes. */
#ifndef CLEAVE_TESTS_DEVICE_H
#define CLEAVE_TESTS_DEVICE_H

#include "runtime/record/context.h"

#include <cleave/runtime.h>

/* A device with a context of its own, which has a private cache directory and does no tuning. */
typedef struct test_device {
    clv_context *context;
    clv_device *device;
    clv_queue *queue;
    const char *name; /* label of the device */
    const clv_probe_device *facts;
    bool slow; /* the device is a rasteriser on the CPU: keep test cases small */
    bool tiny; /* the device is an interpreter that checks every access: keep test cases tiny */
    char cache_dir[300];
    clv_probe_device disguise; /* see test_device_disguise */
} test_device;

/* Removes the user's CLEAVE_... variables from the environment, and moves the drivers' caches to a private folder
 * unless the test runner has set their variables. test_plain_context and test_device_count call it. */
void test_isolate(void);

/* Creates a context that computes in plain C and has no disk cache. */
clv_context *test_plain_context(void);

/* Returns the number of usable devices, duplicates included; the first call prints all devices. $CLEAVE_TEST_PLATFORMS
 * lists platforms that must be present ("pocl,mesa,intel": names of clv_vendor_name): if one of them is missing, the
 * program fails. If there is no device at all, the program is skipped. */
size_t test_device_count(void);

/* Opens the usable device number `nth`. `options` (may be NULL) are those of its context, except for the device, tuning
 * and qualification, which are set here. */
void test_device_open(size_t nth, const clv_context_options *options, test_device *device);
/* Lets all contexts of a device share one cache directory for compiled programs. Call it at the beginning of main of a
 * test whose claims use the same programs, since some drivers take seconds to compile them. */
void test_share_compiled(void);
void test_device_close(test_device *device);

/* Calls `claim` with every usable device, opened without options. */
void test_each_device(void (*claim)(test_device *device));

/* Returns `when`, and if it is true, prints that a case is left out on the device and the reason, so that the log shows
 * all cases that are not run. If `device` is NULL (plain C), returns false and prints nothing. */
bool test_left_out(const test_device *device, bool when, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes the library treat the context's devices as hardware of another class, so that the forms of a kernel for that
 * class run on this machine too. Call it before anything runs on the device. */
void test_device_disguise(test_device *device, clv_device_class device_class);
/* Returns whether the device is a CPU for which an earlier device is another driver. Kernels for graphics cards, which
 * a CPU's driver may compile for half a minute, need to run on only one of these devices: the library never runs them
 * on a user's CPU. */
bool test_device_is_another_driver(const test_device *device);
/* Calls `claim` with every device, which the library treats as one of `device_class` (test_device_disguise). It leaves
 * out rasterisers, which get the kernel forms of graphics cards anyway, and, if the class is not CLV_CLASS_CPU, all
 * drivers of a CPU but the first. */
void test_each_device_as(clv_device_class device_class, void (*claim)(test_device *device));
/* Makes the library treat the device as a discrete GPU with memory of its own, so that it uses copies, staging buffers
 * and two chunks in flight. */
void test_device_as_card(test_device *device);
/* Makes the library copy arrays to and from a device that checks every access, as if it did not share the host's
 * memory. Such a device does not see what the host writes into shared memory, and reports it as never written. */
void test_device_watches_arrays(test_device *device);

/* ---- memory of a device, followed by a guard unless the device checks every access ------------- */

enum { TEST_GUARD_BYTES = 256 };

typedef struct test_array {
    clv_buffer *buffer;
    unsigned char *host; /* `bytes` bytes of data, then the guard as read from the device */
    void *own;           /* memory of a buffer without a guard, or NULL */
    size_t bytes, guard;
    test_device *device;
} test_array;

/* Makes an array whose bytes are all 0xA5 on the device and 0 in `host`. */
test_array test_array_new(test_device *device, size_t bytes);
test_array test_array_from(test_device *device, const void *data, size_t bytes);
void test_array_read(test_array *array);                    /* to `host`; checks the guard */
void test_array_write(test_array *array, const void *data); /* writes all bytes */
void test_array_free(test_array *array);

/* ---- comparisons ----------------------------------------------------------------------------- */

/* Returns the number of float32 steps between two numbers: 0 if both are NaN, UINT32_MAX if one is. */
uint32_t test_ulps(float a, float b);

/* Fails the test, with the index and the numbers of the worst element, if |got - want| exceeds `allowed` for any of
 * `count` elements. Where `want` is NaN, `got` must be NaN. */
void test_expect_within(const char *what, const double *want, const float *got,
                        const double *allowed, size_t count);

#endif
