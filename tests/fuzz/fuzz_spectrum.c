/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a file with one spectrum: a table, an image, or text. An input that begins with '=' is a
 * recipe, see fuzz_cook. */
#include "fuzz.h"

#include "host/io/tables/spectrum.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_one_spectrum s;
    if (size && *data == '=') data = fuzz_cook(data + 1, size - 1, &size);
    if (clv_one_spectrum_read(fuzz_file(data, size), NULL, &s)) {
        FUZZ_CHECK(!s.wavelength && !s.flux && !s.error && !s.lsf && !s.pixels);
        return 0;
    }
    FUZZ_CHECK(s.pixels >= 16 && s.kind && memchr(s.object, '\0', sizeof s.object));
    for (size_t k = 0; k < s.pixels; ++k) {
        FUZZ_CHECK(isfinite(s.wavelength[k]) && s.wavelength[k] > 0);
        FUZZ_CHECK(!k || s.wavelength[k] > s.wavelength[k - 1]);
        FUZZ_CHECK(s.error[k] >= 0 && isfinite(s.error[k]));
        FUZZ_CHECK(!s.lsf || s.lsf[k] > 0);
    }
    clv_one_spectrum_clear(&s);
    return 0;
}
