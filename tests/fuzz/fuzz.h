/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share: the entry that libFuzzer or replay.c calls, and input as a file. */
#ifndef CLEAVE_TESTS_FUZZ_H
#define CLEAVE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An allocation of the library fails in this run: what has to succeed otherwise may fail. */
extern bool fuzz_poor;

/* Zeros, of a fuzzer itself: these allocations never fail. Free with clv_free. */
void *fuzz_alloc(size_t count, size_t size);

/* A regular file with these bytes; it holds until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Reads every byte: a sanitizer tells when one is not ours. */
void fuzz_touch(const void *data, size_t size);

/* A FITS file from a recipe, so that mutations hit what matters instead of padding: lines become cards
 * of 80 columns, a line "END" closes a header and is followed by the length of the data (one byte) and
 * the data; both are padded to blocks. It holds until the next call. */
const uint8_t *fuzz_cook(const uint8_t *recipe, size_t size, size_t *length);

/* Ends the program when a promise of the code under test is broken. */
#define FUZZ_CHECK(promise)               \
    do {                                  \
        if (!(promise)) __builtin_trap(); \
    } while (0)

#endif
