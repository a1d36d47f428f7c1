/* SPDX-License-Identifier: Apache-2.0 */
/* Computes two hashes: SHA-256 where two different inputs must never be confused, and FNV-1a for short names. */
#ifndef CLEAVE_BASE_DIGEST_H
#define CLEAVE_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct clv_digest {
    unsigned char bytes[32];
} clv_digest;

clv_digest clv_sha256(const void *data, size_t length);
void clv_digest_hex(const clv_digest *digest, char out[65]);

/* Computes FNV-1a with 64 bits. `hash` is the hash of the bytes before `bytes`, or CLV_FNV1A at the start. */
#define CLV_FNV1A 14695981039346656037u
uint64_t clv_fnv1a(uint64_t hash, const void *bytes, size_t length);

#endif
