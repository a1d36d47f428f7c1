/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a FITS file. An input that begins with '=' is a recipe, so that mutations hit what
 * matters instead of padding: lines become cards of 80 columns, a line "END" closes a header and is
 * followed by the length of the data (one byte) and the data; both are padded to blocks. */
#define _GNU_SOURCE /* memmem */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/fits.h"

#include <string.h>

enum { BLOCK = 2880, CARD = 80, MAX_FILE = 64 * BLOCK };

static size_t pad(uint8_t *file, size_t used, uint8_t with)
{
    const size_t end = clv_round_up(used, BLOCK);
    memset(file + used, with, end - used);
    return end;
}

/* Bytes of the file made from the recipe. */
static size_t cook(const uint8_t *at, size_t size, uint8_t *file)
{
    const uint8_t *end = at + size;
    size_t used = 0;
    while (at < end && used + 4 * BLOCK < MAX_FILE) {
        const uint8_t *line = at;
        while (at < end && *at != '\n')
            ++at;
        const size_t length = (size_t)(at - line);
        const size_t kept = CLV_MIN(length, (size_t)CARD);
        memcpy(file + used, line, kept);
        memset(file + used + kept, ' ', CARD - kept);
        used += CARD;
        if (at < end) ++at;
        if (length != 3 || memcmp(line, "END", 3) != 0) continue;
        used = pad(file, used, ' ');
        const size_t data = at < end ? CLV_MIN((size_t)*at, (size_t)(end - at - 1)) : 0;
        if (at < end) memcpy(file + used, at + 1, data);
        at += at < end ? 1 + data : 0;
        used = pad(file, used + data, 0);
    }
    return used;
}

static void try_image(const char *path, int hdu)
{
    clv_array array;
    clv_fits_cards cards = { 0 };
    if (clv_fits_read(path, hdu, &array, &cards)) {
        FUZZ_CHECK(!array.data && !cards.items);
        return;
    }
    const size_t bytes = clv_array_bytes(&array);
    FUZZ_CHECK(array.rank >= 1 && array.rank <= CLV_MAX_RANK && bytes);
    fuzz_touch(array.data, bytes);
    for (size_t i = 0; i < cards.count; ++i)
        FUZZ_CHECK(strlen(cards.items[i].text) <= CARD);
    clv_array_clear(&array);
    clv_fits_cards_clear(&cards);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[MAX_FILE];
    double *values;
    size_t count;
    if (size && *data == '=') {
        size = cook(data + 1, size - 1, file);
        data = file;
    }
#ifdef CLEAVE_FUZZ
    /* The decompressors of CFITSIO 4.2 read and write out of bounds when tiles are damaged. That is
     * known, not ours to mend, and would hide everything else. */
    if (memmem(data, size, "ZIMAGE", 6)) return 0;
#endif
    const char *path = fuzz_file(data, size);
    try_image(path, CLV_FITS_FIRST_IMAGE);
    try_image(path, 1);
    if (clv_fits_read_vector(path, &values, &count) == CLV_OK)
        clv_free(values);
    else
        FUZZ_CHECK(!values && !count);
    return 0;
}
