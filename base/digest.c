/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SHA-256 with libsodium, which only this file includes. */
#include "base/digest.h"

#include <sodium/crypto_hash_sha256.h>

clv_digest clv_sha256(const void *data, size_t length)
{
    clv_digest digest;
    crypto_hash_sha256(digest.bytes, data, length);
    return digest;
}

void clv_digest_hex(const clv_digest *digest, char out[65])
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < 32; ++i) {
        out[2 * i] = hex[digest->bytes[i] >> 4];
        out[2 * i + 1] = hex[digest->bytes[i] & 15];
    }
    out[64] = '\0';
}

uint64_t clv_fnv1a(uint64_t hash, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}
