/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the chunks of a Zarr array: their files, shards, checksums and compression. zarr_layout.c reads the array's
 * metadata. */
#include "host/io/formats/zarr_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "host/io/formats/npy_header.h"
#include "host/io/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* CHECKSUM: bytes of a CRC-32C. PLACE: bytes of a chunk's offset and length in a shard. SEARCHED: looking for a chunk
 * takes as long as filling this many bytes. TIMES: bytes that may be absent for each byte that was read. */
enum { CHECKSUM = 4, PLACE = 16, SEARCHED = 4096, TIMES = 1000 };
#define NOWHERE UINT64_MAX
/* Bytes of absent chunks that are accepted in any case. */
static const uint64_t most_absent = (uint64_t)8 << 30;

/* Computes the CRC-32C (Castagnoli) of `bytes`, one byte at a time. */
static uint32_t crc32c(const clv_zarr *z, const unsigned char *bytes, size_t length)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; ++i)
        crc = crc >> 8 ^ z->crc_of[(crc ^ bytes[i]) & 0xFF];
    return ~crc;
}

static uint64_t little(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

/* Checks the checksum in the last CHECKSUM of the bytes, and subtracts its size from *length. */
static clv_status check_sum(const clv_zarr *z, const char *path, const unsigned char *bytes,
                            size_t *length)
{
    if (*length < CHECKSUM)
        return clv_fail(CLV_E_FORMAT, "%s: the data have %zu bytes, too few for a checksum", path,
                        *length);
    *length -= CHECKSUM;
    if (crc32c(z, bytes, *length) != little(bytes + *length, CHECKSUM))
        return clv_fail(CLV_E_FORMAT,
                        "%s: the file is damaged: its data do not match their checksum (CRC-32C)",
                        path);
    return CLV_OK;
}

/* Writes the file name of a chunk or shard: "0/0/3", "c/0/3" or "0.0.3". */
static void name_of(const clv_zarr *z, const size_t *index, clv_text *name)
{
    clv_text_restart(name);
    clv_text_add(name, "%s/", z->path);
    if (z->prefixed) clv_text_add(name, "c%s", z->layout.rank ? z->separator : "");
    for (size_t i = 0; i < z->layout.rank; ++i)
        clv_text_add(name, "%s%zu", i ? z->separator : "", index[i]);
}

/* Fills a chunk that is in no file with the fill value. Since a few bytes of metadata can promise any number of such
 * chunks, fails beyond a limit of their bytes. */
static clv_status fill(clv_zarr *z, void *out)
{
    const size_t size = z->element;
    z->absent += CLV_MAX(z->layout.chunk_elements * size, (size_t)SEARCHED);
    if (z->absent > most_absent && (z->absent - most_absent) / TIMES > z->stored)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: %.1f GB of its pixels are in no file, and %.1f MB were read from files; "
            "at most %.1f GB, plus %d times the bytes that were read, may be absent. Choose "
            "frames that the files hold",
            z->path, (double)z->absent / 1e9, (double)z->stored / 1e6, (double)most_absent / 1e9,
            TIMES);
    if (memcmp(z->fill, (const unsigned char[sizeof z->fill]){ 0 }, size) == 0) {
        memset(out, 0, z->layout.chunk_elements * size);
        return CLV_OK;
    }
    for (size_t i = 0; i < z->layout.chunk_elements; ++i)
        memcpy((char *)out + i * size, z->fill, size);
    return CLV_OK;
}

/* Decodes a chunk: reverses its codecs, the last one first. `bytes` is a copy that may be overwritten. */
static clv_status decode(clv_zarr *z, const char *path, const unsigned char *bytes, size_t length,
                         void *out)
{
    const size_t wanted = z->layout.chunk_elements * z->element;
    if (z->sum_behind) CLV_TRY(check_sum(z, path, bytes, &length));
    if (z->unpack) {
        const size_t packed = wanted + (z->sum_before ? CHECKSUM : 0);
        if (z->sum_before) {
            if (!clv_reserve(&z->scratch, &z->scratch_room, packed, 1))
                return clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
            CLV_TRY(z->unpack(path, bytes, length, z->scratch, packed));
            length = packed;
            CLV_TRY(check_sum(z, path, z->scratch, &length));
            memcpy(out, z->scratch, wanted);
        } else {
            CLV_TRY(z->unpack(path, bytes, length, out, wanted));
        }
    } else {
        if (z->sum_before) CLV_TRY(check_sum(z, path, bytes, &length));
        if (length != wanted)
            return clv_fail(CLV_E_FORMAT, "%s: the data have %zu bytes, expected %zu", path, length,
                            wanted);
        memcpy(out, bytes, wanted);
    }
    if (z->swap) clv_npy_swap(out, wanted, z->element);
    return CLV_OK;
}

/* Opens the file of a chunk or shard; *there is false if the file does not exist. */
static clv_status open_chunk(const char *path, clv_input *input, bool *there)
{
    struct stat info;
    *there = true;
    if (stat(path, &info) == 0) return clv_input_open(input, path);
    *there = false;
    if (errno == ENOENT || errno == ENOTDIR) return CLV_OK;
    return clv_fail(CLV_E_IO, "%s: cannot read: %s", path, strerror(errno));
}

static clv_status read_bytes(clv_zarr *z, const clv_input *input, uint64_t offset, uint64_t length)
{
    /* no codec makes data much longer than they were */
    const uint64_t most = 2 * (uint64_t)z->layout.chunk_elements * z->element + (1 << 20);
    if (length > most || length > input->length || offset > input->length - length)
        return clv_fail(
            CLV_E_FORMAT,
            "%s: damaged: the index has a chunk of %llu bytes at byte %llu, outside the file",
            input->path, (unsigned long long)length, (unsigned long long)offset);
    if (!clv_reserve(&z->bytes, &z->bytes_room, (size_t)length + 1, 1))
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %llu bytes", input->path,
                        (unsigned long long)length);
    return clv_input_read_at(input, offset, z->bytes, (size_t)length);
}

/* Reads the index of the open shard, unless it was read for the previous chunk. */
static clv_status read_index(clv_zarr *z, const clv_input *input)
{
    const uint64_t bytes = (uint64_t)z->per_shard * PLACE + (z->index_sum ? CHECKSUM : 0);
    if (z->indexed.data && strcmp(z->indexed.data, input->path) == 0) return CLV_OK;
    clv_text_restart(&z->indexed);
    if (bytes > input->length)
        return clv_fail(CLV_E_FORMAT, "%s: the file has %llu bytes, too few for its index",
                        input->path, (unsigned long long)input->length);
    if (!clv_reserve(&z->index, &z->index_room, (size_t)bytes, 1))
        return clv_fail(CLV_E_MEMORY, "%s: out of memory", input->path);
    CLV_TRY(clv_input_read_at(input, z->index_first ? 0 : input->length - bytes, z->index,
                              (size_t)bytes));
    size_t there = (size_t)bytes;
    if (z->index_sum) CLV_TRY(check_sum(z, input->path, z->index, &there));
    clv_text_add(&z->indexed, "%s", input->path);
    if (z->indexed.failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", input->path);
    return CLV_OK;
}

/* Finds the offset and length of a chunk in its shard. */
static clv_status find_in_shard(clv_zarr *z, const clv_input *input, size_t inner, uint64_t *offset,
                                uint64_t *length)
{
    CLV_TRY(read_index(z, input));
    *offset = little(z->index + inner * PLACE, 8);
    *length = little(z->index + inner * PLACE + 8, 8);
    return CLV_OK;
}

static clv_status read_opened(clv_zarr *z, const clv_input *input, size_t inner, void *out)
{
    uint64_t offset = 0, length = input->length;
    if (z->per_shard) {
        CLV_TRY(find_in_shard(z, input, inner, &offset, &length));
        if (offset == NOWHERE && length == NOWHERE) return fill(z, out);
    }
    CLV_TRY(read_bytes(z, input, offset, length));
    z->stored += length;
    return decode(z, input->path, z->bytes, (size_t)length, out);
}

clv_status clv_zarr_read(clv_zarr *z, const size_t *index, void *out)
{
    size_t outer[CLV_ZARR_RANK] = { 0 }, inner = 0;
    for (size_t i = 0; i < z->layout.rank; ++i) {
        outer[i] = index[i] / z->shard[i];
        inner = inner * z->shard[i] + index[i] % z->shard[i];
    }
    name_of(z, outer, &z->name);
    if (z->name.failed) return clv_fail(CLV_E_MEMORY, "%s: out of memory", z->path);
    clv_input input;
    bool there;
    CLV_TRY(open_chunk(z->name.data, &input, &there));
    if (!there) return fill(z, out);
    const clv_status status = read_opened(z, &input, inner, out);
    clv_input_close(&input);
    return status;
}

const clv_zarr_layout *clv_zarr_look(const clv_zarr *z)
{
    return &z->layout;
}

void clv_zarr_close(clv_zarr *z)
{
    if (!z) return;
    clv_free(z->path);
    clv_free(z->bytes), clv_free(z->index), clv_free(z->scratch);
    clv_text_clear(&z->name), clv_text_clear(&z->indexed);
    clv_free(z);
}
