/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of an open GGUF file. */
#ifndef CLEAVE_HOST_MODEL_GGUF_H
#define CLEAVE_HOST_MODEL_GGUF_H

#include <cleave/gguf.h>

typedef struct clv_gguf_entry {
    const char *key;
    clv_gguf_value value;
} clv_gguf_entry;

struct clv_gguf {
    char *path;
    int descriptor;
    uint64_t size; /* size of the file, in bytes */
    uint32_t version;
    uint64_t alignment, data; /* data: offset at which tensors begin, in bytes */

    unsigned char *head; /* the file's first head_bytes: everything before the data */
    size_t head_bytes, head_room;
    char *names; /* keys and names of tensors, each with a NUL at its end */
    size_t names_used, names_room;

    clv_gguf_entry *pairs; /* [pair_count], in the order of the file */
    const clv_gguf_entry **by_key;
    size_t pair_count;
    clv_gguf_tensor *tensors; /* [tensor_count], in the order of the file */
    const clv_gguf_tensor **by_name;
    size_t tensor_count;
};

/* Reads bytes [offset, offset + length) of the file. */
clv_status clv_gguf_read_at(const clv_gguf *file, uint64_t offset, void *out, size_t length);

/* Reads and checks everything before the tensors' data. `path`, `descriptor` and `size` must be set. */
clv_status clv_gguf_parse(clv_gguf *file);

#endif
