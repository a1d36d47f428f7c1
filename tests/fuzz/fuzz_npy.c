/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as an .npy file. The result is an array of at most twice the file's size, or an error. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"
#include "host/io/formats/npy_codes.h"
#include "host/io/formats/npy_rows.h"

/* Reads the same file as codes of vectors: all rows can be read, or the file is refused. */
static void as_codes(const char *path, size_t size)
{
    clv_npy_codes file = { 0 };
    if (clv_npy_codes_open(&file, path)) {
        FUZZ_CHECK(!file.rows && !file.bytes);
        return;
    }
    FUZZ_CHECK(file.rows <= size && file.rows * file.bytes <= size);
    uint8_t *row = clv_alloc(file.bytes, 1);
    for (size_t r = 0; row && r < file.rows; ++r) {
        FUZZ_CHECK(fuzz_poor || clv_npy_codes_read(&file, r, 1, row) == CLV_OK);
        fuzz_touch(row, file.bytes);
    }
    clv_free(row);
    clv_npy_codes_close(&file);
}

static void as_rows(const char *path, size_t size)
{
    clv_npy_rows file = { 0 };
    if (clv_npy_rows_open(&file, path)) return;
    FUZZ_CHECK(file.width && (!file.rows || file.width <= size) && file.rows * file.width <= size);
    float *row = file.rows ? clv_alloc(file.width, sizeof *row) : NULL;
    for (size_t r = 0; row && r < file.rows; ++r) {
        FUZZ_CHECK(fuzz_poor || clv_npy_rows_read(&file, r, 1, row) == CLV_OK);
        fuzz_touch(row, file.width * sizeof *row);
    }
    clv_free(row);
    clv_npy_rows_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_file_array array;
    const char *path = fuzz_file(data, size);
    as_codes(path, size);
    as_rows(path, size);
    if (clv_npy_read(path, &array)) {
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
