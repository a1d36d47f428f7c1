/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/array.c: sizes, conversions; found text made printable. */
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/stream.h"

#include <math.h>
#include <string.h>

static void arrays_check_their_sizes(void **state)
{
    (void)state;
    clv_file_array array;
    const size_t huge[] = { SIZE_MAX / 2, 3, 1, 1, 1 };
    EXPECT_FAIL(CLV_E_SHAPE, "x: [", clv_file_array_create(&array, "x", CLV_U8, 2, huge));
    EXPECT_FAIL(CLV_E_SHAPE, "5 axes", clv_file_array_create(&array, "x", CLV_U8, 5, huge));
    EXPECT_FAIL(CLV_E_SHAPE, "can be addressed",
                clv_file_array_create(&array, "x", CLV_F64, 1, huge));
    clv_alloc_fail_at(1);
    EXPECT_FAIL(CLV_E_MEMORY, "x: not enough memory for [",
                clv_file_array_create(&array, "x", CLV_U8, 1, huge));
    clv_alloc_fail_at(0);
    assert_null(array.data);
    EXPECT_OK(clv_file_array_create(&array, "x", CLV_U8, 0, NULL));
    assert_int_equal(clv_file_array_count(&array), 1);
    EXPECT_FAIL(CLV_E_ARGUMENT, "not to int16", clv_file_array_convert(&array, "x", CLV_I16));
    clv_file_array_clear(&array);
    clv_file_array_clear(&array); /* twice does no harm */

    char text[CLV_SHAPE_TEXT];
    const size_t most[] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
    assert_string_equal(clv_shape_text(0, NULL, text), "[]");
    assert_string_equal(clv_shape_text(3, (const size_t[]){ 61, 60, 60 }, text), "[61,60,60]");
    assert_int_equal(strlen(clv_shape_text(4, most, text)), 4 * 20 + 5);
}

static void conversion_rounds_once(void **state)
{
    (void)state;
    clv_file_array array;
    EXPECT_OK(clv_file_array_create(&array, "x", CLV_I64, 1, (const size_t[]){ 1 }));
    *(int64_t *)array.data = 0x1000001000000001; /* by way of double it would round down */
    EXPECT_OK(clv_file_array_convert(&array, "x", CLV_F32));
    assert_true(*(float *)array.data == 0x1.000002p60f);
    clv_file_array_clear(&array);

    EXPECT_OK(clv_file_array_create(&array, "x", CLV_F64, 1, (const size_t[]){ 3 }));
    memcpy(array.data, (const double[]){ 1e300, NAN, -0.1 }, 24);
    EXPECT_OK(clv_file_array_convert(&array, "x", CLV_F32));
    const float *f = array.data;
    assert_true(isinf(f[0]) && isnan(f[1]) && f[2] == -0.1f);
    clv_file_array_clear(&array);
}

static void found_text_is_made_printable(void **state)
{
    (void)state;
    char out[20];
    assert_string_equal(clv_printable("abc", 3, out, sizeof out), "abc");
    assert_string_equal(clv_printable("a\n\xFF", 3, out, sizeof out), "a\\x0A\\xFF");
    assert_string_equal(clv_printable("", 0, out, sizeof out), "");
    clv_printable("\x01\x02\x03\x04\x05\x06\x07", 7, out, sizeof out);
    assert_string_equal(out, "\\x01\\x02\\x03\\x04...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_check_their_sizes),
        cmocka_unit_test(conversion_rounds_once),
        cmocka_unit_test(found_text_is_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
