/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks gzip and zlib data into memory with zlib: whole files, and chunks of known length. */
#include "host/io/formats/gunzip.h"
#include "host/io/formats/unpack.h"

#include "base/alloc.h"
#include "base/error.h"
#include "host/io/room.h"

#ifdef CLEAVE_HAVE_CFITSIO /* CFITSIO requires zlib too */

#define ZLIB_CONST
#include <zlib.h>

#include <string.h>

enum {
    AT_ONCE = 1 << 16,
    MAGIC = 2,           /* bytes at the start of every member */
    LENGTH = 4,          /* bytes at the end: unpacked length of the last member, modulo 2^32 */
    MOST_PER_BYTE = 1032 /* deflate cannot compress better */
};

typedef struct unpacker {
    clv_input *input;
    z_stream zlib;
    unsigned char in[AT_ONCE];
    char *out;
    size_t used, capacity;
} unpacker;

static uint64_t left(const unpacker *u)
{
    return u->input->length - u->input->position;
}

/* Reads more of the file if `in` holds fewer than MAGIC bytes. */
static clv_status refill(unpacker *u)
{
    z_stream *z = &u->zlib;
    if (z->avail_in >= MAGIC || !left(u)) return CLV_OK;
    memmove(u->in, z->next_in, z->avail_in);
    const size_t more = (size_t)CLV_MIN(left(u), (uint64_t)(AT_ONCE - z->avail_in));
    CLV_TRY(clv_input_read(u->input, u->in + z->avail_in, more));
    z->next_in = u->in;
    z->avail_in += (uInt)more;
    return CLV_OK;
}

static clv_status grow(unpacker *u)
{
    const size_t room = (size_t)CLV_MIN(clv_io_room(), (uint64_t)SIZE_MAX);
    size_t capacity = u->capacity + CLV_MAX(u->capacity / 2, (size_t)AT_ONCE);
    if (capacity > room && u->used < room) capacity = room;
    CLV_TRY(clv_io_need(u->input->path, "unpacked", capacity));
    char *bytes = clv_realloc(u->out, capacity, 1);
    if (!bytes)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory for %zu unpacked bytes",
                        u->input->path, capacity);
    u->out = bytes;
    u->capacity = capacity;
    return CLV_OK;
}

/* Allocates for the unpacked length that the file's last bytes claim, as far as deflate can reach it. The claim is
 * right for a single member of less than 4 GiB, as most files are. */
static clv_status guess_capacity(unpacker *u)
{
    unsigned char end[LENGTH] = { 0 };
    const uint64_t length = u->input->length;
    if (length > LENGTH) {
        CLV_TRY(clv_input_seek(u->input, length - LENGTH));
        CLV_TRY(clv_input_read(u->input, end, LENGTH));
        CLV_TRY(clv_input_seek(u->input, 0));
    }
    const uint64_t claimed =
        end[0] | (uint64_t)end[1] << 8 | (uint64_t)end[2] << 16 | (uint64_t)end[3] << 24;
    u->capacity = (size_t)CLV_MIN(claimed, length * MOST_PER_BYTE);
    CLV_TRY(clv_io_need(u->input->path, "unpacked", u->capacity));
    return grow(u);
}

/* Unpacks one member to its end. */
static clv_status unpack_member(unpacker *u)
{
    z_stream *z = &u->zlib;
    for (;;) {
        CLV_TRY(refill(u));
        if (u->used == u->capacity) CLV_TRY(grow(u));
        const uInt room = (uInt)CLV_MIN(u->capacity - u->used, (size_t)1 << 30);
        const bool last = !left(u);
        z->next_out = (Bytef *)u->out + u->used;
        z->avail_out = room;
        const int result = inflate(z, Z_NO_FLUSH);
        u->used += room - z->avail_out;
        if (result == Z_STREAM_END) return CLV_OK;
        if (result == Z_MEM_ERROR)
            return clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack it", u->input->path);
        if (result != Z_OK && result != Z_BUF_ERROR)
            return clv_fail(CLV_E_FORMAT, "%s: damaged gzip file: %s", u->input->path,
                            z->msg ? z->msg : zError(result));
        if (z->avail_out && last && (!z->avail_in || result == Z_BUF_ERROR))
            return clv_fail(CLV_E_FORMAT, "%s: the gzip file is truncated", u->input->path);
    }
}

static clv_status unpack_all(unpacker *u)
{
    CLV_TRY(guess_capacity(u));
    for (bool more = true; more;) {
        CLV_TRY(unpack_member(u));
        CLV_TRY(refill(u));
        more =
            u->zlib.avail_in >= MAGIC && u->zlib.next_in[0] == 0x1F && u->zlib.next_in[1] == 0x8B;
        if (more && inflateReset(&u->zlib) != Z_OK)
            return clv_fail(CLV_E_FORMAT, "%s: damaged gzip file", u->input->path);
    }
    return CLV_OK;
}

clv_status clv_gunzip(clv_input *input, char **bytes, size_t *length)
{
    enum { GZIP_ONLY = 16 + MAX_WBITS };
    *bytes = NULL;
    *length = 0;
    unpacker *u = clv_zalloc(1, sizeof *u);
    if (!u) return clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack it", input->path);
    u->input = input;
    u->zlib.next_in = u->in;
    clv_status status = CLV_OK;
    if (inflateInit2(&u->zlib, GZIP_ONLY) != Z_OK)
        status = clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack it", input->path);
    else
        status = unpack_all(u);
    inflateEnd(&u->zlib);
    if (!status) {
        *bytes = u->out;
        *length = u->used;
        u->out = NULL;
    }
    clv_free(u->out);
    clv_free(u);
    return status;
}

clv_status clv_unpack_zlib(const char *path, const void *in, size_t length, void *out,
                           size_t wanted)
{
    enum { EITHER = 32 + MAX_WBITS };
    z_stream z = { .next_in = in };
    if (length > UINT32_MAX || wanted >= UINT32_MAX)
        return clv_fail(CLV_E_FORMAT, "%s: a chunk of %zu bytes is larger than supported", path,
                        length > UINT32_MAX ? length : wanted);
    if (inflateInit2(&z, EITHER) != Z_OK)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack it", path);
    z.avail_in = (uInt)length, z.next_out = out, z.avail_out = (uInt)wanted;
    const int result = inflate(&z, Z_FINISH);
    const size_t got = wanted - z.avail_out;
    inflateEnd(&z);
    if (result == Z_MEM_ERROR)
        return clv_fail(CLV_E_MEMORY, "%s: not enough memory to unpack it", path);
    if (result != Z_STREAM_END || got != wanted)
        return clv_fail(CLV_E_FORMAT,
                        "%s: the zlib data are damaged, or do not unpack to %zu bytes", path,
                        wanted);
    return CLV_OK;
}

#else

clv_status clv_gunzip(clv_input *input, char **bytes, size_t *length)
{
    *bytes = NULL;
    *length = 0;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the file is compressed with gzip, but this Cleave was built without gzip "
                    "support; unpack it first",
                    input->path);
}

clv_status clv_unpack_zlib(const char *path, const void *in, size_t length, void *out,
                           size_t wanted)
{
    (void)in, (void)length, (void)out, (void)wanted;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the data are compressed with zlib, but this Cleave was built without zlib support",
        path);
}

#endif
