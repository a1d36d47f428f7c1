/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/array.c, stream.c, npy.c: NumPy's files, right and wrong ones. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "base/text.h"
#include "host/io/npy.h"
#include "host/io/stream.h"

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
        { "{}", 0, CLV_E_FORMAT, "no key 'descr'" },
        { "{'descr': '<f4'}", 0, CLV_E_FORMAT, "no key 'fortran_order'" },
        { "{'descr': '<f4', 'fortran_order': False}", 0, CLV_E_FORMAT, "no key 'shape'" },
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
          CLV_E_SHAPE, "larger than any memory" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 4,
          CLV_E_SHAPE, "shape [4294967296,4294967296] is larger" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", 4,
          CLV_E_SHAPE, "larger than any memory" }, /* times 4 wraps to 4 */
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}", 4, CLV_E_FORMAT,
          "truncated: 4 bytes of data, expected 4000000000000 for shape [1000000,1000000] of f4" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23, CLV_E_FORMAT,
          "truncated" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25, CLV_E_FORMAT,
          "bytes after the data: 25 bytes of data, expected 24" },
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
        EXPECT_FAIL(CLV_E_FORMAT, "expected NPY's",
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
    EXPECT_FAIL(CLV_E_IO, "pipe or device", clv_npy_read("/dev/null", &array));
    const char *pipe = io_temp("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    EXPECT_FAIL(CLV_E_IO, "pipe or device", clv_npy_read(pipe, &array)); /* and does not wait */
    unlink(pipe);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void fill_golden(clv_file_array *array)
{
    for (size_t i = 0; i < clv_file_array_count(array); ++i) {
        const double v = io_golden(array->type, i);
        switch (array->type) {
        case CLV_U8:
            ((uint8_t *)array->data)[i] = (uint8_t)v;
            break;
        case CLV_I16:
            ((int16_t *)array->data)[i] = (int16_t)v;
            break;
        case CLV_U16:
            ((uint16_t *)array->data)[i] = (uint16_t)v;
            break;
        case CLV_I32:
            ((int32_t *)array->data)[i] = (int32_t)v;
            break;
        case CLV_U32:
            ((uint32_t *)array->data)[i] = (uint32_t)v;
            break;
        case CLV_I64:
            ((int64_t *)array->data)[i] = (int64_t)v;
            break;
        case CLV_F32:
            ((float *)array->data)[i] = (float)v;
            break;
        case CLV_F64:
            ((double *)array->data)[i] = v;
            break;
        }
    }
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const size_t shape[] = { 2, 3, 4, 3 };
    for (int type = CLV_U8; type <= CLV_F64; ++type)
        for (size_t rank = 0; rank <= 4; ++rank) {
            clv_file_array array, back;
            EXPECT_OK(clv_file_array_create(&array, "a", (clv_type)type, rank, shape));
            fill_golden(&array);
            EXPECT_OK(clv_npy_write(io_temp("round.npy"), &array));
            EXPECT_OK(clv_npy_read(io_temp("round.npy"), &back));
            io_expect_golden(&back, (clv_type)type, rank, shape);
            clv_file_array_clear(&array);
            clv_file_array_clear(&back);
        }
}

static void the_bytes_are_those_of_numpy(void **state)
{
    (void)state;
    static const char *const names[] = { "f4_little_c.npy", "i8_little_c.npy", "u1_byte_c.npy",
                                         "rank0_c.npy",     "rank1_c.npy",     "rank4_c.npy" };
    for (size_t i = 0; i < CLV_LEN(names); ++i) {
        clv_file_array array;
        unsigned char *ours, *theirs;
        size_t length, expected;
        EXPECT_OK(clv_npy_read(io_data(names[i]), &array));
        EXPECT_OK(clv_npy_write(io_temp("same.npy"), &array));
        io_load(io_temp("same.npy"), &ours, &length);
        io_load(io_data(names[i]), &theirs, &expected);
        assert_int_equal(ours[128 - 1], '\n');
        assert_int_equal(length, expected);
        assert_memory_equal(ours, theirs, length);
        free(ours), free(theirs);
        clv_file_array_clear(&array);
    }
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    clv_file_array array;
    EXPECT_OK(clv_file_array_create(&array, "a", CLV_F64, 1, (const size_t[]){ 4096 }));
    memset(array.data, 0, clv_file_array_bytes(&array));
    mkdir(io_temp("out"), 0700);

    io_make("out/old.npy", "old", 3);
    io_limit_files(10000);
    EXPECT_FAIL(CLV_E_IO, "old.npy: cannot write", clv_npy_write(io_temp("out/old.npy"), &array));
    EXPECT_FAIL(CLV_E_IO, "new.npy: cannot write", clv_npy_write(io_temp("out/new.npy"), &array));
    io_limit_files(0);
    unsigned char *bytes;
    size_t length;
    io_load(io_temp("out/old.npy"), &bytes, &length);
    assert_true(length == 3 && memcmp(bytes, "old", 3) == 0);
    free(bytes);
    assert_int_equal(io_files_in(io_temp("out")), 1);

    EXPECT_FAIL(CLV_E_IO, "cannot create", clv_npy_write(io_temp("nowhere/a.npy"), &array));
    EXPECT_FAIL(CLV_E_IO, "cannot create", clv_npy_write(io_temp("out/old.npy/a.npy"), &array));
    EXPECT_FAIL(CLV_E_IO, "is a directory", clv_npy_write(io_temp("out"), &array));
    if (geteuid() != 0) {
        chmod(io_temp("out"), 0500);
        EXPECT_FAIL(CLV_E_IO, "cannot create", clv_npy_write(io_temp("out/b.npy"), &array));
        chmod(io_temp("out"), 0700);
    }
    assert_int_equal(io_files_in(io_temp("out")), 1);
    clv_file_array_clear(&array);
}

static void a_device_is_written_to_and_stays(void **state)
{
    (void)state;
    struct stat info;
    clv_file_array array;
    if (stat("/dev/full", &info) || !S_ISCHR(info.st_mode)) test_skip("no /dev/full");
    EXPECT_OK(clv_file_array_create(&array, "a", CLV_F64, 1, (const size_t[]){ 4096 }));
    memset(array.data, 0, clv_file_array_bytes(&array));
    EXPECT_FAIL(CLV_E_IO, "/dev/full: cannot write: No space left",
                clv_npy_write("/dev/full", &array));
    EXPECT_OK(clv_npy_write("/dev/null", &array));
    assert_true(stat("/dev/full", &info) == 0 && S_ISCHR(info.st_mode));
    assert_true(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    clv_file_array_clear(&array);
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    struct stat info;
    clv_file_array array, back;
    mkdir(io_temp("links"), 0700);
    assert_int_equal(symlink("../target.npy", io_temp("links/a.npy")), 0);
    io_make("target.npy", "old", 3);
    EXPECT_OK(clv_npy_read(io_data("rank2_c.npy"), &array));
    EXPECT_OK(clv_npy_write(io_temp("links/a.npy"), &array));
    assert_true(lstat(io_temp("links/a.npy"), &info) == 0 && S_ISLNK(info.st_mode));
    EXPECT_OK(clv_npy_read(io_temp("target.npy"), &back));
    assert_int_equal(io_files_in(io_temp("links")), 1);
    clv_file_array_clear(&array), clv_file_array_clear(&back);
}

static void standard_output_is_a_dash(void **state)
{
    (void)state;
    clv_file_array array, back;
    EXPECT_OK(clv_npy_read(io_data("rank2_c.npy"), &array));
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    FILE *file = fopen(io_temp("stdout.npy"), "wb");
    dup2(fileno(file), STDOUT_FILENO);
    const clv_status status = clv_npy_write("-", &array);
    dup2(saved, STDOUT_FILENO);
    close(saved), fclose(file);
    EXPECT_OK(status);
    EXPECT_OK(clv_npy_read(io_temp("stdout.npy"), &back));
    io_expect_golden(&back, CLV_F32, 2, (const size_t[]){ 5, 3 });
    clv_file_array_clear(&array), clv_file_array_clear(&back);
}

/* ---- memory -------------------------------------------------------------------------------- */

static clv_file_array subject;

static clv_status read_subject(void)
{
    const clv_status status = clv_npy_read(io_data("f4_big_fortran.npy"), &subject);
    if (!status) clv_file_array_clear(&subject);
    return status;
}

static int subject_is_empty(void)
{
    return subject.data == NULL && subject.rank == 0;
}

static clv_status write_subject(void)
{
    float data[6] = { 0 };
    const clv_file_array array = { CLV_F32, 2, { 2, 3 }, data };
    return clv_npy_write(io_temp("memory/a.npy"), &array);
}

static int nothing_written(void)
{
    return io_files_in(io_temp("memory")) == 0;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    assert_int_equal(io_without_memory(read_subject, subject_is_empty), 3);
    mkdir(io_temp("memory"), 0700);
    assert_true(io_without_memory(write_subject, nothing_written) >= 1);
    assert_int_equal(io_files_in(io_temp("memory")), 1);

    clv_file_array array;
    EXPECT_OK(clv_file_array_create(&array, "a", CLV_I32, 1, (const size_t[]){ 3 }));
    void *data = array.data;
    clv_alloc_fail_at(1);
    EXPECT_FAIL(CLV_E_MEMORY, "a: no memory for [3] float32 (12 B)",
                clv_file_array_convert(&array, "a", CLV_F32));
    clv_alloc_fail_at(0);
    assert_true(array.type == CLV_I32 && array.data == data); /* as it was */
    clv_file_array_clear(&array);
}

/* ---- arrays -------------------------------------------------------------------------------- */

static void arrays_check_their_sizes(void **state)
{
    (void)state;
    clv_file_array array;
    const size_t huge[] = { SIZE_MAX / 2, 3, 1, 1, 1 };
    EXPECT_FAIL(CLV_E_SHAPE, "x: [", clv_file_array_create(&array, "x", CLV_U8, 2, huge));
    EXPECT_FAIL(CLV_E_SHAPE, "5 axes", clv_file_array_create(&array, "x", CLV_U8, 5, huge));
    EXPECT_FAIL(CLV_E_SHAPE, "any memory", clv_file_array_create(&array, "x", CLV_F64, 1, huge));
    clv_alloc_fail_at(1);
    EXPECT_FAIL(CLV_E_MEMORY, "x: no memory for [",
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
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(the_bytes_are_those_of_numpy),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(a_device_is_written_to_and_stays),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(standard_output_is_a_dash),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(arrays_check_their_sizes),
        cmocka_unit_test(conversion_rounds_once),
        cmocka_unit_test(found_text_is_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
