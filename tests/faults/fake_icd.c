/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL driver for the tests: one GPU that answers questions and computes nothing. One of the
 * FAULT_... definitions makes it misbehave. */
#define _GNU_SOURCE
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#ifdef FAULT_CARD
#include "fake_card.h"
#endif

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef FAULT_HANG_UNKILLABLE
#include <sys/prctl.h>
#include <sys/ptrace.h>
#endif
#include <unistd.h>

enum {
    PLATFORMS =
#ifdef FAULT_65_PLATFORMS
        65
#else
        1
#endif
};

struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
};
struct _cl_device_id {
    const cl_icd_dispatch *dispatch;
};

static cl_icd_dispatch dispatch;
static struct _cl_platform_id platforms[PLATFORMS];
static struct _cl_device_id device = { &dispatch };

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name);

#ifdef FAULT_HANG_UNKILLABLE
/* Hangs under a debugger that never looks: what is killed then does not end for its parent, as if it
 * slept in the kernel for ever. The debugger is a process of another group that goes when the probe has. */
static void hang_unkillable(void)
{
    int ready[2];
    char byte;
    const pid_t self = getpid(), probe = getppid();
    if (pipe(ready)) abort();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* not every kernel asks for it */
    if (fork() == 0) {
        setsid();
        if (ptrace(PTRACE_SEIZE, self, NULL, NULL)) _exit(1);
        if (write(ready[1], "", 1) != 1) _exit(1);
        for (int i = 0; i < 3000 && kill(probe, 0) == 0; ++i) /* five minutes at most */
            usleep(100000);
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        printf("not allowed to trace\n");
        fflush(stdout);
    }
    for (;;)
        pause();
}
#endif

__attribute__((constructor)) static void load(void)
{
#if defined FAULT_CRASH_CONSTRUCTOR
    raise(SIGSEGV);
#elif defined FAULT_HANG_CONSTRUCTOR
    for (;;)
        pause();
#elif defined FAULT_HANG_DEAF /* ignores SIGTERM as well */
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
#elif defined FAULT_HANG_UNKILLABLE
    hang_unkillable();
#elif defined FAULT_BANNER
    printf("Welcome to the fake driver!\n");
    fprintf(stderr, "and its warning\n");
    fflush(stdout);
#elif defined FAULT_FLOOD    /* more than any buffer holds */
    static char line[4096];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 5000; ++i)
        if (write(1, line, sizeof line) < 0) break;
#elif defined FAULT_SCRIBBLE /* writes on descriptors that are not its own */
    for (int fd = 3; fd < 20; ++fd)
        if (write(fd, "garbage", 7) < 0) continue;
#elif defined FAULT_ORPHAN   /* leaves a process behind that holds the pipes */
    if (fork() == 0) {
        sleep(60);
        _exit(0);
    }
#endif
}

static cl_int answer(const void *value, size_t length, size_t bytes, void *out, size_t *actual)
{
    if (actual) *actual = length;
    if (!out) return CL_SUCCESS;
    if (bytes < length) return CL_INVALID_VALUE;
    memcpy(out, value, length);
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t bytes, void *out, size_t *actual)
{
#if defined FAULT_LONG_STRINGS /* 1 MiB, not UTF-8, no terminator */
    static char long_text[1 << 20];
    memset(long_text, 0xFE, sizeof long_text);
    memcpy(long_text, text, strlen(text));
    return answer(long_text, sizeof long_text, bytes, out, actual);
#elif defined FAULT_NO_TERMINATOR
    return answer(text, strlen(text), bytes, out, actual);
#elif defined FAULT_SIZE_ZERO
    return answer(text, 0, bytes, out, actual);
#else
    return answer(text, strlen(text) + 1, bytes, out, actual);
#endif
}

static cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info what,
                                            size_t bytes, void *out, size_t *length)
{
    (void)platform;
    switch (what) {
    case CL_PLATFORM_PROFILE:
        return answer_text("FULL_PROFILE", bytes, out, length);
    case CL_PLATFORM_VERSION:
        return answer_text("OpenCL 1.2 Fake", bytes, out, length);
    case CL_PLATFORM_NAME:
        return answer_text("Fake platform", bytes, out, length);
    case CL_PLATFORM_VENDOR:
        return answer_text("Fake vendor", bytes, out, length);
    case CL_PLATFORM_EXTENSIONS:
        return answer("cl_khr_icd", 11, bytes, out, length);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return answer("FAKE", 5, bytes, out, length);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type type,
                                         cl_uint count, cl_device_id *out, cl_uint *found)
{
    (void)platform, (void)type;
#if defined FAULT_ABORT_DEVICES
    abort();
#elif defined FAULT_EXIT_DEVICES
    _exit(0); /* quietly, as if all were well */
#elif defined FAULT_NO_DEVICES
    return CL_DEVICE_NOT_FOUND;
#elif defined FAULT_BAD_DEVICES
    return -9999;
#endif
    if (found) *found = 1;
    if (out && count) *out = &device;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info what, size_t bytes,
                                          void *out, size_t *length)
{
    const cl_device_type type = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT;
    const cl_ulong memory = 8000000000;
    const cl_uint units = 16;
    const cl_bool yes = CL_TRUE;
    (void)id;
#ifdef FAULT_FAILING_QUERIES
    if (what != CL_DEVICE_NAME && what != CL_DEVICE_TYPE) return CL_INVALID_VALUE;
#endif
#ifdef FAULT_SIZE_ZERO
    return answer(&yes, 0, bytes, out, length);
#endif
#ifdef FAULT_OVERRUN /* writes more than it was given room for, in small answers */
    if (out && bytes <= sizeof memory) memset(out, 0xEE, 64);
#endif
    switch (what) {
    case CL_DEVICE_NAME:
        return answer_text("Fake GPU", bytes, out, length);
    case CL_DEVICE_VENDOR:
        return answer_text("Fake vendor", bytes, out, length);
    case CL_DEVICE_VERSION:
        return answer_text("OpenCL 1.2 Fake", bytes, out, length);
    case CL_DRIVER_VERSION:
        return answer_text("1.0", bytes, out, length);
    case CL_DEVICE_PROFILE:
        return answer_text("FULL_PROFILE", bytes, out, length);
    case CL_DEVICE_TYPE:
        return answer(&type, sizeof type, bytes, out, length);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return answer(&memory, sizeof memory, bytes, out, length);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer(&units, sizeof units, bytes, out, length);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
        return answer(&yes, sizeof yes, bytes, out, length);
    default:
        return CL_INVALID_VALUE;
    }
}

/* Nothing is computed here: a clean refusal, unless the fault is to crash or hang at that point. */
static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user, cl_int *error)
{
    (void)properties, (void)count, (void)devices, (void)notify, (void)user;
#if defined FAULT_CRASH_CHECK
    fprintf(stderr, "error: no \033[1mlinker\033[0m\nlinking failed\n\n");
    abort();
#elif defined FAULT_HANG_CHECK
    for (;;)
        pause();
#endif
    if (error) *error = CL_OUT_OF_RESOURCES;
    return NULL;
}

static cl_int CL_API_CALL get_platform_ids(cl_uint count, cl_platform_id *out, cl_uint *found)
{
    dispatch.clGetPlatformInfo = get_platform_info;
    dispatch.clGetDeviceIDs = get_device_ids;
    dispatch.clGetDeviceInfo = get_device_info;
    dispatch.clCreateContext = create_context;
#ifdef FAULT_CARD
    fake_card(&dispatch);
#endif
    for (cl_uint i = 0; i < PLATFORMS; ++i) {
        platforms[i].dispatch = &dispatch;
        if (out && i < count) out[i] = &platforms[i];
    }
    if (found) *found = PLATFORMS;
    return CL_SUCCESS;
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
#ifdef FAULT_EXIT_LOADER
    _exit(3);
#endif
    cl_int CL_API_CALL (*list)(cl_uint, cl_platform_id *, cl_uint *) = get_platform_ids;
    cl_int CL_API_CALL (*info)(cl_platform_id, cl_platform_info, size_t, void *, size_t *) =
        get_platform_info;
    void *address = NULL;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) memcpy(&address, &list, sizeof address);
    if (strcmp(name, "clGetPlatformInfo") == 0) memcpy(&address, &info, sizeof address);
    return address;
}
