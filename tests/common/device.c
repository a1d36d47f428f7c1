/* SPDX-License-Identifier: Apache-2.0 */
/* Runs tests on every OpenCL device of the machine, each in a context of its own, and makes device arrays with guard
 * bytes. */
#include "device.h"

#include "test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "runtime/device/pool.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEVICES = 32, POISON = 0xA5 };

static size_t usable[MOST_DEVICES], usable_count;

void test_isolate(void)
{
    static const char *const user[] = { "CLEAVE_DEVICE",   "CLEAVE_MODE",   "CLEAVE_SCHED",
                                        "CLEAVE_TRACE",    "CLEAVE_CL_DIR", "CLEAVE_MEM_LIMIT",
                                        "CLEAVE_TUNE",     "CLEAVE_CACHE",  "CLEAVE_BIND",
                                        "CLEAVE_COMPILERS" };
    static const char *const drivers[] = { "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR" };
    static bool done;
    char path[300];
    if (done) return;
    done = true;
    for (size_t i = 0; i < CLV_LEN(user); ++i)
        unsetenv(user[i]);
    const char *kernels = getenv("CLEAVE_TEST_CL_DIR"); /* damaged ones: tests/kernels/damage.py */
    if (kernels) setenv("CLEAVE_CL_DIR", kernels, 1);
    for (size_t i = 0; i < CLV_LEN(drivers); ++i) {
        snprintf(path, sizeof path, "%s/%s", test_temp_dir(), drivers[i]);
        if (getenv(drivers[i])) continue;
        EXPECT_OK(clv_dir_make(path));
        setenv(drivers[i], path, 1);
    }
    snprintf(path, sizeof path, "%s/cleave", test_temp_dir());
    setenv("CLEAVE_CACHE_DIR", path, 1);
}

clv_context *test_plain_context(void)
{
    const clv_context_options options = { .size = sizeof(clv_context_options),
                                          .mode = CLV_MODE_REFERENCE,
                                          .cache_dir = "" };
    clv_context *context;
    test_isolate();
    EXPECT_OK(clv_context_create(&options, &context));
    return context;
}

static bool is_here(const clv_probe_report *report, const char *vendor, size_t length)
{
    for (size_t i = 0; i < usable_count; ++i) {
        const clv_probe_device *d = &report->devices[usable[i]];
        const char *name = clv_vendor_name(report->platforms[d->platform].vendor_norm);
        if (strlen(name) == length && memcmp(name, vendor, length) == 0) return true;
    }
    return false;
}

/* Ends the program with a failure if a platform of $CLEAVE_TEST_PLATFORMS is missing: if it were skipped, the tests
 * would silently not cover it. */
static void check_promises(const clv_probe_report *report)
{
    const char *at = getenv("CLEAVE_TEST_PLATFORMS");
    while (at && *at) {
        const size_t length = strcspn(at, ",");
        if (!is_here(report, at, length)) {
            printf("CLEAVE_TEST_PLATFORMS promises %.*s, which is not here\n", (int)length, at);
            exit(1);
        }
        at += length + (at[length] == ',');
    }
}

size_t test_device_count(void)
{
    static bool looked;
    if (looked) return usable_count;
    looked = true;
    test_isolate();
    clv_probe_report *report;
    EXPECT_OK(clv_probe_run(
        &(clv_probe_options){ .size = sizeof(clv_probe_options), .forget = true }, &report));
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *d = &report->devices[i];
        printf("device %zu: %s [%s, %s]%s%s%s\n", i, d->name,
               clv_vendor_name(report->platforms[d->platform].vendor_norm),
               clv_device_class_name(d->device_class), d->duplicate_of == SIZE_MAX ? "" : " again",
               d->usable ? "" : ", not used: ", d->usable ? "" : d->unusable_reason);
        if (d->usable && usable_count < MOST_DEVICES) usable[usable_count++] = i;
    }
    fflush(stdout);
    check_promises(report);
    clv_probe_free(report);
    if (!usable_count) test_skip_all("no OpenCL device");
    return usable_count;
}

/* Contexts and queues that are open, so that those left by a failed claim can be closed before main returns. A function
 * given to atexit would run too late: by then, drivers have lost their thread-local data (oclgrind: the stack of its
 * calls), and their compilers have lost their global data (PoCL's compiler, when it is asked for a binary). */
static struct open_device {
    clv_context *context;
    clv_queue *queue;
} open_devices[MOST_DEVICES];

static void close_what_is_left(void)
{
    for (size_t i = 0; i < MOST_DEVICES; ++i) {
        clv_queue_free(open_devices[i].queue);
        clv_context_free(open_devices[i].context);
        open_devices[i] = (struct open_device){ NULL, NULL };
    }
}

static void remember(const test_device *device)
{
    test_at_end(close_what_is_left);
    size_t i = 0;
    while (i < MOST_DEVICES && open_devices[i].context)
        ++i;
    if (i < MOST_DEVICES) open_devices[i] = (struct open_device){ device->context, device->queue };
}

static void forget(const test_device *device)
{
    for (size_t i = 0; i < MOST_DEVICES; ++i)
        if (open_devices[i].context == device->context)
            open_devices[i] = (struct open_device){ NULL, NULL };
}

/* Links the compiled programs (*.clb) of the folder `from` into the folder `to`. The name of such a file identifies its
 * contents. If a link cannot be made, the program is compiled again. */
static void link_programs(const char *from, const char *to)
{
    char old[700], new[700];
    DIR *folder = opendir(from);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        if (!strstr(e->d_name, ".clb")) continue;
        snprintf(old, sizeof old, "%s/%s", from, e->d_name);
        snprintf(new, sizeof new, "%s/%s", to, e->d_name);
        if (link(old, new) != 0 && errno != EEXIST) break;
    }
    if (folder) closedir(folder);
}

static void share_programs(const test_device *device, bool bring)
{
    const char *shared = getenv("CLEAVE_TEST_PROGRAMS");
    char own[320];
    if (!shared || !*device->cache_dir) return;
    snprintf(own, sizeof own, "%s/programs", device->cache_dir);
    if (!bring) {
        link_programs(own, shared);
        return;
    }
    EXPECT_OK(clv_dir_make_private(device->cache_dir));
    EXPECT_OK(clv_dir_make_private(own));
    link_programs(shared, own);
}

static bool share_compiled;

void test_share_compiled(void)
{
    share_compiled = true;
}

void test_device_open(size_t nth, const clv_context_options *options, test_device *device)
{
    static unsigned contexts;
    assert_true(nth < test_device_count());
    char index[32];
    clv_context_options o = { .size = sizeof(clv_context_options) };
    if (options) o = *options;
    *device = (test_device){ 0 };
    snprintf(index, sizeof index, "%zu", usable[nth]);
    snprintf(device->cache_dir, sizeof device->cache_dir, "%s/context-%u", test_temp_dir(),
             contexts++);
    o.devices = index;
    o.no_tuning = true;
    o.no_qualification = true; /* qualification has its own tests */
    if (share_compiled)
        snprintf(device->cache_dir, sizeof device->cache_dir, "%s/device-%zu", test_temp_dir(),
                 nth);
    if (o.cache_dir) snprintf(device->cache_dir, sizeof device->cache_dir, "%s", o.cache_dir);
    share_programs(device, true);
    o.cache_dir = device->cache_dir;
    EXPECT_OK(clv_context_create(&o, &device->context));
    device->device = clv_context_device(device->context, 0);
    device->name = clv_device_label(device->device);
    device->facts = clv_device_facts(device->device);
    device->slow = device->facts->device_class == CLV_CLASS_SOFTWARE;
    device->tiny = strstr(device->facts->name, "Oclgrind") != NULL;
    EXPECT_OK(clv_queue_create(device->device, &device->queue));
    remember(device);
}

void test_device_close(test_device *device)
{
    forget(device);
    for (size_t i = 0; i < device->context->device_count; ++i)
        if (device->context->devices[i].again)
            fail_msg("%s: %u programs need functions that cl/common/builtins.clh does not declare",
                     device->name, device->context->devices[i].again);
    clv_queue_free(device->queue);
    clv_context_free(device->context);
    share_programs(device, false);
    *device = (test_device){ 0 };
}

void test_each_device(void (*claim)(test_device *device))
{
    for (size_t i = 0; i < test_device_count(); ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        claim(&device);
        test_device_close(&device);
    }
}

bool test_left_out(const test_device *device, bool when, const char *reason, ...)
{
    if (!device || !when) return false;
    va_list args;
    va_start(args, reason);
    printf("left out on %s: ", device->name);
    vprintf(reason, args);
    printf("\n");
    va_end(args);
    return true;
}

bool test_device_is_another_driver(const test_device *device)
{
    const clv_probe_device *all = device->context->probe->devices;
    const size_t own = (size_t)(device->facts - all);
    if (all[own].device_class != CLV_CLASS_CPU) return false;
    for (size_t i = 0; i < usable_count && usable[i] < own; ++i)
        if (all[usable[i]].device_class == CLV_CLASS_CPU) return true;
    return false;
}

void test_device_disguise(test_device *device, clv_device_class device_class)
{
    device->disguise = *device->device->facts;
    device->disguise.device_class = device_class;
    if (device->slow) device->disguise.max_work_group = 32; /* the largest that works */
    for (size_t i = 0; i < device->context->device_count; ++i)
        device->context->devices[i].facts = &device->disguise;
}

void test_each_device_as(clv_device_class device_class, void (*claim)(test_device *device))
{
    for (size_t i = 0; i < test_device_count(); ++i) {
        test_device device;
        test_device_open(i, NULL, &device);
        test_device_disguise(&device, device_class);
        if (!test_left_out(&device, device.slow, "the forms of cards: has them as its own") &&
            !test_left_out(&device,
                           device_class != CLV_CLASS_CPU && test_device_is_another_driver(&device),
                           "the forms of cards: another driver of this CPU has them"))
            claim(&device);
        test_device_close(&device);
    }
}

void test_device_as_card(test_device *device)
{
    test_device_disguise(device, CLV_CLASS_DISCRETE_GPU);
    for (size_t i = 0; i < device->context->device_count; ++i) {
        clv_device *d = &device->context->devices[i];
        d->zero_copy = false;
        d->depth = 2;
        d->nap = true;
    }
}

void test_device_watches_arrays(test_device *device)
{
    if (device->tiny) device->device->zero_copy = false;
}

/* ---- arrays ---- */

/* On a device that checks every access, the buffer ends at the array's last byte: with a guard or the pool's rounding
 * behind it, reads beyond the array would go unnoticed. */
static test_array make_array(test_device *device, size_t bytes)
{
    const bool exact = device->tiny && device->device->zero_copy && bytes;
    test_array array = { .bytes = bytes,
                         .guard = exact ? 0 : TEST_GUARD_BYTES,
                         .device = device,
                         .host = clv_zalloc(bytes + TEST_GUARD_BYTES, 1) };
    assert_non_null(array.host);
    if (exact) {
        array.own = clv_alloc(bytes, 1);
        assert_non_null(array.own);
        EXPECT_OK(clv_buffer_wrap(device->device, array.own, bytes, &array.buffer));
        return array;
    }
    EXPECT_OK(
        clv_buffer_create(device->device, bytes + array.guard, CLV_BUFFER_DEVICE, &array.buffer));
    return array;
}

test_array test_array_new(test_device *device, size_t bytes)
{
    test_array array = make_array(device, bytes);
    memset(array.host, POISON, bytes + array.guard);
    EXPECT_OK(clv_write(device->queue, array.buffer, 0, array.host, bytes + array.guard));
    memset(array.host, 0, bytes + array.guard);
    return array;
}

test_array test_array_from(test_device *device, const void *data, size_t bytes)
{
    test_array array = test_array_new(device, bytes);
    test_array_write(&array, data);
    return array;
}

void test_array_read(test_array *array)
{
    EXPECT_OK(
        clv_read(array->device->queue, array->buffer, 0, array->host, array->bytes + array->guard));
    for (size_t i = array->bytes; i < array->bytes + array->guard; ++i)
        if (array->host[i] != POISON)
            fail_msg("byte %zu behind an array of %zu was written", i - array->bytes, array->bytes);
}

void test_array_write(test_array *array, const void *data)
{
    memcpy(array->host, data, array->bytes);
    EXPECT_OK(clv_write(array->device->queue, array->buffer, 0, array->host, array->bytes));
}

void test_array_free(test_array *array)
{
    if (array->buffer) clv_buffer_wait(array->buffer); /* commands may still use array->own */
    clv_buffer_free(array->buffer);
    clv_free(array->host);
    clv_free(array->own);
    *array = (test_array){ 0 };
}

/* ---- comparisons ---- */

uint32_t test_ulps(float a, float b)
{
    int32_t i, j;
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : UINT32_MAX;
    memcpy(&i, &a, sizeof i), memcpy(&j, &b, sizeof j);
    const int64_t x = i < 0 ? (int64_t)INT32_MIN - i : i, y = j < 0 ? (int64_t)INT32_MIN - j : j;
    return (uint32_t)(x > y ? x - y : y - x);
}

void test_expect_within(const char *what, const double *want, const float *got,
                        const double *allowed, size_t count)
{
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
        if (want[i] == got[i] || (isnan(want[i]) && isnan(got[i]))) continue;
        const double ratio = fabs(got[i] - want[i]) / allowed[i];
        if (isnan(ratio) || ratio > worst) worst = ratio, at = i;
        if (isnan(worst)) break;
    }
    if (!(worst <= 1))
        fail_msg("%s: element %zu is %.9g, expected %.9g within %.3g", what, at, (double)got[at],
                 want[at], allowed[at]);
}
