/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts on the host: maps every number to an integer key of the same order, and merge-sorts the keys. */
#include "host/array/fold.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/array/apply.h"

#include <string.h>

typedef struct item {
    uint64_t key;
    int64_t place;
} item;

static uint64_t key_of_real(double x)
{
    uint64_t bits;
    if (x != x) return UINT64_MAX;
    x += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Returns the type from which keys are made: int64, uint64 or float64. */
static clv_dtype wide(clv_dtype type)
{
    const clv_number_kind kind = clv_kind_of(type);
    return kind == KIND_INT ? CLV_I64 : kind == KIND_UINT ? CLV_U64 : CLV_F64;
}

static void make_keys(clv_dtype type, const void *from, ptrdiff_t stride, size_t count, item *to)
{
    enum { SOME = 256 };
    const clv_number_kind kind = clv_kind_of(wide(type));
    union {
        int64_t i[SOME];
        uint64_t u[SOME];
        double d[SOME];
    } block;
    const ptrdiff_t bytes = (ptrdiff_t)clv_dtype_bytes(type);
    for (size_t first = 0; first < count; first += SOME) {
        const size_t some = count - first < SOME ? count - first : SOME;
        const char *at = (const char *)from + (ptrdiff_t)first * stride * bytes;
        clv_apply_load(type, kind, at, stride, some, &block);
        for (size_t i = 0; i < some; ++i) {
            to[first + i].place = (int64_t)(first + i);
            to[first + i].key = kind == KIND_INT    ? (uint64_t)block.i[i] ^ (uint64_t)1 << 63
                                : kind == KIND_UINT ? block.u[i]
                                                    : key_of_real(block.d[i]);
        }
    }
}

/* Merges sorted runs, whose length doubles each time. Returns the row that holds the result: `a` or `b`. */
static item *sort(item *a, item *b, size_t count)
{
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t first = 0; first < count; first += 2 * run) {
            const size_t middle = CLV_MIN(first + run, count),
                         end = CLV_MIN(first + 2 * run, count);
            size_t i = first, k = middle;
            for (size_t to = first; to < end; ++to)
                b[to] = k == end || (i < middle && a[i].key <= a[k].key) ? a[i++] : a[k++];
        }
        item *turn = a;
        a = b;
        b = turn;
    }
    return a;
}

/* Copies all elements of an array, in the array's own type, into new memory, which the caller frees. */
static clv_status read_all(clv_array *in, void **elements)
{
    *elements = clv_alloc(in->elements ? in->elements : 1, clv_dtype_bytes(in->type));
    if (!*elements) return clv_fail(CLV_E_MEMORY, "order: out of memory");
    const clv_status status = clv_array_copy_to(in, *elements);
    if (status) clv_free(*elements);
    return status;
}

static clv_status check(const char *what, clv_context *context, const clv_array *in,
                        const clv_array *like, const clv_array *places)
{
    CLV_TRY(clv_array_check_any(what, context, in));
    CLV_TRY(clv_array_check_any(what, context, like));
    CLV_TRY(clv_array_check_any(what, context, places));
    if (clv_dtype_is_complex(in->type) || clv_dtype_is_complex(like->type))
        return clv_fail(CLV_E_UNSUPPORTED, "%s: complex numbers have no order", what);
    if (places->type != CLV_I64)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: the array for the indices is of %s, but it must be int64", what,
                        clv_dtype_name(places->type));
    bool fits = places->rank == like->rank;
    for (size_t i = 0; i < like->rank && fits; ++i)
        fits = places->shape[i] == like->shape[i];
    return fits ? CLV_OK
                : clv_fail(CLV_E_SHAPE,
                           "%s: the array for the indices must have the operand's shape", what);
}

clv_status clv_array_order(clv_context *context, clv_array *in, size_t axis, unsigned options,
                           clv_array *places)
{
    CLV_TRY(check("order", context, in, in, places));
    if (axis >= in->rank)
        return clv_fail(CLV_E_SHAPE, "order: axis %zu is out of range for an array of %zu axes",
                        axis, in->rank);
    if (!in->elements) return CLV_OK;
    const size_t len = in->shape[axis];
    size_t inner = 1;
    for (size_t i = axis + 1; i < in->rank; ++i)
        inner *= in->shape[i];
    void *all;
    CLV_TRY(read_all(in, &all));
    item *a = clv_alloc(len, sizeof *a), *b = clv_alloc(len, sizeof *b);
    int64_t *found = clv_alloc(in->elements, sizeof *found);
    clv_status status = a && b && found ? CLV_OK : clv_fail(CLV_E_MEMORY, "order: out of memory");
    for (size_t row = 0; row < in->elements / len && !status; ++row) {
        const size_t first = row / inner * len * inner + row % inner;
        const char *from = (const char *)all + first * clv_dtype_bytes(in->type);
        make_keys(in->type, from, (ptrdiff_t)inner, len, a);
        for (size_t i = 0; i < len && options & CLV_ORDER_DESCENDING; ++i)
            a[i].key = ~a[i].key;
        const item *sorted = sort(a, b, len);
        for (size_t i = 0; i < len; ++i)
            found[first + i * inner] = sorted[i].place;
    }
    if (!status) status = clv_array_fill_from(places, found);
    clv_free(all), clv_free(a), clv_free(b), clv_free(found);
    return status;
}

/* Makes the sort keys of an array's elements after converting them to `type`. */
static clv_status keys_of(clv_array *in, clv_dtype type, item **keys)
{
    clv_array *same;
    void *all = NULL;
    CLV_TRY(clv_array_dense(in, type, &same));
    clv_status status = read_all(same, &all);
    clv_array_free(same);
    CLV_TRY(status);
    *keys = clv_alloc(in->elements ? in->elements : 1, sizeof **keys);
    if (*keys) make_keys(type, all, 1, in->elements, *keys);
    clv_free(all);
    return *keys ? CLV_OK : clv_fail(CLV_E_MEMORY, "locate: out of memory");
}

clv_status clv_array_locate(clv_context *context, clv_array *sorted, clv_array *values, bool right,
                            clv_array *places)
{
    CLV_TRY(check("locate", context, sorted, values, places));
    if (sorted->rank != 1)
        return clv_fail(CLV_E_SHAPE, "locate: the sorted array has %zu axes, but it must have 1",
                        sorted->rank);
    const clv_dtype type = clv_dtype_promote(sorted->type, values->type);
    item *row = NULL, *asked = NULL;
    int64_t *found = clv_alloc(values->elements ? values->elements : 1, sizeof *found);
    clv_status status =
        found ? keys_of(sorted, type, &row) : clv_fail(CLV_E_MEMORY, "locate: out of memory");
    if (!status) status = keys_of(values, type, &asked);
    for (size_t i = 0; i < values->elements && !status; ++i) {
        size_t low = 0, high = sorted->elements;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const uint64_t key = row[middle].key;
            if (key < asked[i].key || (right && key == asked[i].key))
                low = middle + 1;
            else
                high = middle;
        }
        found[i] = (int64_t)low;
    }
    if (!status) status = clv_array_fill_from(places, found);
    clv_free(found), clv_free(row), clv_free(asked);
    return status;
}
