/* SPDX-License-Identifier: Apache-2.0 */
/* Finds metadata and tensors in an open GGUF file, and reads its tensors. Bytes are copied out of the file, never
 * mapped: a file that is truncated while in use causes an error, not a signal. */
#define _GNU_SOURCE
#include "host/model/gguf.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/quant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_AT_ONCE = 1 << 30, /* some systems refuse 2 GiB and more in one call */
    CHUNK_BLOCKS = 256,     /* blocks that are converted at a time */
};

clv_status clv_gguf_read_at(const clv_gguf *file, uint64_t offset, void *out, size_t length)
{
    char *at = out;
    while (length) {
        const ssize_t got =
            pread(file->descriptor, at, CLV_MIN(length, (size_t)MOST_AT_ONCE), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return clv_fail(CLV_E_IO, "%s: cannot read: %s", file->path, strerror(errno));
        if (!got)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the file ends %zu bytes too early; it was truncated while in use",
                            file->path, length);
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return CLV_OK;
}

void clv_gguf_close(clv_gguf *file)
{
    if (!file) return;
    if (file->descriptor >= 0) close(file->descriptor);
    clv_free(file->path), clv_free(file->head), clv_free(file->names);
    clv_free(file->pairs), clv_free(file->by_key);
    clv_free(file->tensors), clv_free(file->by_name);
    clv_free(file);
}

uint32_t clv_gguf_version(const clv_gguf *file)
{
    return file ? file->version : 0;
}

const char *clv_gguf_path(const clv_gguf *file)
{
    return file ? file->path : NULL;
}

size_t clv_gguf_pair_count(const clv_gguf *file)
{
    return file ? file->pair_count : 0;
}

const char *clv_gguf_pair(const clv_gguf *file, size_t index, clv_gguf_value *value)
{
    if (!file || index >= file->pair_count) return NULL;
    if (value) *value = file->pairs[index].value;
    return file->pairs[index].key;
}

static int key_of(const void *key, const void *entry)
{
    return strcmp(key, (*(const clv_gguf_entry *const *)entry)->key);
}

bool clv_gguf_get(const clv_gguf *file, const char *key, clv_gguf_value *value)
{
    if (!file || !key || !file->pair_count) return false;
    const clv_gguf_entry **found =
        bsearch(key, file->by_key, file->pair_count, sizeof *file->by_key, key_of);
    if (found && value) *value = (*found)->value;
    return found != NULL;
}

size_t clv_gguf_tensor_count(const clv_gguf *file)
{
    return file ? file->tensor_count : 0;
}

const clv_gguf_tensor *clv_gguf_tensor_at(const clv_gguf *file, size_t index)
{
    return file && index < file->tensor_count ? &file->tensors[index] : NULL;
}

static int name_of(const void *name, const void *entry)
{
    return strcmp(name, (*(const clv_gguf_tensor *const *)entry)->name);
}

const clv_gguf_tensor *clv_gguf_tensor_find(const clv_gguf *file, const char *name)
{
    if (!file || !name || !file->tensor_count) return NULL;
    const clv_gguf_tensor **found =
        bsearch(name, file->by_name, file->tensor_count, sizeof *file->by_name, name_of);
    return found ? *found : NULL;
}

clv_status clv_gguf_read(const clv_gguf *file, const clv_gguf_tensor *tensor, uint64_t first,
                         void *out, size_t bytes)
{
    if (!file || !tensor || (!out && bytes))
        return clv_fail(CLV_E_ARGUMENT, "clv_gguf_read: an argument is NULL");
    if (first > tensor->bytes || bytes > tensor->bytes - first)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: %zu bytes of tensor \"%s\" from byte %llu on were asked for, but it "
                        "has %llu bytes",
                        file->path, bytes, tensor->name, (unsigned long long)first,
                        (unsigned long long)tensor->bytes);
    return clv_gguf_read_at(file, tensor->offset + first, out, bytes);
}

clv_status clv_gguf_read_f32(const clv_gguf *file, const clv_gguf_tensor *tensor, uint64_t first,
                             size_t count, float *out)
{
    if (!file || !tensor || (!out && count))
        return clv_fail(CLV_E_ARGUMENT, "clv_gguf_read_f32: an argument is NULL");
    const clv_quant_facts *facts = clv_quant_get_facts(tensor->type);
    if (!facts->supported)
        return clv_fail(CLV_E_UNSUPPORTED,
                        "%s: tensor \"%s\" is of type %s (%u), which is not supported", file->path,
                        tensor->name, facts->name, (unsigned)tensor->type);
    if (first % facts->count || count % facts->count || first > tensor->count ||
        count > tensor->count - first)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: %zu weights of tensor \"%s\" from weight %llu on were asked for, but "
                        "it has %llu weights, in blocks of %zu",
                        file->path, count, tensor->name, (unsigned long long)first,
                        (unsigned long long)tensor->count, facts->count);
    unsigned char *chunk = clv_alloc(CHUNK_BLOCKS, facts->bytes);
    if (!chunk) return clv_fail(CLV_E_MEMORY, "%s: out of memory", file->path);
    uint64_t at = first / facts->count * facts->bytes;
    clv_status status = CLV_OK;
    for (size_t left = count / facts->count; left && !status;) {
        const size_t now = CLV_MIN(left, (size_t)CHUNK_BLOCKS);
        status = clv_gguf_read(file, tensor, at, chunk, now * facts->bytes);
        if (!status) clv_quant_widen((clv_quant)tensor->type, chunk, now, out);
        at += now * facts->bytes, out += now * facts->count, left -= now;
    }
    clv_free(chunk);
    return status;
}
