/* SPDX-License-Identifier: Apache-2.0 */
/* Program binaries on disk. A damaged or foreign entry is never handed to a driver: drivers crash
 * on some damage and run other damage. */
#ifndef CLEAVE_RUNTIME_PROGRAM_CACHE_H
#define CLEAVE_RUNTIME_PROGRAM_CACHE_H

#include "base/file.h"

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One directory, usable or not. */
typedef struct clv_cache {
    char directory[CLV_PATH_MOST]; /* "" when there is no disk cache */
    uint64_t limit_bytes;
} clv_cache;

/* Makes or checks the directory (0700, ours); when that fails there is no disk cache and one
 * warning is logged. `directory` "" means none. */
void clv_cache_open(clv_cache *cache, const char *directory);

/* `key` is all that the binary depends on, as text. */
bool clv_cache_has(const clv_cache *cache, const char *key); /* something, maybe damaged */
bool clv_cache_load(const clv_cache *cache, const char *key, void **payload, size_t *length);
void clv_cache_store(const clv_cache *cache, const char *key, const void *payload, size_t length);
void clv_cache_drop(const clv_cache *cache, const char *key); /* it did not build: forget it */

typedef struct clv_cache_stats {
    size_t entries;
    uint64_t bytes;
} clv_cache_stats;

clv_cache_stats clv_cache_measure(const clv_cache *cache);
/* Removes every entry, speed and tuning note; other files stay. */
clv_status clv_cache_clear(const clv_cache *cache);
/* Oldest entries go until the rest fits the limit; several processes may do so at once. */
void clv_cache_evict(const clv_cache *cache);

#endif
