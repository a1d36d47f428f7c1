/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a safetensors file and reads its tensors. Bytes are copied out of the file, never mapped: data may begin at any
 * address, and a file that is truncated while it is read causes an error, not a signal. */
#define _GNU_SOURCE
#include "host/model/tensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_HEADER = 100000000, /* the format's own limit */
    MOST_AT_ONCE = 1 << 30, /* some systems refuse 2 GiB and more in one call */
    CHUNK = 65536,          /* bytes that are converted at a time, so that they stay in the cache */
};

static clv_status io_error(const char *doing, const char *path)
{
    return clv_fail(CLV_E_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
}

static clv_status read_at(const clv_tensors *t, uint64_t offset, void *out, size_t length)
{
    char *at = out;
    while (length) {
        const ssize_t got =
            pread(t->descriptor, at, CLV_MIN(length, (size_t)MOST_AT_ONCE), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read", t->path);
        if (got == 0)
            return clv_fail(CLV_E_FORMAT,
                            "%s: the file ends %zu bytes too early; it was truncated while in use",
                            t->path, length);
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return CLV_OK;
}

/* Returns what a file is that is often mistaken for weights; NULL if it is none of the known kinds. The length of a
 * header may begin with the same bytes, so the bytes after it decide. */
static const char *mistaken_for(const unsigned char start[9], uint64_t length, uint64_t size)
{
    if (length <= MAX_HEADER && length <= size - 8 && start[8] == '{') return NULL;
    if (memcmp(start, "version ", 8) == 0)
        return "a Git LFS pointer, not the file that it stands for: fetch it with git lfs pull";
    if (memcmp(start, "PK\3\4", 4) == 0 || (start[0] == 0x80 && start[1] >= 2 && start[1] <= 5))
        return "a PyTorch pickle, expected safetensors: convert it";
    if (memcmp(start, "GGUF", 4) == 0) return "a GGUF file, expected safetensors";
    if (memcmp(start, "\x89HDF", 4) == 0) return "an HDF5 file, expected safetensors";
    return NULL;
}

static clv_status read_header(clv_tensors *t, uint64_t size)
{
    unsigned char start[9] = { 0 };
    uint64_t length = 0;
    if (size < 8)
        return clv_fail(CLV_E_FORMAT, "%s has %llu bytes, but a safetensors file has at least 8",
                        t->path, (unsigned long long)size);
    CLV_TRY(read_at(t, 0, start, (size_t)CLV_MIN(size, sizeof start)));
    for (size_t i = 0; i < 8; ++i)
        length |= (uint64_t)start[i] << 8 * i;
    const char *mistake = mistaken_for(start, length, size);
    if (mistake) return clv_fail(CLV_E_FORMAT, "%s: %s", t->path, mistake);
    if (length > MAX_HEADER || length > size - 8)
        return clv_fail(CLV_E_FORMAT,
                        "%s has a header of %llu bytes, expected at most %llu; it is not a "
                        "safetensors file, or its download was cut short",
                        t->path, (unsigned long long)length,
                        (unsigned long long)CLV_MIN((uint64_t)MAX_HEADER, size - 8));
    t->data_offset = 8 + length;
    t->data_bytes = size - t->data_offset;

    char *text = clv_alloc((size_t)length + 1, 1);
    if (!text) return clv_fail(CLV_E_MEMORY, "%s: not enough memory for the header", t->path);
    clv_status status = read_at(t, 8, text, (size_t)length);
    if (!status) status = clv_tensors_parse(t, text, (size_t)length);
    clv_free(text);
    return status;
}

clv_status clv_tensors_open(const char *path, clv_tensors **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "clv_tensors_open: out is NULL");
    *out = NULL;
    if (!path) return clv_fail(CLV_E_ARGUMENT, "clv_tensors_open: path is NULL");
    clv_tensors *t = clv_zalloc(1, sizeof *t);
    if (!t) return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    struct stat info;
    clv_status status = CLV_OK;
    t->path = clv_strdup(path);
    t->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!t->path)
        status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    else if (t->descriptor < 0)
        status = io_error("open", path);
    else if (fstat(t->descriptor, &info))
        status = io_error("read the size of", path);
    else if (!S_ISREG(info.st_mode))
        status = clv_fail(
            CLV_E_IO, "%s is a directory, a pipe or a device, but a regular file is needed", path);
    if (!status) status = read_header(t, (uint64_t)info.st_size);
    if (status) {
        clv_tensors_close(t);
        return status;
    }
    *out = t;
    return CLV_OK;
}

void clv_tensors_close(clv_tensors *t)
{
    if (!t) return;
    if (t->descriptor >= 0) close(t->descriptor);
    clv_json_free(t->header);
    clv_free(t->tensors);
    clv_free(t->by_name);
    clv_free(t->path);
    clv_free(t);
}

size_t clv_tensors_count(const clv_tensors *t)
{
    return t ? t->count : 0;
}

const clv_tensor *clv_tensors_at(const clv_tensors *t, size_t index)
{
    return t && index < t->count ? &t->tensors[index] : NULL;
}

static int name_of(const void *name, const void *entry)
{
    return strcmp(name, (*(const clv_tensor *const *)entry)->name);
}

const clv_tensor *clv_tensors_find(const clv_tensors *t, const char *name)
{
    if (!t || !name) return NULL;
    const clv_tensor **found = bsearch(name, t->by_name, t->count, sizeof *t->by_name, name_of);
    return found ? *found : NULL;
}

const char *clv_tensors_metadata(const clv_tensors *t, const char *key)
{
    if (!t || !key) return NULL;
    return clv_json_string(clv_json_get(clv_json_get(t->header, "__metadata__"), key), NULL);
}

/* ---- values -------------------------------------------------------------------------------- */

static void widen(clv_tensor_type type, const unsigned char *in, size_t count, float *out)
{
    for (size_t i = 0; i < count; ++i) {
        if (type == CLV_TENSOR_F64) {
            uint64_t bits = 0;
            double value;
            for (size_t k = 0; k < 8; ++k)
                bits |= (uint64_t)in[8 * i + k] << 8 * k;
            memcpy(&value, &bits, sizeof value);
            out[i] = (float)value;
            continue;
        }
        const uint16_t half = (uint16_t)(in[2 * i] | in[2 * i + 1] << 8);
        if (type == CLV_TENSOR_F16) {
            out[i] = clv_half_to_float(half);
        } else {
            const uint32_t bits = (uint32_t)half << 16;
            memcpy(&out[i], &bits, sizeof bits);
        }
    }
}

clv_status clv_tensors_read_f32(const clv_tensors *t, const clv_tensor *tensor, size_t first,
                                size_t count, float *out)
{
    if (!t || !tensor || (!out && count))
        return clv_fail(CLV_E_ARGUMENT, "clv_tensors_read_f32: an argument is NULL");
    if (tensor->type > CLV_TENSOR_BF16)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: tensor \"%s\" is %s, expected one of F32, F16, BF16, F64", t->path,
                        tensor->name, tensor->type_name);
    if (first > tensor->count || count > tensor->count - first)
        return clv_fail(
            CLV_E_ARGUMENT,
            "%s: tensor \"%s\": %zu elements from element %zu on were asked for, but it has %zu",
            t->path, tensor->name, count, first, tensor->count);
    const size_t size = clv_tensor_type_bits(tensor->type) / 8;
    const uint64_t offset = tensor->offset + (uint64_t)first * size;
    if (tensor->type == CLV_TENSOR_F32) return read_at(t, offset, out, count * size);

    unsigned char *chunk = clv_alloc(CHUNK, 1);
    if (!chunk) return clv_fail(CLV_E_MEMORY, "%s: out of memory", t->path);
    clv_status status = CLV_OK;
    for (size_t done = 0; done < count && !status;) {
        const size_t now = CLV_MIN((size_t)CHUNK / size, count - done);
        status = read_at(t, offset + (uint64_t)done * size, chunk, now * size);
        if (!status) widen(tensor->type, chunk, now, out + done);
        done += now;
    }
    clv_free(chunk);
    return status;
}

clv_status clv_tensors_read(const clv_tensors *t, const clv_tensor *tensor, void *out, size_t bytes)
{
    if (!t || !tensor || (!out && bytes))
        return clv_fail(CLV_E_ARGUMENT, "clv_tensors_read: an argument is NULL");
    if (bytes != tensor->bytes)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: tensor \"%s\" has %llu bytes, but there is room for %zu", t->path,
                        tensor->name, (unsigned long long)tensor->bytes, bytes);
    return read_at(t, tensor->offset, out, bytes);
}

clv_status clv_tensors_read_part(const clv_tensors *t, const clv_tensor *tensor, uint64_t first,
                                 void *out, size_t bytes)
{
    if (!t || !tensor || (!out && bytes))
        return clv_fail(CLV_E_ARGUMENT, "clv_tensors_read_part: an argument is NULL");
    if (first > tensor->bytes || bytes > tensor->bytes - first)
        return clv_fail(CLV_E_ARGUMENT,
                        "%s: %zu bytes of tensor \"%s\" from byte %llu on were asked for, but it "
                        "has %llu bytes",
                        t->path, bytes, tensor->name, (unsigned long long)first,
                        (unsigned long long)tensor->bytes);
    return read_at(t, tensor->offset + first, out, bytes);
}
