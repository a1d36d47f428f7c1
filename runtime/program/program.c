/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the compiled programs of one device: they are built once, kept in memory, and remembered on disk. */
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

#include <stdio.h>
#include <string.h>

/* The guard of Clang's opencl-c.h, which leaves out its declarations; cl/common/builtins.clh has others. */
static const char without_header[] = " -D_OPENCL_H_";

/* The library's own kernels use few built-in functions; those of others may use any. */
static bool declares(const clv_device *device, const clv_cl_source *source)
{
    return device->declares &&
           (clv_starts_with(source->name, "cl/") || strstr(source->name, "(generated)"));
}

static clv_status write_options(const clv_device *device, const clv_cl_source *source,
                                const clv_define *defines, clv_text *options)
{
    clv_text_add(options, "-cl-std=CL1.2%s", device->slow_fma ? " -DCLV_SLOW_FMA" : "");
    for (int i = 0; i < CLV_MAX_DEFINES && defines[i].name; ++i)
        clv_text_add(options, " -D%s=%ld", defines[i].name, defines[i].value);
    if (declares(device, source)) clv_text_add(options, "%s", without_header);
    return options->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for build options") : CLV_OK;
}

static clv_program *find(clv_device *device, const clv_cl_source *source, const char *options)
{
    for (clv_program *p = device->programs; p; p = p->next)
        if (p->source == source && strcmp(p->options, options) == 0) return p;
    return NULL;
}

/* Writes everything that the machine code depends on into `key`. */
static clv_status write_key(const clv_device *device, const clv_text *text, const char *options,
                            clv_text *key)
{
    char hex[65];
    const clv_digest digest = clv_sha256(text->data, text->length);
    clv_digest_hex(&digest, hex);
    clv_text_add(key, "cleave %s\nsource %s\noptions %s\ndevice %s\n", clv_version(), hex, options,
                 device->identity);
    if (device->driver_cache) clv_text_add(key, "kernels in %s\n", device->driver_cache);
    return key->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for a cache key") : CLV_OK;
}

static void destroy(clv_program *p)
{
    if (p->program) clReleaseProgram(p->program);
    while (p->uses) {
        clv_kernel_use *use = p->uses;
        p->uses = use->next;
        clv_free(use->args);
        clv_free(use);
    }
    clv_text_clear(&p->text);
    clv_free(p->options);
    clv_free(p->key);
    clv_free(p);
}

static clv_status add(clv_device *device, const clv_cl_source *source, clv_text *options,
                      clv_program **out)
{
    clv_text key = { 0 };
    clv_program *p = clv_zalloc(1, sizeof *p);
    clv_status status = p ? clv_source_resolve(source, declares(device, source), &p->text)
                          : clv_fail(CLV_E_MEMORY, "%s: out of memory", source->name);
    if (!status) status = write_key(device, &p->text, options->data, &key);
    if (status) {
        if (p) destroy(p);
        clv_text_clear(&key);
        return status;
    }
    p->source = source;
    p->options = options->data, *options = (clv_text){ 0 };
    p->key = key.data;
    p->next = device->programs;
    *out = device->programs = p;
    return CLV_OK;
}

clv_status clv_program_find(clv_device *device, const clv_cl_source *source,
                            const clv_define *defines, clv_program **program)
{
    clv_text options = { 0 };
    clv_status status = write_options(device, source, defines, &options);
    *program = status ? NULL : find(device, source, options.data);
    if (!status && !*program) status = add(device, source, &options, program);
    clv_text_clear(&options);
    return status;
}

/* ---- kernels that launches compile ------------------------------------------------------------- */

static const char list_title[] = "compiled and kept by the driver\n";

clv_kernel_use *clv_program_use(clv_program *program, const char *kernel, const size_t local[3])
{
    const size_t bytes = strlen(kernel) + 1;
    for (clv_kernel_use *u = program->uses; u; u = u->next)
        if (strcmp(u->name, kernel) == 0 && memcmp(u->local, local, sizeof u->local) == 0) return u;
    clv_kernel_use *use = clv_zalloc(1, sizeof *use + bytes);
    if (!use) return NULL;
    memcpy(use->local, local, sizeof use->local);
    memcpy(use->name, kernel, bytes);
    use->next = program->uses;
    return program->uses = use;
}

/* Reads lines such as "clv_norm 16 1 1". Kernels whose line cannot be read are compiled again. */
static void read_list(clv_program *p, char *text, size_t length)
{
    char *end = text + length;
    for (char *line = text + strlen(list_title), *next; line < end; line = next) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), name[128];
        size_t local[3];
        if (!newline) return;
        *newline = '\0';
        next = newline + 1;
        if (sscanf(line, "%127s %zu %zu %zu", name, &local[0], &local[1], &local[2]) != 4) return;
        clv_kernel_use *use = clv_program_use(p, name, local);
        if (use) use->compiled = true;
    }
}

static void save_list(const clv_device *device, const clv_program *p)
{
    clv_text list = { 0 };
    clv_text_add(&list, "%s", list_title);
    for (const clv_kernel_use *u = p->uses; u; u = u->next)
        if (u->compiled)
            clv_text_add(&list, "%s %zu %zu %zu\n", u->name, u->local[0], u->local[1], u->local[2]);
    if (!list.failed) clv_cache_store(device->cache, p->key, list.data, list.length);
    clv_text_clear(&list);
}

bool clv_program_on_disk(clv_device *device, clv_program *p)
{
    if (p->looked) return p->from_disk;
    p->looked = true;
    if (!device->driver_cache) return p->from_disk = clv_cache_has(device->cache, p->key);
    void *list;
    size_t length;
    if (!clv_cache_load(device->cache, p->key, &list, &length)) return false;
    p->from_disk =
        length >= strlen(list_title) && memcmp(list, list_title, strlen(list_title)) == 0;
    if (p->from_disk) read_list(p, list, length);
    clv_free(list);
    return p->from_disk;
}

/* ---- building ------------------------------------------------------------------------------------ */

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
    if (device->driver_cache || !clv_cache_load(cache, key, &binary, &length)) return NULL;
    const unsigned char *bytes = binary;
    cl_int code, binary_code = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithBinary(device->cl, 1, &device->id, &length, &bytes, &binary_code, &code);
    clv_free(binary);
    if (code == CL_SUCCESS && binary_code == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program && code == CL_SUCCESS) clReleaseProgram(program);
    clv_log(CLV_LOG_INFO, "%s: the driver refused a cached binary; building from source",
            device->label);
    clv_cache_drop(cache, key);
    return NULL;
}

static clv_status build(clv_device *device, const clv_program *p, const clv_text *text,
                        const char *options, cl_program *out)
{
    cl_int code;
    const char *string = text->data;
    cl_program program = clCreateProgramWithSource(device->cl, 1, &string, &text->length, &code);
    if (code != CL_SUCCESS)
        return clv_cl_fail(device, "clCreateProgramWithSource", p->source->name, code);
    atomic_store(&device->compiling, true);
    code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    atomic_store(&device->compiling, false);
    char *log = build_log(device, program);
    if (code != CL_SUCCESS) {
        const clv_status status =
            clv_cl_is_memory(code)
                ? clv_cl_fail(device, "clBuildProgram", p->source->name, code)
                : clv_fail_detail(CLV_E_BUILD, log, "%s: %s does not build with \"%s\" (%d)",
                                  device->label, p->source->name, options, (int)code);
        clReleaseProgram(program);
        clv_free(log);
        return status;
    }
    if (log) clv_log(CLV_LOG_DEBUG, "%s: build log of %s: %s", device->label, p->source->name, log);
    clv_free(log);
    *out = program;
    return CLV_OK;
}

/* Builds with all declarations of the driver's header. */
static clv_status build_with_header(clv_device *device, const clv_program *p, cl_program *out)
{
    clv_text text = { 0 }, options = { 0 };
    clv_text_bytes(&options, p->options, strlen(p->options) - strlen(without_header));
    clv_status status = clv_source_resolve(p->source, false, &text);
    if (!status && options.failed)
        status = clv_fail(CLV_E_MEMORY, "not enough memory for build options");
    if (!status) status = build(device, p, &text, clv_text_get(&options), out);
    clv_text_clear(&text);
    clv_text_clear(&options);
    return status;
}

static clv_status from_source(clv_device *device, const clv_program *p, cl_program *out)
{
    const clv_status status = build(device, p, &p->text, p->options, out);
    if (status != CLV_E_BUILD || !declares(device, p->source)) return status;
    clv_log(CLV_LOG_DEBUG, "%s: %s is built again, with all built-in functions: %s", device->label,
            p->source->name, clv_error_detail());
    CLV_TRY(build_with_header(device, p, out));
    /* the driver may be of another kind: later programs are built with its header at once */
    device->declares = false;
    ++device->again;
    return CLV_OK;
}

clv_status clv_program_build(clv_device *device, clv_program *p)
{
    if (p->program) return CLV_OK;
    const double started = clv_now();
    p->program = from_disk(device, p->key, p->options);
    const bool kept = p->program || (device->driver_cache && clv_program_on_disk(device, p));
    if (!p->program) CLV_TRY(from_source(device, p, &p->program));
    const double took = clv_now() - started;
    p->looked = true;
    p->from_disk = kept;
    if (!kept) device->compiled.programs += 1, device->compiled.seconds += took;
    clv_text_clear(&p->text);
    clv_log(CLV_LOG_DEBUG, "%s: %s %s in %.1f ms [%s]", device->label, p->source->name,
            kept ? "loaded" : "built", took * 1e3, p->options);
    return CLV_OK;
}

clv_status clv_program_get(clv_device *device, const clv_cl_source *source,
                           const clv_define *defines, clv_program **program)
{
    pthread_mutex_lock(&device->program_lock);
    clv_status status = clv_program_find(device, source, defines, program);
    if (!status) status = clv_program_build(device, *program);
    if (status) *program = NULL;
    pthread_mutex_unlock(&device->program_lock);
    return status;
}

/* ---- keeping ------------------------------------------------------------------------------------- */

static void save(const clv_device *device, const clv_program *p)
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

void clv_programs_save(clv_device *device, bool ask)
{
    if (!*device->cache->directory || (!ask && !device->driver_cache)) return;
    atomic_store(&device->compiling, true);
    pthread_mutex_lock(&device->program_lock);
    for (clv_program *p = device->programs; p; p = p->next) {
        if (device->driver_cache ? !p->news : !p->ran || p->from_disk) continue;
        if (device->driver_cache)
            save_list(device, p);
        else
            save(device, p);
        p->from_disk = true; /* also after a failure: do not try again */
        p->news = false;
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
