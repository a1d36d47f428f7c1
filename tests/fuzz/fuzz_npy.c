/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an .npy file: an array or an error, and nothing more than the file is allocated. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_file_array array;
    if (clv_npy_read(fuzz_file(data, size), &array)) {
        FUZZ_CHECK(!array.data && !array.rank);
        return 0;
    }
    const size_t bytes = clv_file_array_bytes(&array);
    FUZZ_CHECK(bytes <= 2 * size); /* twice, where a narrow type was widened */
    FUZZ_CHECK(array.rank <= CLV_MAX_RANK);
    fuzz_touch(array.data, bytes);
    FUZZ_CHECK(fuzz_poor || clv_file_array_convert(&array, "fuzz", CLV_F32) == CLV_OK);
    clv_file_array_clear(&array);
    return 0;
}
