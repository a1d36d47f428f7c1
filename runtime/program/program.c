/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs of one device: built once, kept in memory, remembered on disk. */
#include "runtime/program/program.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "runtime/program/cache.h"
#include "runtime/program/source.h"
#include "runtime/record/cl_status.h"
#include "runtime/record/device.h"

#include <cleave/version.h>

#include <string.h>

static clv_status write_options(const clv_device *device, const clv_define *defines,
                                clv_text *options)
{
    clv_text_add(options, "-cl-std=CL1.2%s", device->slow_fma ? " -DCLV_SLOW_FMA" : "");
    for (int i = 0; i < CLV_MAX_DEFINES && defines[i].name; ++i)
        clv_text_add(options, " -D%s=%ld", defines[i].name, defines[i].value);
    return options->failed ? clv_fail(CLV_E_MEMORY, "no memory for build options") : CLV_OK;
}

static clv_program *find(clv_device *device, const clv_cl_source *source, const char *options)
{
    for (clv_program *p = device->programs; p; p = p->next)
        if (p->source == source && strcmp(p->options, options) == 0) return p;
    return NULL;
}

/* Everything the machine code depends on. */
static clv_status write_key(const clv_device *device, const clv_text *text, const char *options,
                            clv_text *key)
{
    char hex[65];
    const clv_digest digest = clv_sha256(text->data, text->length);
    clv_digest_hex(&digest, hex);
    clv_text_add(key, "cleave %s\nsource %s\noptions %s\ndevice %s\n", clv_version(), hex, options,
                 device->identity);
    return key->failed ? clv_fail(CLV_E_MEMORY, "no memory for a cache key") : CLV_OK;
}

static char *build_log(const clv_device *device, cl_program program)
{
    size_t bytes = 0;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) !=
            CL_SUCCESS ||
        bytes < 2 || bytes > (size_t)16 << 20)
        return NULL;
    char *text = clv_zalloc(bytes + 1, 1);
    if (text && clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, text,
                                      NULL) != CL_SUCCESS) {
        clv_free(text);
        return NULL;
    }
    return text;
}

static cl_program from_disk(clv_device *device, const char *key, const char *options)
{
    void *binary;
    size_t length;
    const clv_cache *cache = device->cache;
    if (!clv_cache_load(cache, key, &binary, &length)) return NULL;
    const unsigned char *bytes = binary;
    cl_int code, binary_code = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithBinary(device->cl, 1, &device->id, &length, &bytes, &binary_code, &code);
    clv_free(binary);
    if (code == CL_SUCCESS && binary_code == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program && code == CL_SUCCESS) clReleaseProgram(program);
    clv_log(CLV_LOG_INFO, "%s: the driver refused a kept binary; building from source",
            device->label);
    clv_cache_drop(cache, key);
    return NULL;
}

static clv_status from_source(clv_device *device, const clv_cl_source *source, const clv_text *text,
                              const char *options, cl_program *out)
{
    cl_int code;
    const char *string = text->data;
    cl_program program = clCreateProgramWithSource(device->cl, 1, &string, &text->length, &code);
    if (code != CL_SUCCESS)
        return clv_cl_fail(device, "clCreateProgramWithSource", source->name, code);
    atomic_store(&device->compiling, true);
    code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    atomic_store(&device->compiling, false);
    char *log = build_log(device, program);
    if (code != CL_SUCCESS) {
        const clv_status status =
            clv_cl_is_memory(code)
                ? clv_cl_fail(device, "clBuildProgram", source->name, code)
                : clv_fail_detail(CLV_E_BUILD, log, "%s: %s does not build with \"%s\" (%d)",
                                  device->label, source->name, options, (int)code);
        clReleaseProgram(program);
        clv_free(log);
        return status;
    }
    if (log) clv_log(CLV_LOG_DEBUG, "%s: build log of %s: %s", device->label, source->name, log);
    clv_free(log);
    *out = program;
    return CLV_OK;
}

static void destroy(clv_program *p)
{
    if (p->program) clReleaseProgram(p->program);
    clv_free(p->options);
    clv_free(p->key);
    clv_free(p);
}

static clv_status build(clv_device *device, const clv_cl_source *source, clv_text *options,
                        clv_program **out)
{
    clv_text text = { 0 }, key = { 0 };
    clv_program *p = clv_zalloc(1, sizeof *p);
    clv_status status = p ? clv_source_resolve(source, &text)
                          : clv_fail(CLV_E_MEMORY, "%s: no memory", source->name);
    const double started = clv_now();
    if (!status) status = write_key(device, &text, options->data, &key);
    if (!status) {
        p->source = source;
        p->program = from_disk(device, key.data, options->data);
        p->from_disk = p->program != NULL;
        if (!p->program) status = from_source(device, source, &text, options->data, &p->program);
    }
    if (!status) {
        p->build_s = clv_now() - started;
        p->options = options->data, *options = (clv_text){ 0 };
        p->key = key.data, key = (clv_text){ 0 };
        clv_log(CLV_LOG_DEBUG, "%s: %s %s in %.1f ms [%s]", device->label, source->name,
                p->from_disk ? "loaded" : "built", p->build_s * 1e3, p->options);
        *out = p;
        p = NULL;
    }
    if (p) destroy(p);
    clv_text_clear(&text);
    clv_text_clear(&key);
    return status;
}

clv_status clv_program_get(clv_device *device, const clv_cl_source *source,
                           const clv_define *defines, clv_program **program)
{
    clv_text options = { 0 };
    *program = NULL;
    clv_status status = write_options(device, defines, &options);
    if (!status) {
        pthread_mutex_lock(&device->program_lock);
        clv_program *p = find(device, source, options.data);
        if (!p && !(status = build(device, source, &options, &p))) {
            p->next = device->programs;
            device->programs = p;
        }
        *program = p;
        pthread_mutex_unlock(&device->program_lock);
    }
    clv_text_clear(&options);
    return status;
}

bool clv_program_is_ready(clv_device *device, const clv_cl_source *source,
                          const clv_define *defines)
{
    clv_text options = { 0 }, text = { 0 }, key = { 0 };
    bool ready = false;
    if (!write_options(device, defines, &options)) {
        pthread_mutex_lock(&device->program_lock);
        ready = find(device, source, options.data) != NULL;
        pthread_mutex_unlock(&device->program_lock);
    }
    if (!ready && !options.failed && !clv_source_resolve(source, &text) &&
        !write_key(device, &text, options.data, &key)) {
        void *binary;
        size_t length;
        ready = clv_cache_load(device->cache, key.data, &binary, &length);
        if (ready) clv_free(binary);
    }
    clv_text_clear(&options), clv_text_clear(&text), clv_text_clear(&key);
    return ready;
}

static void save(clv_device *device, clv_program *p)
{
    size_t length = 0;
    if (clGetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, NULL) !=
            CL_SUCCESS ||
        length == 0 || length > (size_t)256 << 20)
        return;
    unsigned char *binary = clv_alloc(length, 1);
    if (binary && clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
                      CL_SUCCESS)
        clv_cache_store(device->cache, p->key, binary, length);
    clv_free(binary);
}

void clv_programs_save(clv_device *device)
{
    if (!*device->cache->directory) return;
    atomic_store(&device->compiling, true);
    pthread_mutex_lock(&device->program_lock);
    for (clv_program *p = device->programs; p; p = p->next)
        if (p->ran && !p->from_disk) {
            save(device, p);
            p->from_disk = true; /* as good as */
        }
    pthread_mutex_unlock(&device->program_lock);
    atomic_store(&device->compiling, false);
}

void clv_programs_clear(clv_device *device)
{
    while (device->programs) {
        clv_program *p = device->programs;
        device->programs = p->next;
        destroy(p);
    }
}
