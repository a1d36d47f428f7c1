/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks Zstandard with the Zstandard library. */
#include "host/io/formats/unpack.h"

#include "base/error.h"

#ifdef CLEAVE_HAVE_ZSTD

#include <zstd.h>

clv_status clv_unpack_zstd(const char *path, const void *in, size_t length, void *out,
                           size_t wanted)
{
    const size_t got = ZSTD_decompress(out, wanted, in, length);
    if (ZSTD_isError(got))
        return clv_fail(CLV_E_FORMAT, "%s: the Zstandard data are damaged: %s", path,
                        ZSTD_getErrorName(got));
    if (got != wanted)
        return clv_fail(CLV_E_FORMAT, "%s: the data unpack to %zu bytes, expected %zu", path, got,
                        wanted);
    return CLV_OK;
}

#else

clv_status clv_unpack_zstd(const char *path, const void *in, size_t length, void *out,
                           size_t wanted)
{
    (void)in, (void)length, (void)out, (void)wanted;
    return clv_fail(CLV_E_FORMAT,
                    "%s: the data are compressed with Zstandard, but this Cleave was built without "
                    "Zstandard support",
                    path);
}

#endif
