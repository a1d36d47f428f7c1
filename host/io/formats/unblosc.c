/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks Blosc with the Blosc library, which includes LZ4, zlib, Zstandard and Snappy. */
#include "host/io/formats/unpack.h"

#include "base/error.h"

#ifdef CLEAVE_HAVE_BLOSC

#include <blosc.h>

clv_status clv_unpack_blosc(const char *path, const void *in, size_t length, void *out,
                            size_t wanted)
{
    size_t bytes = 0;
    if (length < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in, length, &bytes) < 0)
        return clv_fail(CLV_E_FORMAT, "%s: the Blosc data are damaged", path);
    if (bytes != wanted)
        return clv_fail(CLV_E_FORMAT, "%s: the data unpack to %zu bytes, expected %zu", path, bytes,
                        wanted);
    const int got = blosc_decompress_ctx(in, out, wanted, 1);
    if (got < 0 || (size_t)got != wanted)
        return clv_fail(CLV_E_FORMAT, "%s: the Blosc data are damaged", path);
    return CLV_OK;
}

#else

clv_status clv_unpack_blosc(const char *path, const void *in, size_t length, void *out,
                            size_t wanted)
{
    (void)in, (void)length, (void)out, (void)wanted;
    return clv_fail(
        CLV_E_FORMAT,
        "%s: the data are compressed with Blosc, but this Cleave was built without Blosc support",
        path);
}

#endif
