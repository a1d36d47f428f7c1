/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of readers and writers share. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { NAMES = 8, NAME = 600 };

const char *io_data(const char *name)
{
    return test_data("io/%s", name);
}

const char *io_temp(const char *name)
{
    static _Thread_local char names[NAMES][NAME];
    static _Thread_local unsigned next;
    char *out = names[next++ % NAMES];
    snprintf(out, NAME, "%s/%s", test_temp_dir(), name);
    return out;
}

const char *io_make(const char *name, const void *bytes, size_t length)
{
    const char *path = io_temp(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

void io_load(const char *path, unsigned char **bytes, size_t *length)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    *bytes = malloc(*length + 1);
    assert_int_equal(fread(*bytes, 1, *length, file), *length);
    fclose(file);
}

size_t io_files_in(const char *directory)
{
    size_t count = 0;
    DIR *open = opendir(directory);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open);
    return count;
}

double io_golden(clv_type type, size_t i)
{
    const double value = 3 * (double)i;
    switch (type) {
    case CLV_F32:
    case CLV_F64:
        return value - 19.5;
    case CLV_U8:
    case CLV_U16:
    case CLV_U32:
        return value;
    default:
        return value - 20;
    }
}

void io_expect_golden(const clv_file_array *array, clv_type type, size_t rank, const size_t *shape)
{
    clv_file_array copy = *array;
    assert_string_equal(clv_type_name(array->type), clv_type_name(type));
    assert_int_equal(array->rank, rank);
    for (size_t i = 0; i < rank; ++i)
        assert_int_equal(array->shape[i], shape[i]);
    assert_int_equal((uintptr_t)array->data % 4096, 0);

    /* convert, on a copy of its own data */
    const size_t count = clv_file_array_count(array);
    EXPECT_OK(clv_file_array_create(&copy, "copy", type, rank, shape));
    memcpy(copy.data, array->data, clv_file_array_bytes(array));
    EXPECT_OK(clv_file_array_convert(&copy, "copy", CLV_F64));
    for (size_t i = 0; i < count; ++i) {
        const double got = ((const double *)copy.data)[i], want = io_golden(type, i);
        if (got == want) continue;
        print_error("element %zu is %g, expected %g\n", i, got, want);
        fail();
    }
    clv_file_array_clear(&copy);
}

unsigned long io_without_memory(clv_status (*call)(void), int (*empty)(void))
{
    for (unsigned long k = 1;; ++k) {
        clv_alloc_fail_at(k);
        const clv_status status = call();
        const unsigned long calls = clv_alloc_calls();
        clv_alloc_fail_at(0);
        if (status == CLV_OK) {
            assert_true(calls < k); /* a failed allocation does not pass unnoticed */
            return calls;
        }
        test_expect_status(CLV_E_MEMORY, status, "call without memory", __FILE__, __LINE__);
        assert_true(empty());
    }
}

void io_limit_files(size_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
