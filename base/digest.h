/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256. */
#ifndef CLEAVE_BASE_DIGEST_H
#define CLEAVE_BASE_DIGEST_H

#include <stddef.h>

typedef struct clv_digest {
    unsigned char bytes[32];
} clv_digest;

clv_digest clv_sha256(const void *data, size_t length);
void clv_digest_hex(const clv_digest *digest, char out[65]);

#endif
