/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a safetensors file, which is complete or absent. The header is padded, so that the data are aligned. */
#include "host/model/tensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

typedef struct item {
    const clv_tensor_source *source;
    size_t bytes;
} item;

static clv_status check_source(const char *path, const clv_tensor_source *s, item *out)
{
    size_t count = 1;
    const size_t bits = clv_tensor_type_bits(s->type);
    if (!s->name || !*s->name || strcmp(s->name, "__metadata__") == 0)
        return clv_fail(CLV_E_ARGUMENT, "%s: a tensor has no name or is named __metadata__", path);
    uint32_t c;
    for (size_t at = 0, step, length = strlen(s->name); at < length; at += step)
        if (!(step = clv_utf8_decode(s->name + at, length - at, &c)))
            return clv_fail(CLV_E_ARGUMENT, "%s: the name of a tensor is not UTF-8", path);
    if (!bits)
        return clv_fail(CLV_E_ARGUMENT, "%s: tensor \"%s\": type %d cannot be written", path,
                        s->name, (int)s->type);
    if (s->rank > CLV_TENSOR_RANK_MAX)
        return clv_fail(CLV_E_ARGUMENT, "%s: tensor \"%s\": %zu dimensions, expected at most %d",
                        path, s->name, s->rank, CLV_TENSOR_RANK_MAX);
    for (size_t i = 0; i < s->rank; ++i)
        if (!clv_size_mul(count, s->shape[i], &count))
            return clv_fail(CLV_E_SHAPE,
                            "%s: tensor \"%s\" needs more memory than can be addressed", path,
                            s->name);
    if (!clv_size_mul(count, bits / 8, &out->bytes))
        return clv_fail(CLV_E_SHAPE, "%s: tensor \"%s\" needs more memory than can be addressed",
                        path, s->name);
    if (!s->data && out->bytes)
        return clv_fail(CLV_E_ARGUMENT, "%s: tensor \"%s\": data is NULL", path, s->name);
    out->source = s;
    return CLV_OK;
}

/* Orders tensors by width of type, the widest first, so that every element is aligned; then by name. */
static int by_width(const void *left, const void *right)
{
    const item *a = left, *b = right;
    const size_t wa = clv_tensor_type_bits(a->source->type);
    const size_t wb = clv_tensor_type_bits(b->source->type);
    if (wa != wb) return wa > wb ? -1 : 1;
    return strcmp(a->source->name, b->source->name);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const item *)left)->source->name, ((const item *)right)->source->name);
}

static char *header_text(const item *items, size_t count, const char *const *metadata)
{
    clv_json *root = clv_json_object();
    if (metadata && *metadata) {
        clv_json *object = clv_json_add_object(root, "__metadata__");
        for (; metadata[0] && metadata[1]; metadata += 2)
            clv_json_add_string(object, metadata[0], metadata[1]);
    }
    uint64_t offset = 0;
    bool complete = root != NULL;
    for (size_t i = 0; i < count && complete; ++i) {
        const clv_tensor_source *s = items[i].source;
        clv_json *object = clv_json_add_object(root, s->name);
        clv_json_add_string(object, "dtype", clv_tensor_type_name(s->type));
        clv_json *shape = clv_json_add_array(object, "shape");
        for (size_t k = 0; k < s->rank; ++k)
            clv_json_add_int(shape, NULL, (int64_t)s->shape[k]);
        clv_json *range = clv_json_add_array(object, "data_offsets");
        clv_json_add_int(range, NULL, (int64_t)offset);
        offset += items[i].bytes;
        clv_json_add_int(range, NULL, (int64_t)offset);
        complete = clv_json_count(range) == 2 && clv_json_count(shape) == s->rank;
    }
    char *text = complete ? clv_json_text(root, true) : NULL;
    clv_json_free(root);
    return text;
}

clv_status clv_tensors_write(const char *path, const clv_tensor_source *sources, size_t count,
                             const char *const *metadata)
{
    if (!path || (!sources && count))
        return clv_fail(CLV_E_ARGUMENT, "clv_tensors_write: an argument is NULL");
    item *items = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *items);
    clv_part *parts = clv_alloc(count + 3, sizeof *parts);
    char *text = NULL;
    clv_status status = CLV_OK;
    if (!items || !parts) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    for (size_t i = 0; i < count && !status; ++i)
        status = check_source(path, &sources[i], &items[i]);
    if (status) goto cleanup;
    qsort(items, count, sizeof *items, by_name);
    for (size_t i = 1; i < count; ++i)
        if (strcmp(items[i - 1].source->name, items[i].source->name) == 0) {
            status = clv_fail(CLV_E_ARGUMENT, "%s: two tensors are named \"%s\"", path,
                              items[i].source->name);
            goto cleanup;
        }
    qsort(items, count, sizeof *items, by_width);
    text = header_text(items, count, metadata);
    if (!text) {
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory for the header", path);
        goto cleanup;
    }
    const size_t used = strlen(text), padded = clv_round_up(used, 8);
    unsigned char length[8];
    for (size_t i = 0; i < 8; ++i)
        length[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    parts[0] = (clv_part){ length, 8 };
    parts[1] = (clv_part){ text, used };
    parts[2] = (clv_part){ "       ", padded - used };
    for (size_t i = 0; i < count; ++i)
        parts[3 + i] = (clv_part){ items[i].source->data, items[i].bytes };
    status = clv_parts_write(path, parts, count + 3);
cleanup:
    clv_json_text_free(text);
    clv_free(items);
    clv_free(parts);
    return status;
}
