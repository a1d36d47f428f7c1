/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: the k-th malloc of a process fails, k from CLEAVE_FAIL_MALLOC, and how many there
 * were goes to the file CLEAVE_COUNT_MALLOCS. Processes that this one starts are left alone, and so is hwloc: its
 * hwloc_topology_init and hwloc_topology_load do not check what they allocate (2.9 ends by an assertion or by
 * signal 11).
 *
 * CLEAVE_FAIL_MALLOC_OWN=k: instead, in this process and in its helpers, the k-th of the mallocs that the program
 * itself calls fails. Shared libraries, such as drivers that do not survive a failed malloc, and programs of another
 * name, such as a driver's linker, are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_ulong taken;
static unsigned long fails; /* 0: none */
static atomic_bool counts;
static const char *result;

static _Thread_local bool in_hwloc;

static uintptr_t own_begin, own_end; /* the program's code, if only its own calls count */

static void stop(void)
{
    atomic_store(&counts, false);
}

/* Only what the program does before its end counts: builds that count coverage write their counters at the end, and
 * crash if a malloc fails then. A function that is registered before main would run too late. */
static bool is_own(uintptr_t at)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    if (at < own_begin || at >= own_end) return false;
    if (!atomic_flag_test_and_set(&registered)) atexit(stop);
    return true;
}

static bool refused(const void *caller)
{
    if (!atomic_load(&counts) || in_hwloc) return false;
    if (own_end && !is_own((uintptr_t)caller)) return false;
    return atomic_fetch_add(&taken, 1) + 1 == fails;
}

/* The first object is the program. */
static int find_own(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size, (void)user;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        own_begin = (uintptr_t)(object->dlpi_addr + part->p_vaddr);
        own_end = own_begin + part->p_memsz;
    }
    return 1;
}

static bool is_ours(void)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *name = strrchr(path, '/');
    return name && strncmp(name + 1, "cleave", 6) == 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *k = getenv("CLEAVE_FAIL_MALLOC"), *own = getenv("CLEAVE_FAIL_MALLOC_OWN");
    result = getenv("CLEAVE_COUNT_MALLOCS");
    if (own) dl_iterate_phdr(find_own, NULL);
    if (own && !is_ours()) return;
    fails = own ? strtoul(own, NULL, 10) : k ? strtoul(k, NULL, 10) : 0;
    if (!own) unsetenv("LD_PRELOAD");
    atomic_store(&counts, true);
}

__attribute__((destructor)) static void end(void)
{
    atomic_store(&counts, false);
    FILE *file = result ? fopen(result, "w") : NULL;
    if (!file) return;
    fprintf(file, "%lu\n", atomic_load(&taken));
    fclose(file);
}

static void *none(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return refused(__builtin_return_address(0)) ? none() : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return refused(__builtin_return_address(0)) ? none() : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return refused(__builtin_return_address(0)) ? none() : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refused(__builtin_return_address(0)) ? none() : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory = refused(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}

/* The function of hwloc with that name, during which nothing fails. */
static int let_hwloc(const char *name, void *topology)
{
    int (*function)(void *);
    *(void **)&function = dlsym(RTLD_NEXT, name);
    in_hwloc = true;
    const int result_of_it = function ? function(topology) : -1;
    in_hwloc = false;
    return result_of_it;
}

int hwloc_topology_init(void *topology);
int hwloc_topology_load(void *topology);

int hwloc_topology_init(void *topology)
{
    return let_hwloc("hwloc_topology_init", topology);
}

int hwloc_topology_load(void *topology)
{
    return let_hwloc("hwloc_topology_load", topology);
}
