/* SPDX-License-Identifier: Apache-2.0 */
/* host/io/formats/npy.c, output.c: NumPy's files as we write them; every allocation that may fail. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "host/io/formats/npy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    EXPECT_FAIL(CLV_E_MEMORY, "a: not enough memory for [3] float32 (12 B)",
                clv_file_array_convert(&array, "a", CLV_F32));
    clv_alloc_fail_at(0);
    assert_true(array.type == CLV_I32 && array.data == data); /* as it was */
    clv_file_array_clear(&array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(the_bytes_are_those_of_numpy),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(a_device_is_written_to_and_stays),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(standard_output_is_a_dash),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
