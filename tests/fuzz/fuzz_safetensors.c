/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a safetensors file. The result is tensors that lie side by side in the file, or an error. */
#include "fuzz.h"

#include "base/alloc.h"

#include <cleave/tensors.h>

static void read_whole(const clv_tensors *file, const clv_tensor *tensor, size_t size)
{
    FUZZ_CHECK(tensor->bytes <= size);
    char *bytes = fuzz_alloc((size_t)tensor->bytes + 1, 1);
    FUZZ_CHECK(bytes);
    FUZZ_CHECK(fuzz_poor || clv_tensors_read(file, tensor, bytes, (size_t)tensor->bytes) == CLV_OK);
    fuzz_touch(bytes, (size_t)tensor->bytes);
    clv_free(bytes);
    if (tensor->type > CLV_TENSOR_BF16) return;
    FUZZ_CHECK(tensor->count <= size);
    float *values = fuzz_alloc(tensor->count + 1, sizeof *values);
    FUZZ_CHECK(values);
    FUZZ_CHECK(fuzz_poor || clv_tensors_read_f32(file, tensor, 0, tensor->count, values) == CLV_OK);
    fuzz_touch(values, tensor->count * sizeof *values);
    clv_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_tensors *file;
    if (clv_tensors_open(fuzz_file(data, size), &file)) {
        FUZZ_CHECK(!file);
        return 0;
    }
    const size_t count = clv_tensors_count(file);
    uint64_t bytes = 0, reached = count ? clv_tensors_at(file, 0)->offset : 0;
    for (size_t i = 0; i < count; ++i) {
        const clv_tensor *tensor = clv_tensors_at(file, i);
        FUZZ_CHECK(tensor->offset == reached);
        reached += tensor->bytes;
        bytes += tensor->bytes;
        FUZZ_CHECK(clv_tensors_find(file, tensor->name) == tensor);
        read_whole(file, tensor, size);
    }
    FUZZ_CHECK(!count || reached == size);
    FUZZ_CHECK(bytes <= size);
    clv_tensors_close(file);
    return 0;
}
