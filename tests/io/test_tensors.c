/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/tensors*.c: safetensors files, right and wrong ones, and what is written. */
#define _XOPEN_SOURCE 700
#include "io_test.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

#include <cleave/tensors.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *bad(const char *name)
{
    return test_data("model/bad/%s.safetensors", name);
}

/* What the message about a file must hold: the files that the format's library rejects, and three
 * that it takes although the format's text does not. */
static const struct {
    const char *name, *part;
} wrong[] = {
    { "empty_file", "0 bytes, but a safetensors file has at least 8" },
    { "seven_bytes", "7 bytes, but a safetensors file has at least 8" },
    { "len_only", "does not begin with a brace" },
    { "len_beyond_file", "a header of 1000000 bytes, expected at most 78" },
    { "len_huge", "a header of 9223372036854775813 bytes" },
    { "len_minus_8", "a header of 18446744073709551608 bytes" },
    { "not_json", "not valid JSON" },
    { "json_array", "does not begin with a brace" },
    { "leading_space", "does not begin with a brace" },
    { "bad_utf8", "not valid JSON" },
    { "truncated_data",
      "truncated: tensor \"w\" ends at byte 32 of the data, but the file has 16" },
    { "trailing_bytes", "2 bytes after the last tensor" },
    { "hole", "a hole before tensor \"b\": it begins at byte 8 of the data, expected 4" },
    { "overlap", "an overlap before tensor \"b\"" },
    { "begin_after_end", "data_offsets 16 to 0" },
    { "negative_offset", "data_offsets -16 to 0" },
    { "offset_2_64", "not valid JSON" },
    { "offset_float", "not a list of two whole numbers" },
    { "shape_mismatch", "span 16 bytes, but 4 elements of F64 need 32" },
    { "shape_overflow", "overflows" },
    { "shape_overflow2", "are not a whole number of bytes" },
    { "negative_dim", "dimension 0 is not a whole number of 0 or more" },
    { "unknown_dtype", "dtype \"F31\" is unknown" },
    { "dtype_number", "dtype is not a string" },
    { "no_shape", "shape is missing" },
    { "one_offset", "not a list of two whole numbers" },
    { "duplicate_name", "not valid JSON" },
    { "metadata_not_strings", "__metadata__ \"n\" is not a string" },
    { "nul_in_name", "not valid JSON" },
    { "pickle", "a PyTorch pickle" },
    { "lfs_pointer", "a Git LFS pointer" },
};
static const char *const right[] = { "ok",          "ok_metadata_padding", "ok_scalar",
                                     "ok_zero_dim", "ok_unaligned",        "ok_escaped_name",
                                     "ok_bf16",     "ok_empty_table",      "ok_nan_values" };

static void every_bad_file_gets_its_verdict(void **state)
{
    (void)state;
    clv_tensors *file;
    for (size_t i = 0; i < CLV_LEN(wrong); ++i) {
        EXPECT_FAIL(CLV_E_FORMAT, wrong[i].part, clv_tensors_open(bad(wrong[i].name), &file));
        EXPECT_FAIL(CLV_E_FORMAT, bad(wrong[i].name),
                    clv_tensors_open(bad(wrong[i].name), &file)); /* names the file */
        assert_null(file);
    }
    for (size_t i = 0; i < CLV_LEN(right); ++i) {
        EXPECT_OK(clv_tensors_open(bad(right[i]), &file));
        clv_tensors_close(file);
    }
    assert_int_equal(CLV_LEN(wrong) + CLV_LEN(right) + 1, 41); /* deep nesting is below */
    EXPECT_FAIL(CLV_E_IO, "cannot open", clv_tensors_open(io_temp("not there"), &file));
    EXPECT_FAIL(CLV_E_IO, "regular file", clv_tensors_open(test_data("model"), &file));
}

/* The library's verdicts, from the file that its generator wrote: all that it rejects we reject. */
static void verdicts_agree_with_the_library(void **state)
{
    (void)state;
    unsigned char *text;
    size_t length;
    io_load(test_data("model/bad/verdicts.json"), &text, &length);
    clv_json *verdicts;
    EXPECT_OK(clv_json_parse("verdicts.json", (const char *)text, length, &verdicts));
    assert_int_equal(clv_json_count(verdicts), 41);
    size_t stricter = 0;
    for (const char *name = NULL; (name = clv_json_next_key(verdicts, name));) {
        clv_tensors *file;
        if (strcmp(name, "deep_nesting") == 0) continue;
        const char *library =
            clv_json_string(clv_json_get(clv_json_get(verdicts, name), "library"), "");
        const clv_status status = clv_tensors_open(bad(name), &file);
        if (strcmp(library, "reject") == 0)
            assert_int_equal(status, CLV_E_FORMAT);
        else
            stricter += status != CLV_OK;
        clv_tensors_close(file);
    }
    assert_int_equal(stricter, 3); /* a name twice, a NUL in a name, a space before the brace */
    clv_json_free(verdicts);
    free(text);
}

/* A file with this header and `data` zero bytes behind it. */
static const char *with_header(const char *header, size_t length, size_t data)
{
    clv_text text = { 0 };
    char head[8];
    for (size_t i = 0; i < 8; ++i)
        head[i] = (char)((uint64_t)length >> 8 * i);
    clv_text_bytes(&text, head, 8);
    clv_text_bytes(&text, header, length);
    for (size_t i = 0; i < data; ++i)
        clv_text_bytes(&text, "", 1);
    assert_false(text.failed);
    const char *path = io_make("made.safetensors", text.data, text.length);
    clv_text_clear(&text);
    return path;
}

static void nesting_does_not_exhaust_the_stack(void **state)
{
    (void)state;
    clv_text text = { 0 };
    clv_tensors *file;
    clv_text_add(&text, "{\"w\":");
    for (size_t i = 0; i < 20000; ++i)
        clv_text_add(&text, "[");
    for (size_t i = 0; i < 20000; ++i)
        clv_text_add(&text, "]");
    clv_text_add(&text, "}");
    EXPECT_FAIL(CLV_E_FORMAT, "not valid JSON",
                clv_tensors_open(with_header(text.data, text.length, 0), &file));
    clv_text_clear(&text);
}

/* 0x0280 to 0x0580 bytes begin as pickles do. */
static void no_length_of_a_header_is_a_pickle(void **state)
{
    (void)state;
    static const char table[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    char header[0x580];
    clv_tensors *file;
    memset(header, ' ', sizeof header);
    memcpy(header, table, strlen(table));
    for (size_t length = 0x180; length <= sizeof header; length += 0x100) {
        EXPECT_OK(clv_tensors_open(with_header(header, length, 1), &file));
        clv_tensors_close(file);
    }
    header[0] = ' ';
    EXPECT_FAIL(CLV_E_FORMAT, "a PyTorch pickle",
                clv_tensors_open(with_header(header, 0x280, 1), &file));
}

static void ranks_and_bits_are_checked(void **state)
{
    (void)state;
    clv_tensors *file;
    static const char nine[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],"
                               "\"data_offsets\":[0,1]}}";
    EXPECT_FAIL(CLV_E_SHAPE, "9 dimensions",
                clv_tensors_open(with_header(nine, strlen(nine), 1), &file));
    static const char loose[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    EXPECT_FAIL(CLV_E_FORMAT, "span 8 bytes, but 1 elements of F32 need 4",
                clv_tensors_open(with_header(loose, strlen(loose), 8), &file));
    static const char odd[] = "{\"w\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}";
    EXPECT_FAIL(CLV_E_FORMAT, "not a whole number of bytes",
                clv_tensors_open(with_header(odd, strlen(odd), 2), &file));
    static const char even[] = "{\"w\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}";
    EXPECT_OK(clv_tensors_open(with_header(even, strlen(even), 2), &file));
    float value;
    EXPECT_FAIL(CLV_E_ARGUMENT, "F4, expected one of",
                clv_tensors_read_f32(file, clv_tensors_at(file, 0), 0, 1, &value));
    clv_tensors_close(file);
}

static void values_are_read_at_any_address(void **state)
{
    (void)state;
    clv_tensors *file;
    float value = 7;
    EXPECT_OK(clv_tensors_open(bad("ok_unaligned"), &file));
    const clv_tensor *w = clv_tensors_find(file, "w");
    assert_non_null(w);
    assert_true(w->offset % 4 != 0);
    EXPECT_OK(clv_tensors_read_f32(file, w, 0, 1, &value));
    assert_true(value == 0);
    assert_null(clv_tensors_find(file, "v"));
    assert_null(clv_tensors_at(file, 1));
    EXPECT_FAIL(CLV_E_ARGUMENT, "2 elements from element 0",
                clv_tensors_read_f32(file, w, 0, 2, &value));
    EXPECT_FAIL(CLV_E_ARGUMENT, "has 4 bytes", clv_tensors_read(file, w, &value, 3));
    clv_tensors_close(file);

    EXPECT_OK(clv_tensors_open(bad("ok_metadata_padding"), &file));
    assert_string_equal(clv_tensors_metadata(file, "format"), "pt");
    assert_null(clv_tensors_metadata(file, "other"));
    clv_tensors_close(file);
    EXPECT_OK(clv_tensors_open(bad("ok_nan_values"), &file));
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_at(file, 0), 0, 1, &value));
    assert_true(isnan(value));
    clv_tensors_close(file);
}

static const float singles[6] = { 1, -2.5f, 3e38f, 0x1p-140f, -0.0f, 7 };
static const double doubles[2] = { 0.1, -1e300 };
static const uint16_t halves[4] = { 0x3C00, 0x0001, 0xFBFF, 0x7C00 };
static const uint16_t brains[2] = { 0x3F80, 0xC2F7 };
static const int64_t whole[1] = { -5 };
static const uint8_t byte[3] = { 1, 2, 255 };
static const clv_tensor_source sources[] = {
    { "bytes", CLV_TENSOR_U8, 1, { 3 }, byte },
    { "h\xC3\xA9 \"x\"", CLV_TENSOR_F16, 1, { 4 }, halves },
    { "a", CLV_TENSOR_F32, 2, { 2, 3 }, singles },
    { "none", CLV_TENSOR_F32, 2, { 0, 3 }, NULL },
    { "b", CLV_TENSOR_BF16, 1, { 2 }, brains },
    { "d", CLV_TENSOR_F64, 1, { 2 }, doubles },
    { "step", CLV_TENSOR_I64, 0, { 0 }, whole },
};
static const char *const metadata[] = { "format", "pt", "step", "12", NULL };

static void what_is_written_is_read(void **state)
{
    (void)state;
    const char *path = io_temp("written.safetensors");
    clv_tensors *file;
    float got[6];
    EXPECT_OK(clv_tensors_write(path, sources, CLV_LEN(sources), metadata));
    EXPECT_OK(clv_tensors_open(path, &file));
    assert_int_equal(clv_tensors_count(file), CLV_LEN(sources));
    assert_string_equal(clv_tensors_metadata(file, "step"), "12");
    for (size_t i = 0; i < CLV_LEN(sources); ++i) {
        const clv_tensor *t = clv_tensors_find(file, sources[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, sources[i].type);
        assert_int_equal(t->rank, sources[i].rank);
        assert_memory_equal(t->shape, sources[i].shape, t->rank * sizeof *t->shape);
        assert_int_equal(t->offset % (t->count ? t->bytes / t->count : 1), 0); /* aligned */
        unsigned char bytes[64];
        EXPECT_OK(clv_tensors_read(file, t, bytes, (size_t)t->bytes));
        assert_memory_equal(bytes, sources[i].data ? sources[i].data : bytes, t->bytes);
    }
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_find(file, "a"), 0, 6, got));
    assert_memory_equal(got, singles, sizeof singles);
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_find(file, "a"), 4, 2, got));
    assert_memory_equal(got, singles + 4, 2 * sizeof *singles);
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_find(file, sources[1].name), 0, 4, got));
    assert_true(got[0] == 1 && got[1] == 0x1p-24f && got[2] == -65504 && isinf(got[3]));
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_find(file, "b"), 0, 2, got));
    assert_true(got[0] == 1 && got[1] == -123.5f);
    EXPECT_OK(clv_tensors_read_f32(file, clv_tensors_find(file, "d"), 0, 2, got));
    assert_true(got[0] == 0.1f && isinf(got[1]));
    EXPECT_FAIL(CLV_E_ARGUMENT, "is I64",
                clv_tensors_read_f32(file, clv_tensors_find(file, "step"), 0, 1, got));
    clv_tensors_close(file);
}

static void nothing_wrong_is_written(void **state)
{
    (void)state;
    const char *path = io_temp("absent.safetensors");
    clv_tensor_source twice[] = { sources[0], sources[0] };
    EXPECT_FAIL(CLV_E_ARGUMENT, "two tensors", clv_tensors_write(path, twice, 2, NULL));
    clv_tensor_source one = sources[0];
    one.type = CLV_TENSOR_OTHER;
    EXPECT_FAIL(CLV_E_ARGUMENT, "cannot be written", clv_tensors_write(path, &one, 1, NULL));
    one = sources[0], one.name = "\xFF";
    EXPECT_FAIL(CLV_E_ARGUMENT, "not UTF-8", clv_tensors_write(path, &one, 1, NULL));
    one = sources[0], one.name = "__metadata__";
    EXPECT_FAIL(CLV_E_ARGUMENT, "__metadata__", clv_tensors_write(path, &one, 1, NULL));
    one = sources[0], one.data = NULL;
    EXPECT_FAIL(CLV_E_ARGUMENT, "data is NULL", clv_tensors_write(path, &one, 1, NULL));
    one = (clv_tensor_source){ "w", CLV_TENSOR_F32, 2, { SIZE_MAX / 2, 8 }, byte };
    EXPECT_FAIL(CLV_E_SHAPE, "more memory than can be addressed",
                clv_tensors_write(path, &one, 1, NULL));
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_file_that_was_cut_is_told(void **state)
{
    (void)state;
    const char *path = io_temp("cut.safetensors");
    clv_tensors *file;
    float got[6];
    EXPECT_OK(clv_tensors_write(path, sources, CLV_LEN(sources), NULL));
    EXPECT_OK(clv_tensors_open(path, &file));
    assert_int_equal(truncate(path, (off_t)clv_tensors_find(file, "a")->offset + 4), 0);
    EXPECT_FAIL(CLV_E_FORMAT, "truncated while in use",
                clv_tensors_read_f32(file, clv_tensors_find(file, "a"), 0, 6, got));
    clv_tensors_close(file);
}

static clv_tensors *opened;

static clv_status open_and_write(void)
{
    const clv_status status = clv_tensors_open(bad("ok"), &opened);
    clv_tensors_close(opened);
    if (status) return status;
    return clv_tensors_write(io_temp("memory.safetensors"), sources, CLV_LEN(sources), metadata);
}

static int is_closed(void)
{
    return 1;
}

static void a_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(io_without_memory(open_and_write, is_closed) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_file_gets_its_verdict),
        cmocka_unit_test(verdicts_agree_with_the_library),
        cmocka_unit_test(nesting_does_not_exhaust_the_stack),
        cmocka_unit_test(no_length_of_a_header_is_a_pickle),
        cmocka_unit_test(ranks_and_bits_are_checked),
        cmocka_unit_test(values_are_read_at_any_address),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nothing_wrong_is_written),
        cmocka_unit_test(a_file_that_was_cut_is_told),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
