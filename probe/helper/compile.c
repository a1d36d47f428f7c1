/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper "compile", which compiles programs from a list that several helpers work through together. */
#define _GNU_SOURCE
#include "probe/helper/compile.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "probe/helper/spawn.h"
#include "probe/opencl/rig.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MOST_BYTES = 256 << 20
}; /* most bytes of a list, of a binary, and of the zeros passed to a kernel */

typedef struct shop {
    clv_rig rig;
    const char *folder;
    const clv_json *programs;
    bool launch, binaries;
    size_t zeros; /* size of a buffer of zeros, in bytes */
} shop;

/* ---- a launch that only compiles ------------------------------------------------------------- */

/* Sets one kernel argument as described by a word such as "b", "v4" or "l256". */
static bool set_argument(const shop *s, cl_kernel kernel, cl_uint index, const char *word,
                         cl_mem zeros)
{
    static const unsigned char nothing[64];
    uint64_t bytes = 0;
    if (*word == 'b') return clSetKernelArg(kernel, index, sizeof zeros, &zeros) == CL_SUCCESS;
    if (!clv_parse_u64(word + 1, &bytes) || bytes > s->zeros) return false;
    if (*word == 'l') return clSetKernelArg(kernel, index, bytes, NULL) == CL_SUCCESS;
    return bytes <= sizeof nothing && clSetKernelArg(kernel, index, bytes, nothing) == CL_SUCCESS;
}

static bool set_arguments(const shop *s, cl_kernel kernel, const char *args, cl_mem zeros)
{
    char word[24];
    cl_uint index = 0;
    for (const char *at = args; *at; ++index) {
        const size_t length = strcspn(at, " ");
        if (length >= sizeof word) return false;
        memcpy(word, at, length);
        word[length] = '\0';
        if (!set_argument(s, kernel, index, word, zeros)) return false;
        at += length + strspn(at + length, " ");
    }
    return true;
}

static bool launch_on_zeros(shop *s, cl_kernel kernel, const clv_json *k, cl_mem zeros)
{
    const clv_json *sizes = clv_json_get(k, "local");
    const size_t dimensions = clv_json_count(sizes);
    size_t local[3] = { 1, 1, 1 };
    cl_event event = NULL;
    cl_int ended = CL_QUEUED;
    if (!dimensions || dimensions > CLV_LEN(local)) return false;
    for (size_t i = 0; i < dimensions; ++i)
        local[i] = (size_t)clv_json_int(clv_json_at(sizes, i), 1);
    if (!set_arguments(s, kernel, clv_json_string(clv_json_get(k, "args"), ""), zeros) ||
        clEnqueueNDRangeKernel(s->rig.queue, kernel, (cl_uint)dimensions, NULL, local, local, 0,
                               NULL, &event) != CL_SUCCESS)
        return false;
    const bool good = clWaitForEvents(1, &event) == CL_SUCCESS &&
                      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended,
                                     NULL) == CL_SUCCESS &&
                      ended == CL_COMPLETE;
    clReleaseEvent(event);
    return good;
}

/* Compiles a kernel by launching it on new buffers of zeros. Only pages that the kernel touches use memory. */
static bool compile_kernel(shop *s, const clv_json *k)
{
    cl_int code;
    void *memory = mmap(NULL, s->zeros, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    cl_mem zeros = clCreateBuffer(s->rig.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, s->zeros,
                                  memory, &code);
    cl_kernel kernel =
        clCreateKernel(s->rig.program, clv_json_string(clv_json_get(k, "name"), ""), &code);
    const bool good = zeros && kernel && launch_on_zeros(s, kernel, k, zeros);
    if (kernel) clReleaseKernel(kernel);
    if (zeros) clReleaseMemObject(zeros);
    munmap(memory, s->zeros);
    return good;
}

/* ---- a program ------------------------------------------------------------------------------- */

static bool write_binary(const shop *s, size_t index)
{
    char path[PATH_MAX];
    size_t length = 0;
    if (clGetProgramInfo(s->rig.program, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, NULL) !=
            CL_SUCCESS ||
        !length || length > MOST_BYTES)
        return false;
    unsigned char *binary = clv_alloc(length, 1);
    snprintf(path, sizeof path, "%s/%zu.bin", s->folder, index);
    const bool good = binary &&
                      clGetProgramInfo(s->rig.program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                                       NULL) == CL_SUCCESS &&
                      !clv_file_write_private(path, binary, length);
    clv_free(binary);
    return good;
}

static bool compile(shop *s, size_t index)
{
    cl_int code;
    const clv_json *p = clv_json_at(s->programs, index), *kernels = clv_json_get(p, "kernels");
    const char *source = clv_json_string(clv_json_get(p, "source"), "");
    if (s->rig.program) clReleaseProgram(s->rig.program);
    s->rig.program = clCreateProgramWithSource(s->rig.context, 1, &source, NULL, &code);
    if (!s->rig.program ||
        clBuildProgram(s->rig.program, 1, &s->rig.device,
                       clv_json_string(clv_json_get(p, "options"), ""), NULL, NULL) != CL_SUCCESS)
        return false;
    bool good = true;
    for (size_t i = 0; s->launch && i < clv_json_count(kernels); ++i)
        good = compile_kernel(s, clv_json_at(kernels, i)) && good;
    return good && (!s->binaries || write_binary(s, index));
}

/* ---- the list -------------------------------------------------------------------------------- */

static clv_json *read_list(const char *folder)
{
    char path[PATH_MAX], *text = NULL;
    size_t length;
    clv_json *list = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, CLV_COMPILE_LIST);
    if (clv_file_read_plain(path, MOST_BYTES, &text, &length)) return NULL;
    if (clv_json_parse("list", text, length, &list)) list = NULL;
    clv_free(text);
    return list;
}

/* Maps the counter that all helpers share; returns NULL if it does not exist. */
static atomic_uint *map_next(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, CLV_COMPILE_NEXT);
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return NULL;
    void *memory = mmap(NULL, sizeof(atomic_uint), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static void tell(size_t index, double seconds)
{
    char line[64];
    const int length = snprintf(line, sizeof line, "%zu %.4f\n", index, seconds);
    if (write(CLV_CHILD_RESULT_FD, line, (size_t)length) != length) _exit(1);
}

void clv_compile_main(const clv_probe_device *device, const char *folder)
{
    clv_json *list = read_list(folder);
    atomic_uint *next = map_next(folder);
    shop s = { .folder = folder,
               .programs = clv_json_get(list, "programs"),
               .launch = clv_json_bool(clv_json_get(list, "launch"), false),
               .binaries = clv_json_bool(clv_json_get(list, "binaries"), false),
               .zeros = MOST_BYTES };
    if (device->max_alloc_bytes != CLV_UNKNOWN)
        s.zeros = (size_t)CLV_MIN((uint64_t)s.zeros, device->max_alloc_bytes);
    if (!list || !next || clv_rig_open(&s.rig, device)) _exit(1);
    const size_t count = clv_json_count(s.programs);
    for (size_t i; (i = atomic_fetch_add(next, 1)) < count;) {
        const double started = clv_now();
        if (compile(&s, i)) tell(i, clv_now() - started);
    }
    _exit(0);
}
