/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps program binaries on disk. Damaged or foreign entries are never handed to a driver: drivers crash on some
 * damaged binaries and run other damaged ones. */
#ifndef CLEAVE_RUNTIME_PROGRAM_CACHE_H
#define CLEAVE_RUNTIME_PROGRAM_CACHE_H

#include "base/file.h"

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One cache directory, whether it can be used or not. */
typedef struct clv_cache {
    char directory[CLV_PATH_MOST]; /* "" when there is no disk cache */
    uint64_t limit_bytes;
} clv_cache;

/* Makes or checks the directory (mode 0700, owned by this user). If that fails there is no disk cache, and
 * one warning is logged. `directory` "" means none. */
void clv_cache_open(clv_cache *cache, const char *directory);

/* The functions below identify an entry by `key`, a text of everything that the binary depends on. */
bool clv_cache_has(const clv_cache *cache, const char *key); /* an entry, which may be damaged */
bool clv_cache_load(const clv_cache *cache, const char *key, void **payload, size_t *length);
void clv_cache_store(const clv_cache *cache, const char *key, const void *payload, size_t length);
void clv_cache_drop(const clv_cache *cache, const char *key); /* when its binary did not build */

typedef struct clv_cache_stats {
    size_t entries;
    uint64_t bytes;
} clv_cache_stats;

clv_cache_stats clv_cache_measure(const clv_cache *cache);
/* Removes the oldest entries until the rest fits the limit; several processes may do this at the same time. */
void clv_cache_evict(const clv_cache *cache);

#endif
