/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a FITS file. An input that begins with '=' is a recipe, see fuzz_cook. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/fits.h"

#include <string.h>

enum { CARD = 80 };

static void try_image(const char *path, int hdu)
{
    clv_file_array array;
    clv_fits_cards cards = { 0 };
    if (clv_fits_read(path, hdu, &array, &cards)) {
        FUZZ_CHECK(!array.data && !cards.items);
        return;
    }
    const size_t bytes = clv_file_array_bytes(&array);
    FUZZ_CHECK(array.rank >= 1 && array.rank <= CLV_MAX_RANK && bytes);
    fuzz_touch(array.data, bytes);
    for (size_t i = 0; i < cards.count; ++i)
        FUZZ_CHECK(strlen(cards.items[i].text) <= CARD);
    clv_file_array_clear(&array);
    clv_fits_cards_clear(&cards);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double *values;
    size_t count;
    if (size && *data == '=') {
        data = fuzz_cook(data + 1, size - 1, &size);
    }
    const char *path = fuzz_file(data, size);
    try_image(path, CLV_FITS_FIRST_IMAGE);
    try_image(path, 1);
    if (clv_fits_read_vector(path, &values, &count) == CLV_OK)
        clv_free(values);
    else
        FUZZ_CHECK(!values && !count);
    return 0;
}
