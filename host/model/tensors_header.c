/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the header of a safetensors file from JSON to a checked list of tensors.
 *
 * Format: https://github.com/huggingface/safetensors (README, "Format") */
#include "host/model/tensors.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct type_fact {
    const char *name;
    clv_tensor_type type;
    size_t bits;
} type_fact;

static const type_fact types[] = {
    { "F32", CLV_TENSOR_F32, 32 },          { "F64", CLV_TENSOR_F64, 64 },
    { "F16", CLV_TENSOR_F16, 16 },          { "BF16", CLV_TENSOR_BF16, 16 },
    { "I64", CLV_TENSOR_I64, 64 },          { "I32", CLV_TENSOR_I32, 32 },
    { "I16", CLV_TENSOR_I16, 16 },          { "I8", CLV_TENSOR_I8, 8 },
    { "U64", CLV_TENSOR_U64, 64 },          { "U32", CLV_TENSOR_U32, 32 },
    { "U16", CLV_TENSOR_U16, 16 },          { "U8", CLV_TENSOR_U8, 8 },
    { "BOOL", CLV_TENSOR_BOOL, 8 },         { "F8_E4M3", CLV_TENSOR_OTHER, 8 },
    { "F8_E5M2", CLV_TENSOR_OTHER, 8 },     { "F8_E8M0", CLV_TENSOR_OTHER, 8 },
    { "F6_E2M3", CLV_TENSOR_OTHER, 6 },     { "F6_E3M2", CLV_TENSOR_OTHER, 6 },
    { "F4", CLV_TENSOR_OTHER, 4 },          { "C64", CLV_TENSOR_OTHER, 64 },
    { "F8_E4M3FNUZ", CLV_TENSOR_OTHER, 8 }, { "F8_E5M2FNUZ", CLV_TENSOR_OTHER, 8 },
};

const char *clv_tensor_type_name(clv_tensor_type type)
{
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        if (types[i].type == type && type != CLV_TENSOR_OTHER) return types[i].name;
    return NULL;
}

size_t clv_tensor_type_bits(clv_tensor_type type)
{
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        if (types[i].type == type && type != CLV_TENSOR_OTHER) return types[i].bits;
    return 0;
}

/* Writes a name, shortened if it is long, to `out` for a message; returns `out`. */
static const char *brief(const char *name, char out[72])
{
    snprintf(out, 72, strlen(name) < 64 ? "%s" : "%.60s...", name);
    return out;
}

static clv_status take_type(const char *path, const char *name, const clv_json *value,
                            clv_tensor *tensor, size_t *bits)
{
    char shown[72], found[72];
    const char *text = clv_json_string(value, NULL);
    if (!text)
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\": dtype is %s, expected text such as F32",
                        path, brief(name, shown), value ? "not a string" : "missing");
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        if (strcmp(types[i].name, text) == 0) {
            tensor->type_name = types[i].name;
            tensor->type = types[i].type;
            *bits = types[i].bits;
            return CLV_OK;
        }
    return clv_fail(CLV_E_FORMAT,
                    "%s: tensor \"%s\": dtype \"%s\" is unknown, expected F32, F16, "
                    "BF16, I64, ...",
                    path, brief(name, shown), brief(text, found));
}

/* Reads a tensor's shape and computes its number of elements and its *bytes. */
static clv_status take_shape(const char *path, const char *name, const clv_json *value,
                             clv_tensor *tensor, size_t bits, uint64_t *bytes)
{
    char shown[72];
    size_t total_bits;
    brief(name, shown);
    if (!clv_json_is_array(value))
        return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\": shape is %s, expected a list", path,
                        shown, value ? "not a list" : "missing");
    tensor->rank = clv_json_count(value);
    if (tensor->rank > CLV_TENSOR_RANK_MAX)
        return clv_fail(CLV_E_SHAPE, "%s: tensor \"%s\": %zu dimensions, expected at most %d", path,
                        shown, tensor->rank, CLV_TENSOR_RANK_MAX);
    tensor->count = 1;
    for (size_t i = 0; i < tensor->rank; ++i) {
        const clv_json *extent = clv_json_at(value, i);
        const int64_t n = clv_json_int(extent, -1);
        if (!clv_json_is_int(extent) || n < 0)
            return clv_fail(CLV_E_FORMAT,
                            "%s: tensor \"%s\": dimension %zu is not a whole number of 0 or more",
                            path, shown, i);
        tensor->shape[i] = (size_t)n;
        if (!clv_size_mul(tensor->count, (size_t)n, &tensor->count))
            return clv_fail(CLV_E_FORMAT, "%s: tensor \"%s\": the product of its shape overflows",
                            path, shown);
    }
    if (!clv_size_mul(tensor->count, bits, &total_bits) || total_bits % 8)
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\": %zu elements of %s are not a whole number of bytes",
                        path, shown, tensor->count, tensor->type_name);
    *bytes = total_bits / 8;
    return CLV_OK;
}

static clv_status take_range(const clv_tensors *t, const char *name, const clv_json *value,
                             clv_tensor *tensor, uint64_t needed)
{
    char shown[72];
    brief(name, shown);
    const clv_json *first = clv_json_at(value, 0), *last = clv_json_at(value, 1);
    if (!clv_json_is_array(value) || clv_json_count(value) != 2 || !clv_json_is_int(first) ||
        !clv_json_is_int(last))
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\": data_offsets is not a list of two whole numbers",
                        t->path, shown);
    const int64_t begin = clv_json_int(first, 0), end = clv_json_int(last, 0);
    if (begin < 0 || end < begin)
        return clv_fail(CLV_E_FORMAT,
                        "%s: tensor \"%s\": data_offsets %lld to %lld, expected 0 <= begin <= end",
                        t->path, shown, (long long)begin, (long long)end);
    tensor->offset = (uint64_t)begin;
    tensor->bytes = (uint64_t)(end - begin);
    if (tensor->bytes != needed)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: tensor \"%s\": data_offsets span %llu bytes, but %zu elements of %s need %llu",
            t->path, shown, (unsigned long long)tensor->bytes, tensor->count, tensor->type_name,
            (unsigned long long)needed);
    if ((uint64_t)end > t->data_bytes)
        return clv_fail(CLV_E_FORMAT,
                        "%s: truncated: tensor \"%s\" ends at byte %lld of the data, but the file "
                        "has %llu bytes of data",
                        t->path, shown, (long long)end, (unsigned long long)t->data_bytes);
    return CLV_OK;
}

static clv_status check_metadata(const char *path, const clv_json *metadata)
{
    if (!clv_json_is_object(metadata))
        return clv_fail(CLV_E_FORMAT, "%s: __metadata__ is not an object", path);
    for (const char *key = NULL; (key = clv_json_next_key(metadata, key));)
        if (!clv_json_is_string(clv_json_get(metadata, key))) {
            char shown[72];
            return clv_fail(CLV_E_FORMAT, "%s: __metadata__ \"%s\" is not a string", path,
                            brief(key, shown));
        }
    return CLV_OK;
}

static int by_data(const void *left, const void *right)
{
    const clv_tensor *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1; /* empty tensors come first */
    return strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right)
{
    const clv_tensor *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Checks that the tensors' ranges cover the data from its first byte to its last, without gaps or overlaps. */
static clv_status check_tiling(const clv_tensors *t)
{
    char shown[72];
    uint64_t reached = 0;
    for (size_t i = 0; i < t->count; ++i) {
        const clv_tensor *now = &t->tensors[i];
        if (now->offset != reached)
            return clv_fail(CLV_E_FORMAT,
                            "%s: %s before tensor \"%s\": it begins at byte %llu of the data, "
                            "expected %llu",
                            t->path, now->offset > reached ? "a hole" : "an overlap",
                            brief(now->name, shown), (unsigned long long)now->offset,
                            (unsigned long long)reached);
        reached += now->bytes;
    }
    if (reached != t->data_bytes)
        return clv_fail(CLV_E_FORMAT, "%s: there are %llu bytes after the last tensor", t->path,
                        (unsigned long long)(t->data_bytes - reached));
    return CLV_OK;
}

clv_status clv_tensors_parse(clv_tensors *t, const char *text, size_t length)
{
    char shown[72];
    if (!length || text[0] != '{')
        return clv_fail(CLV_E_FORMAT, "%s: the header does not begin with a brace", t->path);
    CLV_TRY(clv_json_parse(t->path, text, length, &t->header));
    const size_t members = clv_json_count(t->header);
    t->tensors = clv_zalloc(CLV_MAX(members, (size_t)1), sizeof *t->tensors);
    t->by_name = clv_alloc(CLV_MAX(members, (size_t)1), sizeof *t->by_name);
    if (!t->tensors || !t->by_name)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu tensors", t->path, members);

    for (const char *key = NULL; (key = clv_json_next_key(t->header, key));) {
        const clv_json *value = clv_json_get(t->header, key);
        if (strcmp(key, "__metadata__") == 0) {
            CLV_TRY(check_metadata(t->path, value));
            continue;
        }
        if (!clv_json_is_object(value))
            return clv_fail(CLV_E_FORMAT, "%s: the description of tensor \"%s\" is not an object",
                            t->path, brief(key, shown));
        clv_tensor *tensor = &t->tensors[t->count];
        size_t bits = 0;
        uint64_t bytes = 0;
        tensor->name = key;
        CLV_TRY(take_type(t->path, key, clv_json_get(value, "dtype"), tensor, &bits));
        CLV_TRY(take_shape(t->path, key, clv_json_get(value, "shape"), tensor, bits, &bytes));
        CLV_TRY(take_range(t, key, clv_json_get(value, "data_offsets"), tensor, bytes));
        ++t->count;
    }
    qsort(t->tensors, t->count, sizeof *t->tensors, by_data);
    CLV_TRY(check_tiling(t));
    for (size_t i = 0; i < t->count; ++i) {
        t->tensors[i].offset += t->data_offset;
        t->by_name[i] = &t->tensors[i];
    }
    qsort(t->by_name, t->count, sizeof *t->by_name, by_name);
    return CLV_OK;
}
