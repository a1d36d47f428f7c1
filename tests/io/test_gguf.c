/* SPDX-License-Identifier: Apache-2.0 */
/* host/model/gguf*.c and base/quant.c: GGUF files, right and wrong ones, and the values of blocks. */
#define _XOPEN_SOURCE 700
#include "io_test.h"
#include "run.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/quant.h"

#include <cleave/gguf.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the message must hold. Files whose container is right and whose model is not are not here. */
static const struct {
    const char *name, *part;
    clv_status status;
} wrong[] = {
    { "empty", "0 bytes, but a GGUF file has at least 24", CLV_E_FORMAT },
    { "magic_only", "the version at byte 4 needs 4 bytes, but the file has 0 left", CLV_E_FORMAT },
    { "bad_magic", "begins with the bytes 47 47 4D 4C, expected 47 47 55 46", CLV_E_FORMAT },
    { "big_endian", "a big-endian GGUF file", CLV_E_UNSUPPORTED },
    { "version_1", "of GGUF version 1; expected 2 or 3", CLV_E_UNSUPPORTED },
    { "cut_header", "but the 4 bytes after it hold at most 0", CLV_E_FORMAT },
    { "cut_metadata", "tokenizer.ggml.tokens", CLV_E_FORMAT },
    { "cut_infos", "is truncated", CLV_E_FORMAT },
    { "cut_data", "of the data, but the file has", CLV_E_FORMAT },
    { "kv_count_huge", "of pairs of metadata at byte 16 is 1152921504606846976, but",
      CLV_E_FORMAT },
    { "string_beyond", "of a key at byte 469 is 1099511627776", CLV_E_FORMAT },
    { "unknown_type", "tensor \"blk.0.ffn_up.weight\" is of type 77", CLV_E_FORMAT },
    { "dims_huge", "dimension 1 of tensor \"token_embd.weight\" is 576460752303423488",
      CLV_E_FORMAT },
    { "offset_beyond", "tensor \"output_norm.weight\" needs bytes", CLV_E_FORMAT },
};

static void every_bad_file_gets_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLV_LEN(wrong); ++i) {
        clv_gguf *file;
        const char *path = test_data("generate/bad/%s.gguf", wrong[i].name);
        EXPECT_FAIL(wrong[i].status, wrong[i].part, clv_gguf_open(path, &file));
        EXPECT_FAIL(wrong[i].status, path, clv_gguf_open(path, &file));
        assert_null(file);
    }
}

static void a_good_file_is_read(void **state)
{
    (void)state;
    static const char *const good[] = { "ok", "ok_v2", "ok_tail" };
    for (size_t i = 0; i < CLV_LEN(good); ++i) {
        clv_gguf *file;
        clv_gguf_value v, token;
        float row[32];
        EXPECT_OK(clv_gguf_open(test_data("generate/bad/%s.gguf", good[i]), &file));
        assert_int_equal(clv_gguf_version(file), i == 1 ? 2 : 3);
        assert_int_equal(clv_gguf_pair_count(file), 17);
        assert_string_equal(clv_gguf_pair(file, 0, &v), "general.architecture");
        assert_int_equal(v.length, 5);
        assert_memory_equal(v.text, "llama", 5);
        assert_null(clv_gguf_pair(file, 17, NULL));
        assert_true(clv_gguf_get(file, "llama.embedding_length", &v));
        assert_int_equal(v.whole, 32);
        assert_true(clv_gguf_get(file, "llama.rope.freq_base", &v));
        assert_float_equal(v.number, 1e4, 0);
        assert_false(clv_gguf_get(file, "llama.nothing", &v));
        assert_true(clv_gguf_get(file, "tokenizer.ggml.tokens", &v));
        assert_int_equal(v.count, 262);
        for (size_t k = 0; k < 262; ++k)
            assert_true(clv_gguf_next(&v, &token));
        assert_int_equal(token.length, 3); /* U+0120 and a */
        assert_memory_equal(token.text,
                            "\xC4\xA0"
                            "a",
                            3);
        assert_false(clv_gguf_next(&v, &token));

        assert_int_equal(clv_gguf_tensor_count(file), 11);
        const clv_gguf_tensor *t = clv_gguf_tensor_find(file, "token_embd.weight");
        assert_ptr_equal(t, clv_gguf_tensor_at(file, 0));
        assert_int_equal(t->type, CLV_QUANT_F16);
        assert_int_equal(t->extent[0], 32);
        assert_int_equal(t->extent[1], 262);
        assert_int_equal(t->bytes, 32 * 262 * 2);
        EXPECT_OK(clv_gguf_read_f32(file, t, 261 * 32, 32, row));
        for (size_t k = 0; k < 32; ++k)
            assert_true(fabsf(row[k]) < 1.2F && row[k] != 0);
        EXPECT_FAIL(CLV_E_ARGUMENT, "it has 8384", clv_gguf_read_f32(file, t, 262 * 32, 32, row));
        assert_null(clv_gguf_tensor_find(file, "token_embd"));
        clv_gguf_close(file);
    }
}

/* ---- files that are made here ------------------------------------------------------------------- */

typedef struct maker {
    unsigned char bytes[65536];
    size_t used;
} maker;

static void put(maker *m, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i)
        m->bytes[m->used++] = i < 8 ? (unsigned char)(value >> 8 * i) : 0;
}

static void put_text(maker *m, const char *text, size_t length)
{
    put(m, length, 8);
    memcpy(m->bytes + m->used, text, length);
    m->used += length;
}

static void put_start(maker *m, uint64_t tensors, uint64_t pairs)
{
    m->used = 0;
    put(m, 0x46554747, 4), put(m, 3, 4), put(m, tensors, 8), put(m, pairs, 8);
}

static void put_u32(maker *m, const char *key, uint32_t value)
{
    put_text(m, key, strlen(key));
    put(m, CLV_GGUF_U32, 4), put(m, value, 4);
}

static void put_tensor(maker *m, const char *name, uint64_t columns, uint32_t type, uint64_t offset)
{
    put_text(m, name, strlen(name));
    put(m, 1, 4), put(m, columns, 8), put(m, type, 4), put(m, offset, 8);
}

static const char *written(const maker *m)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/made.gguf", test_temp_dir());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(m->bytes, 1, m->used, file), m->used);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void refuses(const maker *m, const char *part)
{
    clv_gguf *file;
    EXPECT_FAIL(CLV_E_FORMAT, part, clv_gguf_open(written(m), &file));
    assert_null(file);
}

static void metadata_is_checked(void **state)
{
    (void)state;
    maker m;
    put_start(&m, 0, 2), put_u32(&m, "a", 1), put_u32(&m, "a", 2);
    refuses(&m, "the key a occurs twice");
    put_start(&m, 0, 1), put_text(&m, "a\0b", 3), put(&m, CLV_GGUF_U8, 4), put(&m, 0, 1);
    refuses(&m, "has a NUL byte");
    put_start(&m, 0, 1), put_text(&m, "", 0), put(&m, CLV_GGUF_U8, 4), put(&m, 0, 8);
    refuses(&m, "has 0 bytes, expected 1 to 65535");
    put_start(&m, 0, 1), put_text(&m, "a", 1), put(&m, 13, 4), put(&m, 0, 8);
    refuses(&m, "value type 13, expected 0 to 12");
    put_start(&m, 0, 1), put_text(&m, "a", 1), put(&m, CLV_GGUF_BOOL, 4), put(&m, 2, 8);
    refuses(&m, "a bool of a is 2");
    put_start(&m, 0, 1), put_text(&m, "a", 1), put(&m, CLV_GGUF_ARRAY, 4);
    put(&m, CLV_GGUF_U32, 4), put(&m, 0x4000000000000001, 8), put(&m, 0, 8);
    refuses(&m, "of a at byte 41 is 4611686018427387905");
    put_start(&m, 0, 1), put_text(&m, "a", 1);
    for (size_t i = 0; i < 6; ++i)
        put(&m, CLV_GGUF_ARRAY, 4), put(&m, 1, i ? 8 : 0);
    put(&m, 0, 64);
    refuses(&m, "nests arrays more than 4 deep");
    static const uint32_t bad[] = { 0, 4, 48, 131072 };
    for (size_t i = 0; i < CLV_LEN(bad); ++i) {
        put_start(&m, 0, 1), put_u32(&m, "general.alignment", bad[i]);
        refuses(&m, "expected a power of two from 8 to 65536");
    }
    put_start(&m, 0, 1), put_text(&m, "general.alignment", 17);
    put(&m, CLV_GGUF_U64, 4), put(&m, 32, 8);
    refuses(&m, "general.alignment is 32 (u64)");
}

static void tensors_are_checked(void **state)
{
    (void)state;
    maker m;
    put_start(&m, 2, 0), put_tensor(&m, "x", 4, 0, 0), put_tensor(&m, "x", 4, 0, 32);
    put(&m, 0, 256);
    refuses(&m, "tensor \"x\" occurs twice");
    put_start(&m, 2, 0), put_tensor(&m, "x", 9, 0, 0), put_tensor(&m, "y", 4, 0, 32);
    put(&m, 0, 256);
    refuses(&m, "tensors \"x\" and \"y\" overlap");
    put_start(&m, 1, 0), put_tensor(&m, "x", 4, 0, 16), put(&m, 0, 256);
    refuses(&m, "begin at byte 16, expected a multiple of 32");
    put_start(&m, 1, 0), put_tensor(&m, "x", 48, 2, 0), put(&m, 0, 256);
    refuses(&m, "rows of tensor \"x\" have 48 weights, expected whole blocks of 32 (Q4_0)");
    put_start(&m, 1, 0), put_tensor(&m, "x", 0, 0, 0), put(&m, 0, 256);
    refuses(&m, "dimension 0 of tensor \"x\" is 0");
    put_start(&m, 1, 0), put_tensor(&m, "x", 4, 4, 0), put(&m, 0, 256);
    refuses(&m, "tensor \"x\" is of type 4");
    put_start(&m, 1, 0), put_text(&m, "x", 1), put(&m, 5, 4), put(&m, 0, 256);
    refuses(&m, "has 5 dimensions, expected 1 to 4");
    put_start(&m, 1, 0), put_text(&m, "x", 1), put(&m, 2, 4);
    put(&m, 0x100000000, 8), put(&m, 0x100000000, 8), put(&m, 0, 256);
    refuses(&m, "a product below 2^63");
    char name[66];
    memset(name, 'n', sizeof name);
    name[65] = '\0';
    put_start(&m, 1, 0), put_tensor(&m, name, 4, 0, 0), put(&m, 0, 256);
    refuses(&m, "has 65 bytes, expected 1 to 64");
}

static void nested_arrays_are_walked(void **state)
{
    (void)state;
    maker m;
    clv_gguf *file;
    clv_gguf_value outer, inner, element;
    put_start(&m, 0, 1), put_text(&m, "a", 1), put(&m, CLV_GGUF_ARRAY, 4);
    put(&m, CLV_GGUF_ARRAY, 4), put(&m, 2, 8);
    put(&m, CLV_GGUF_STRING, 4), put(&m, 2, 8), put_text(&m, "one", 3), put_text(&m, "", 0);
    put(&m, CLV_GGUF_I16, 4), put(&m, 1, 8), put(&m, 0xFFFE, 2);
    EXPECT_OK(clv_gguf_open(written(&m), &file));
    assert_true(clv_gguf_get(file, "a", &outer));
    assert_true(clv_gguf_next(&outer, &inner));
    assert_true(clv_gguf_next(&inner, &element));
    assert_int_equal(element.length, 3);
    assert_true(clv_gguf_next(&inner, &element));
    assert_int_equal(element.length, 0);
    assert_false(clv_gguf_next(&inner, &element));
    assert_true(clv_gguf_next(&outer, &inner));
    assert_true(clv_gguf_next(&inner, &element));
    assert_int_equal(element.whole, -2);
    assert_false(clv_gguf_next(&outer, &inner));
    clv_gguf_close(file);
}

/* ---- values ------------------------------------------------------------------------------------- */

static void check_row(clv_quant type, const clv_quant_facts *facts, const clv_json *row)
{
    unsigned char bytes[1024];
    float values[512];
    const char *hex = clv_json_string(clv_json_get(row, "hex"), "");
    const clv_json *want = clv_json_get(row, "values");
    const size_t length = strlen(hex) / 2, count = clv_json_count(want);
    assert_true(length && length <= sizeof bytes && count <= CLV_LEN(values));
    for (size_t i = 0; i < length; ++i) {
        const char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    assert_int_equal(length / facts->bytes * facts->count, count);
    clv_quant_widen(type, bytes, length / facts->bytes, values);
    double largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs(clv_json_number(clv_json_at(want, i), 0)));
    for (size_t i = 0; i < count; ++i)
        if (fabs(values[i] - clv_json_number(clv_json_at(want, i), NAN)) > 3e-7 * largest)
            fail_msg("%s: weight %zu is %.9g, expected %.9g", facts->name, i, (double)values[i],
                     clv_json_number(clv_json_at(want, i), NAN));
}

static void blocks_have_their_values(void **state)
{
    (void)state;
    size_t length, seen = 0;
    clv_json *root;
    char *text = test_data_read("generate/quant.json", &length);
    EXPECT_OK(clv_json_parse("quant.json", text, length, &root));
    for (const char *name = NULL; (name = clv_json_next_key(root, name)); ++seen) {
        const clv_json *type = clv_json_get(root, name), *rows = clv_json_get(type, "rows");
        const uint32_t id = (uint32_t)clv_json_int(clv_json_get(type, "id"), 0);
        const clv_quant_facts *facts = clv_quant_get_facts(id);
        assert_non_null(facts);
        assert_true(facts->supported);
        assert_string_equal(facts->name, name);
        assert_int_equal(facts->count, clv_json_int(clv_json_get(type, "block"), 0));
        assert_int_equal(facts->bytes, clv_json_int(clv_json_get(type, "bytes"), 0));
        for (size_t i = 0; i < clv_json_count(rows); ++i)
            check_row((clv_quant)id, facts, clv_json_at(rows, i));
    }
    assert_int_equal(seen, 15);
    assert_null(clv_quant_get_facts(4));
    assert_null(clv_quant_get_facts(77));
    clv_json_free(root);
    clv_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_file_gets_its_verdict),
        cmocka_unit_test(a_good_file_is_read),
        cmocka_unit_test(metadata_is_checked),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(nested_arrays_are_walked),
        cmocka_unit_test(blocks_have_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
