/* SPDX-License-Identifier: Apache-2.0 */
/* A malloc in front of the C library's: counts and passes on. */
#include "mallocs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOREIGN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define FOREIGN 1
#endif

static _Thread_local unsigned long taken __attribute__((tls_model("initial-exec")));

unsigned long test_mallocs_here(void)
{
    return taken;
}

#ifndef FOREIGN
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    ++taken;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    ++taken;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    ++taken;
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    ++taken;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    ++taken;
    void *memory = __libc_memalign(alignment, bytes);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
#endif
