/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a GGUF file. The result is metadata that can be walked and tensors that lie in the file, or an
 * error. */
#include "fuzz.h"

#include "base/alloc.h"

#include <cleave/gguf.h>

#include <string.h>

static void walk(clv_gguf_value v)
{
    clv_gguf_value element;
    if (v.type == CLV_GGUF_STRING) fuzz_touch(v.text, v.length);
    while (clv_gguf_next(&v, &element))
        walk(element);
}

static void read_whole(const clv_gguf *file, const clv_gguf_tensor *t, size_t size)
{
    FUZZ_CHECK(t->bytes <= size && t->offset <= size - t->bytes);
    char *bytes = fuzz_alloc((size_t)t->bytes + 1, 1);
    FUZZ_CHECK(bytes);
    FUZZ_CHECK(fuzz_poor || clv_gguf_read(file, t, 0, bytes, (size_t)t->bytes) == CLV_OK);
    fuzz_touch(bytes, (size_t)t->bytes);
    clv_free(bytes);
    const clv_quant_facts *facts = clv_quant_get_facts(t->type);
    FUZZ_CHECK(facts);
    if (!facts->supported) return;
    float *values = fuzz_alloc((size_t)t->count + 1, sizeof *values);
    FUZZ_CHECK(values);
    FUZZ_CHECK(fuzz_poor || clv_gguf_read_f32(file, t, 0, (size_t)t->count, values) == CLV_OK);
    fuzz_touch(values, (size_t)t->count * sizeof *values);
    clv_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_gguf *file;
    if (clv_gguf_open(fuzz_file(data, size), &file)) {
        FUZZ_CHECK(!file);
        return 0;
    }
    for (size_t i = 0; i < clv_gguf_pair_count(file); ++i) {
        clv_gguf_value v, again;
        const char *key = clv_gguf_pair(file, i, &v);
        FUZZ_CHECK(*key && clv_gguf_get(file, key, &again) && again.type == v.type);
        walk(v);
    }
    for (size_t i = 0; i < clv_gguf_tensor_count(file); ++i) {
        const clv_gguf_tensor *t = clv_gguf_tensor_at(file, i);
        FUZZ_CHECK(clv_gguf_tensor_find(file, t->name) == t);
        read_whole(file, t, size);
    }
    clv_gguf_close(file);
    return 0;
}
