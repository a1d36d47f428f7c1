/* SPDX-License-Identifier: Apache-2.0 */
/* Tests Zarr arrays with missing chunks, which have the fill value; only a limited number may be missing.
 * cli/blobs_forms tests whole movies. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/zarr.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SIDE = 2048, BYTES = SIDE * SIDE * 8 };

static void put(const char *folder, const char *name, const void *data, size_t length)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static clv_zarr *open_array(const char *fill, unsigned side, char folder[4096])
{
    char text[400];
    clv_zarr *z;
    snprintf(folder, 4096, "%s/fill-%s-%u", test_temp_dir(), fill, side);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(text, sizeof text,
             "{\"zarr_format\": 2, \"shape\": [1000000, %u, %u], \"chunks\": [1, %u, %u], "
             "\"dtype\": \"<f8\", \"compressor\": null, \"filters\": null, \"order\": \"C\", "
             "\"fill_value\": %s}",
             side, side, side, side, fill);
    put(folder, ".zarray", text, strlen(text));
    EXPECT_OK(clv_zarr_open(folder, &z));
    return z;
}

static void missing_chunks_have_the_fill_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } fills[] = { { "0", 0 }, { "-2.5", -2.5 } };
    char folder[4096];
    for (size_t i = 0; i < CLV_LEN(fills); ++i) {
        double out[4] = { 1, 2, 3, 4 };
        clv_zarr *z = open_array(fills[i].text, 2, folder);
        EXPECT_OK(clv_zarr_read(z, (const size_t[]){ 7, 0, 0 }, out));
        for (int k = 0; k < 4; ++k)
            assert_true(out[k] == fills[i].value);
        clv_zarr_close(z);
    }
}

/* A folder of 200 bytes can promise any number of frames: 8 GiB of them are made, and 1000 times as many bytes as were
 * read from files. */
static void missing_chunks_are_bounded(void **state)
{
    (void)state;
    char folder[4096];
    double *out = clv_zalloc(BYTES, 1);
    size_t frame = 1, limit = ((size_t)8 << 30) / BYTES;
    assert_non_null(out);
    clv_zarr *z = open_array("0", SIDE, folder);
    for (; frame <= limit; ++frame)
        EXPECT_OK(clv_zarr_read(z, (const size_t[]){ frame, 0, 0 }, out));
    EXPECT_FAIL(CLV_E_FORMAT, "8.6 GB of its pixels are in no file, and 0.0 MB were read",
                clv_zarr_read(z, (const size_t[]){ frame, 0, 0 }, out));
    out[5] = 3;
    put(folder, "0.0.0", out, BYTES);
    EXPECT_OK(clv_zarr_read(z, (const size_t[]){ 0, 0, 0 }, out));
    assert_true(out[5] == 3);
    EXPECT_OK(
        clv_zarr_read(z, (const size_t[]){ frame, 0, 0 }, out)); /* frames that are there help */
    assert_true(out[5] == 0);
    clv_zarr_close(z);
    clv_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_chunks_have_the_fill_value),
        cmocka_unit_test(missing_chunks_are_bounded),
    };
    return cmocka_run_group_tests_name("zarr", tests, NULL, NULL);
}
