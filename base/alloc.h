/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates memory (no other file calls malloc), and computes sizes with checks for overflow. */
#ifndef CLEAVE_BASE_ALLOC_H
#define CLEAVE_BASE_ALLOC_H

#include <cleave/memory.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLV_LEN(array) (sizeof(array) / sizeof *(array))
#define CLV_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CLV_MAX(a, b) ((a) > (b) ? (a) : (b))

/* These functions return NULL when there is no memory or count * size overflows; free the result with clv_free. */
void *clv_alloc(size_t count, size_t size);
void *clv_zalloc(size_t count, size_t size); /* zeroed */
void *clv_realloc(void *old, size_t count, size_t size);
void *clv_alloc_pages(size_t bytes); /* aligned to 4096, size rounded up to 64: fit for zero-copy */
void *clv_alloc_lines(size_t bytes); /* the same, but aligned to 64 if it is smaller than 4096 */
char *clv_strdup(const char *text);
/* clv_free: <cleave/memory.h> */

/* Grows *items (an array of *capacity items of `size` bytes each) to hold at least `wanted` items. Returns false
 * without memory. */
bool clv_reserve(void *items, size_t *capacity, size_t wanted, size_t size);

/* clv_size_mul and clv_size_add return false on overflow and then leave *out unchanged. */
static inline bool clv_size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

static inline bool clv_size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

/* Tells whether two ranges of bytes overlap. */
static inline bool clv_shares(const void *x, size_t x_bytes, const void *y, size_t y_bytes)
{
    const uintptr_t a = (uintptr_t)x, b = (uintptr_t)y;
    return x_bytes && y_bytes && a < b + y_bytes && b < a + x_bytes;
}

static inline size_t clv_round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Makes allocation number k from now fail (1 is the next one; 0 switches this off). For tests only. */
void clv_alloc_fail_at(unsigned long k);
unsigned long clv_alloc_calls(void); /* allocations since the last clv_alloc_fail_at */

#endif
