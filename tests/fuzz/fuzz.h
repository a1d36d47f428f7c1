/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the fuzzers share: the entry that libFuzzer or replay.c calls, memory, and input as a file. */
#ifndef CLEAVE_TESTS_FUZZ_H
#define CLEAVE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* True while replay.c makes an allocation of the library fail: then calls that must succeed otherwise may fail. */
extern bool fuzz_poor;

/* Returns zeroed memory for the fuzzer itself. These allocations never fail. Free with clv_free. */
void *fuzz_alloc(size_t count, size_t size);

/* Returns the path of a regular file in memory with these bytes. The file stays until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Reads every byte, so that a sanitizer reports bytes outside the allocation. */
void fuzz_touch(const void *data, size_t size);

/* Makes a FITS file from a recipe, so that mutations change values instead of padding. Each line becomes a card of
 * 80 columns. A line "END" closes a header; the length of the data (one byte) and the data follow it. Header and
 * data are padded to blocks. The file stays until the next call. */
const uint8_t *fuzz_cook(const uint8_t *recipe, size_t size, size_t *length);

/* Stops the program if a promise of the code under test is broken. */
#define FUZZ_CHECK(promise)               \
    do {                                  \
        if (!(promise)) __builtin_trap(); \
    } while (0)

#endif
