/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/npy.c, stream.c: NumPy's files as they are read, right and wrong ones. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_type_order_and_byte_order_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        clv_type type;
    } types[] = { { "i1", CLV_I16 }, { "u1", CLV_U8 },  { "i2", CLV_I16 }, { "u2", CLV_U16 },
                  { "i4", CLV_I32 }, { "u4", CLV_U32 }, { "i8", CLV_I64 }, { "f2", CLV_F32 },
                  { "f4", CLV_F32 }, { "f8", CLV_F64 } };
    static const char *const orders[] = { "little", "big" }, *const layouts[] = { "c", "fortran" };
    for (size_t i = 0; i < CLV_LEN(types); ++i)
        for (size_t o = 0; o < 2; ++o)
            for (size_t l = 0; l < 2; ++l) {
                char name[64];
                const char *order = types[i].code[1] == '1' ? "byte" : orders[o];
                snprintf(name, sizeof name, "%s_%s_%s.npy", types[i].code, order, layouts[l]);
                clv_file_array array;
                EXPECT_OK(clv_npy_read(io_data(name), &array));
                io_expect_golden(&array, types[i].type, 3, (const size_t[]){ 2, 3, 4 });
                clv_file_array_clear(&array);
            }
}

static void every_rank_is_read(void **state)
{
    (void)state;
    static const size_t shapes[5][4] = { { 0 }, { 5 }, { 5, 3 }, { 2, 5, 3 }, { 2, 3, 4, 5 } };
    static const char *const layouts[] = { "c", "fortran" };
    for (size_t rank = 0; rank <= 4; ++rank)
        for (size_t l = 0; l < (rank ? 2 : 1); ++l) {
            char name[64];
            snprintf(name, sizeof name, "rank%zu_%s.npy", rank, layouts[l]);
            clv_file_array array;
            EXPECT_OK(clv_npy_read(io_data(name), &array));
            io_expect_golden(&array, CLV_F32, rank, shapes[rank]);
            clv_file_array_clear(&array);
        }
}

static void fortran_order_is_right_across_tiles(void **state)
{
    (void)state;
    clv_file_array array;
    EXPECT_OK(clv_npy_read(io_data("tiles_fortran.npy"), &array));
    io_expect_golden(&array, CLV_I16, 3, (const size_t[]){ 70, 3, 35 });
    clv_file_array_clear(&array);
}

static void bool_empty_and_versions_are_read(void **state)
{
    (void)state;
    clv_file_array array;
    EXPECT_OK(clv_npy_read(io_data("b1_byte_c.npy"), &array));
    assert_int_equal(array.type, CLV_U8);
    for (size_t i = 0; i < 24; ++i)
        assert_int_equal(((const uint8_t *)array.data)[i], i % 3 == 0);
    clv_file_array_clear(&array);

    EXPECT_OK(clv_npy_read(io_data("empty.npy"), &array));
    assert_int_equal(clv_file_array_count(&array), 0);
    assert_int_equal(array.rank, 2);
    clv_file_array_clear(&array);

    static const char *const names[] = { "version1.npy", "version2.npy", "version3.npy" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        EXPECT_OK(clv_npy_read(io_data(names[i]), &array));
        io_expect_golden(&array, CLV_F32, 2, (const size_t[]){ 2, 3 });
        clv_file_array_clear(&array);
    }
}

static void halves_widen_exactly(void **state)
{
    (void)state;
    static const float want[] = { 0,        -0.0f,    1,         -2,  65504,      0x1p-14f,
                                  0x1p-24f, INFINITY, -INFINITY, NAN, 0x1.998p-4f };
    clv_file_array array;
    EXPECT_OK(clv_npy_read(io_data("half_special.npy"), &array));
    assert_int_equal(clv_file_array_count(&array), CLV_LEN(want));
    for (size_t i = 0; i < CLV_LEN(want); ++i) {
        const float got = ((const float *)array.data)[i];
        if (isnan(want[i]))
            assert_true(isnan(got));
        else
            assert_true(got == want[i] && !signbit(got) == !signbit(want[i]));
    }
    clv_file_array_clear(&array);
}

/* ---- headers made by hand ------------------------------------------------------------------ */

/* A version-1 file with this dict and so many bytes of data. */
static const char *make_npy(const char *dict, size_t data)
{
    char file[600] = "\x93NUMPY\x01";
    const size_t length = strlen(dict);
    assert_true(10 + length + data < sizeof file);
    file[8] = (char)length;
    file[9] = (char)(length >> 8);
    memcpy(file + 10, dict, length);
    for (size_t i = 0; i < data; ++i)
        file[10 + length + i] = (char)i;
    return io_make("made.npy", file, 10 + length + data);
}

static void headers_may_be_written_in_other_ways(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "{\"shape\": (2, 3,), \"descr\": \"<f4\", \"fortran_order\": False}  \n",
        "  { 'shape' : ( 2 , 3 ) ,\n\t'fortran_order' : False , 'descr' : 'f4' , } \r\n",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2L, 3L)}",
    };
    for (size_t i = 0; i < CLV_LEN(dicts); ++i) {
        clv_file_array array;
        EXPECT_OK(clv_npy_read(make_npy(dicts[i], 24), &array));
        assert_int_equal(array.rank, 2);
        assert_int_equal(array.shape[0], 2);
        assert_int_equal(array.shape[1], 3);
        assert_int_equal(((const unsigned char *)array.data)[23], 23);
        clv_file_array_clear(&array);
    }
}

static void wrong_headers_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        size_t data;
        clv_status status;
        const char *part;
    } cases[] = {
        { "", 0, CLV_E_FORMAT, "ends where \"{\" was expected" },
        { "{", 0, CLV_E_FORMAT, "ends where a quoted key" },
        { "[]", 0, CLV_E_FORMAT, "byte 0: found \"[]\", expected \"{\"" },
        { "{}", 0, CLV_E_FORMAT, "the key 'descr' is missing" },
        { "{'descr': '<f4'}", 0, CLV_E_FORMAT, "the key 'fortran_order' is missing" },
        { "{'descr': '<f4', 'fortran_order': False}", 0, CLV_E_FORMAT,
          "the key 'shape' is missing" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, CLV_E_FORMAT,
          "repeated key 'descr'" },
        { "{'color': 1}", 0, CLV_E_FORMAT, "unknown key 'color'" },
        { "{descr: '<f4'}", 0, CLV_E_FORMAT, "a quoted key" },
        { "{'descr' '<f4'}", 0, CLV_E_FORMAT, "expected \":\"" },
        { "{'descr': <f4}", 0, CLV_E_FORMAT, "a quoted dtype" },
        { "{'descr': '<f4}", 0, CLV_E_FORMAT, "a quoted dtype" },
        { "{'descr': '<\\x66'}", 0, CLV_E_FORMAT, "a quoted dtype" },
        { "{'descr': ''}", 0, CLV_E_FORMAT, "dtype ''" },
        { "{'descr': '<f16'}", 0, CLV_E_FORMAT, "dtype '<f16'" },
        { "{'descr': '|f4'}", 0, CLV_E_FORMAT, "dtype '|f4'" },
        { "{'descr': '<<f4'}", 0, CLV_E_FORMAT, "dtype '<<f4'" },
        { "{'descr': '<f4'  'shape': ()}", 0, CLV_E_FORMAT, "expected \",\" or \"}\"" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, CLV_E_FORMAT, "True or False" },
        { "{'descr': '<f4', 'fortran_order': Falsey, 'shape': ()}", 4, CLV_E_FORMAT, "True or" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 6}", 24, CLV_E_FORMAT, "\"(\"" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", 24, CLV_E_FORMAT,
          "after the only extent" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 24, CLV_E_FORMAT,
          "found \"-1,)}\", expected an extent" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,)}", 24, CLV_E_FORMAT,
          "\".5,)}\"" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", 24, CLV_E_FORMAT, "\"3)}\"" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,3)}", 24, CLV_E_FORMAT,
          "\",3)}\"" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 24, CLV_E_FORMAT, "an extent" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", 24, CLV_E_FORMAT,
          "in the shape" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1)}", 4, CLV_E_SHAPE,
          "more than 4 axes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", 4,
          CLV_E_SHAPE, "more memory than can be addressed" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 4,
          CLV_E_SHAPE, "shape [4294967296,4294967296] needs more memory" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", 4,
          CLV_E_SHAPE, "more memory than can be addressed" }, /* times 4 wraps to 4 */
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}", 4, CLV_E_FORMAT,
          "truncated: the file has 4 bytes of data, expected 4000000000000 for shape "
          "[1000000,1000000] of f4" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23, CLV_E_FORMAT,
          "truncated" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25, CLV_E_FORMAT,
          "bytes after the data: the file has 25 bytes of data, expected 24" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", 24, CLV_E_FORMAT,
          "nothing after" },
    };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_file_array array = { .rank = 3 };
        EXPECT_FAIL(cases[i].status, cases[i].part,
                    clv_npy_read(make_npy(cases[i].dict, cases[i].data), &array));
        assert_non_null(strstr(clv_error_message(), "made.npy"));
        assert_true(array.data == NULL && array.rank == 0);
    }
}

static void other_dtypes_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } cases[] = { { "bad_complex.npy", "'<c8' (complex numbers)" },
                  { "bad_records.npy", "structured" },
                  { "bad_object.npy", "'|O' (Python objects)" },
                  { "bad_text.npy", "'<U2' (text)" },
                  { "bad_date.npy", "(dates)" },
                  { "bad_u8.npy", "'<u8' (unsigned integers) cannot be read; expected bool, i1" },
                  { "bad_rank5.npy", "more than 4 axes" } };
    for (size_t i = 0; i < CLV_LEN(cases); ++i) {
        clv_file_array array;
        const clv_status want = strstr(cases[i].part, "axes") ? CLV_E_SHAPE : CLV_E_FORMAT;
        EXPECT_FAIL(want, cases[i].part, clv_npy_read(io_data(cases[i].name), &array));
    }
}

static void a_file_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    static const char *const names[] = { "f4_little_c.npy", "i2_big_fortran.npy", "version3.npy",
                                         "rank0_c.npy", "f2_big_c.npy" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        unsigned char *bytes;
        size_t length;
        io_load(io_data(names[i]), &bytes, &length);
        for (size_t cut = 0; cut < length; ++cut) {
            clv_file_array array;
            EXPECT_FAIL(CLV_E_FORMAT, "cut.npy",
                        clv_npy_read(io_make("cut.npy", bytes, cut), &array));
            assert_null(array.data);
        }
        free(bytes);
    }
}

static void wrong_beginnings_are_errors(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t length;
    clv_file_array array;
    io_load(io_data("version2.npy"), &bytes, &length);
    for (size_t i = 0; i < 6; ++i) {
        bytes[i] ^= 1;
        EXPECT_FAIL(CLV_E_FORMAT, "an NPY file begins with",
                    clv_npy_read(io_make("magic.npy", bytes, length), &array));
        bytes[i] ^= 1;
    }
    bytes[6] = 0;
    EXPECT_FAIL(CLV_E_FORMAT, "version 0.0", clv_npy_read(io_make("v.npy", bytes, length), &array));
    bytes[6] = 4;
    EXPECT_FAIL(CLV_E_FORMAT, "version 4.0", clv_npy_read(io_make("v.npy", bytes, length), &array));
    bytes[6] = 2;
    bytes[10] = 1; /* 65536 and more */
    EXPECT_FAIL(CLV_E_FORMAT, "at most 65536",
                clv_npy_read(io_make("v.npy", bytes, length), &array));
    bytes[11] = 0xFF;
    EXPECT_FAIL(CLV_E_FORMAT, "at most 65536",
                clv_npy_read(io_make("v.npy", bytes, length), &array));
    free(bytes);
}

static void what_is_no_file_is_an_error(void **state)
{
    (void)state;
    clv_file_array array;
    EXPECT_FAIL(CLV_E_IO, "absent.npy: cannot open", clv_npy_read(io_temp("absent.npy"), &array));
    EXPECT_FAIL(CLV_E_IO, "is a directory", clv_npy_read(test_temp_dir(), &array));
    EXPECT_FAIL(CLV_E_IO, "pipe or a device", clv_npy_read("/dev/null", &array));
    const char *pipe = io_temp("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    EXPECT_FAIL(CLV_E_IO, "pipe or a device", clv_npy_read(pipe, &array)); /* and does not wait */
    unlink(pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_order_and_byte_order_is_read),
        cmocka_unit_test(every_rank_is_read),
        cmocka_unit_test(fortran_order_is_right_across_tiles),
        cmocka_unit_test(bool_empty_and_versions_are_read),
        cmocka_unit_test(halves_widen_exactly),
        cmocka_unit_test(headers_may_be_written_in_other_ways),
        cmocka_unit_test(wrong_headers_are_named),
        cmocka_unit_test(other_dtypes_are_refused_by_name),
        cmocka_unit_test(a_file_cut_anywhere_is_an_error),
        cmocka_unit_test(wrong_beginnings_are_errors),
        cmocka_unit_test(what_is_no_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
