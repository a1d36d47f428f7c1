/* SPDX-License-Identifier: Apache-2.0 */
/* Records what the card is given: every program with its options, and every launch.
 *
 * FOLDER/HASH.cl and HASH.opt are a program and its options; FOLDER/launches.PID has a line
 *     HASH KERNEL GX,GY,GZ LX,LY,LZ LOCAL_BYTES INDEX=VALUE,...
 * for each launch that differs from the others; values are those of arguments of 4 bytes.
 *
 * The file card.launches gets a line PID KERNEL for each kernel that a process has launched. */
#include "card.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64, LONGEST = 900 };

typedef struct program {
    cl_program cl;
    char *text;
    uint64_t hash;
    struct program *next;
} program;

typedef struct kernel {
    cl_kernel cl;
    uint64_t hash;
    char name[80];
    size_t local[MOST_ARGUMENTS];
    cl_int value[MOST_ARGUMENTS];
    bool is_word[MOST_ARGUMENTS];
    struct kernel *next;
} kernel;

typedef struct line {
    struct line *next;
    char text[];
} line;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static program *programs;
static kernel *kernels;
static line *lines;

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; text && *text; ++text)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static char *join(cl_uint count, const char **texts, const size_t *lengths)
{
    size_t total = 0;
    char *joined = calloc(1, 1);
    for (cl_uint i = 0; i < count && joined; ++i) {
        const size_t more = lengths && lengths[i] ? lengths[i] : strlen(texts[i]);
        joined = realloc(joined, total + more + 1);
        if (!joined) abort();
        memcpy(joined + total, texts[i], more);
        joined[total += more] = '\0';
    }
    return joined;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *code)
{
    cl_program made = layer_below->clCreateProgramWithSource(context, count, texts, lengths, code);
    program *p = made ? calloc(1, sizeof *p) : NULL;
    if (!p) return made;
    pthread_mutex_lock(&lock);
    *p = (program){ .cl = made, .text = join(count, texts, lengths), .next = programs };
    programs = p;
    pthread_mutex_unlock(&lock);
    return made;
}

static program *find_program(cl_program cl)
{
    program *p = programs;
    while (p && p->cl != cl)
        p = p->next;
    return p;
}

static void write_file(uint64_t hash, const char *ending, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%016" PRIx64 ".%s", card.record, hash, ending);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

static cl_int CL_API_CALL build_program(cl_program cl, cl_uint count, const cl_device_id *devices,
                                        const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    pthread_mutex_lock(&lock);
    program *p = find_program(cl);
    if (p && p->text) {
        p->hash = mix(mix(UINT64_C(1469598103934665603), p->text), options);
        write_file(p->hash, "cl", p->text);
        write_file(p->hash, "opt", options ? options : "");
    }
    pthread_mutex_unlock(&lock);
    /* few launches are executed: the CPU's compiler need not optimise what was written for GPUs */
    char quick[4096];
    snprintf(quick, sizeof quick, "%s -cl-opt-disable", options ? options : "");
    return layer_below->clBuildProgram(cl, count, devices, quick, notify, user);
}

static cl_kernel CL_API_CALL create_kernel(cl_program cl, const char *name, cl_int *code)
{
    cl_kernel made = layer_below->clCreateKernel(cl, name, code);
    kernel *k = made ? calloc(1, sizeof *k) : NULL;
    if (!k) return made;
    pthread_mutex_lock(&lock);
    const program *p = find_program(cl);
    k->cl = made, k->hash = p ? p->hash : 0, k->next = kernels;
    snprintf(k->name, sizeof k->name, "%s", name);
    kernels = k;
    pthread_mutex_unlock(&lock);
    return made;
}

/* A handle may be given out again: the latest is meant. */
static kernel *find_kernel(cl_kernel cl)
{
    kernel *k = kernels;
    while (k && k->cl != cl)
        k = k->next;
    return k;
}

static cl_int CL_API_CALL set_argument(cl_kernel cl, cl_uint index, size_t bytes, const void *value)
{
    pthread_mutex_lock(&lock);
    kernel *k = find_kernel(cl);
    if (k && index < MOST_ARGUMENTS) {
        k->local[index] = value ? 0 : bytes;
        k->is_word[index] = value && bytes == sizeof k->value[index];
        if (k->is_word[index]) memcpy(&k->value[index], value, bytes);
    }
    pthread_mutex_unlock(&lock);
    return layer_below->clSetKernelArg(cl, index, bytes, value);
}

static bool is_new(const char *text)
{
    for (const line *l = lines; l; l = l->next)
        if (strcmp(l->text, text) == 0) return false;
    line *l = malloc(sizeof *l + strlen(text) + 1);
    if (!l) return false;
    strcpy(l->text, text);
    l->next = lines;
    lines = l;
    return true;
}

void card_launched(cl_kernel cl, cl_uint dimensions, const size_t *global, const size_t *local)
{
    char text[LONGEST], path[4096];
    size_t g[3] = { 1, 1, 1 }, l[3] = { 1, 1, 1 }, bytes = 0, at;
    if (!card.record) return;
    for (cl_uint d = 0; d < dimensions && d < 3; ++d)
        g[d] = global[d], l[d] = local ? local[d] : 0;
    pthread_mutex_lock(&lock);
    const kernel *k = find_kernel(cl);
    for (size_t i = 0; k && i < MOST_ARGUMENTS; ++i)
        bytes += k->local[i];
    at = (size_t)snprintf(text, sizeof text, "%016" PRIx64 " %s %zu,%zu,%zu %zu,%zu,%zu %zu ",
                          k ? k->hash : 0, k ? k->name : "?", g[0], g[1], g[2], l[0], l[1], l[2],
                          bytes);
    for (size_t i = 0; k && i < MOST_ARGUMENTS && at < sizeof text - 32; ++i)
        if (k->is_word[i])
            at += (size_t)snprintf(text + at, sizeof text - at, "%zu=%d,", i, k->value[i]);
    if (is_new(text)) { /* at once: some processes end without a farewell */
        snprintf(path, sizeof path, "%s/launches.%d", card.record, (int)getpid());
        FILE *file = fopen(path, "a");
        if (file) fprintf(file, "%s\n", text), fclose(file);
    }
    pthread_mutex_unlock(&lock);
}

void card_accepted(cl_kernel cl)
{
    char name[80] = "?";
    if (!card.launches) return;
    layer_below->clGetKernelInfo(cl, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    pthread_mutex_lock(&lock);
    if (is_new(name)) {
        FILE *file = fopen(card.launches, "a");
        if (file) fprintf(file, "%d %s\n", (int)getpid(), name), fclose(file);
    }
    pthread_mutex_unlock(&lock);
}

void card_record_install(cl_icd_dispatch *layer)
{
    layer->clCreateProgramWithSource = create_program;
    layer->clBuildProgram = build_program;
    layer->clCreateKernel = create_kernel;
    layer->clSetKernelArg = set_argument;
}
