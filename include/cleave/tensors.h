/* SPDX-License-Identifier: Apache-2.0 */
/* Named arrays in a file: safetensors, read strictly and written plainly. */
#ifndef CLEAVE_TENSORS_H
#define CLEAVE_TENSORS_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** Element types of the format; numbers never change. */
typedef enum clv_tensor_type {
    CLV_TENSOR_F32 = 0,
    CLV_TENSOR_F64 = 1,
    CLV_TENSOR_F16 = 2,
    CLV_TENSOR_BF16 = 3,
    CLV_TENSOR_I64 = 4,
    CLV_TENSOR_I32 = 5,
    CLV_TENSOR_I16 = 6,
    CLV_TENSOR_I8 = 7,
    CLV_TENSOR_U64 = 8,
    CLV_TENSOR_U32 = 9,
    CLV_TENSOR_U16 = 10,
    CLV_TENSOR_U8 = 11,
    CLV_TENSOR_BOOL = 12,
    CLV_TENSOR_OTHER =
        13, /**< known to the format, not to Cleave (FP8, FP4, complex): bytes only */
} clv_tensor_type;

enum { CLV_TENSOR_RANK_MAX = 8 };

/** What a file says about one tensor. Borrowed from the file's handle; may gain fields at its end. */
typedef struct clv_tensor {
    const char *name;
    const char *type_name; /**< as in the file: "F32" */
    clv_tensor_type type;
    size_t rank;
    size_t shape[CLV_TENSOR_RANK_MAX]; /**< outermost first */
    size_t count;                      /**< elements; 1 for rank 0 */
    uint64_t offset;                   /**< of its first byte in the file */
    uint64_t bytes;
} clv_tensor;

/** An open safetensors file. Any number of threads may read from one. */
typedef struct clv_tensors clv_tensors;

/**
 * Opens a safetensors file and checks all of its header before anything is believed: its length
 * against the file and 100 MB; UTF-8 JSON, one object without repeated names, bounded nesting; types
 * known; shapes whose product cannot wrap and is the number of bytes; ranges that cover the data
 * without hole, overlap or rest. Nothing of the data is read.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT names the tensor, what was found and what was expected (a
 *         Git LFS pointer, a pickle and a GGUF file are named as such); CLV_E_SHAPE (rank above 8);
 *         CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_tensors_open(const char *path, clv_tensors **out);
CLV_API void clv_tensors_close(clv_tensors *tensors); /**< accepts NULL */

CLV_API size_t clv_tensors_count(const clv_tensors *tensors);
/** By position, in the order of the data; NULL beyond the last. */
CLV_API const clv_tensor *clv_tensors_at(const clv_tensors *tensors, size_t index);
/** By name; NULL when there is none. */
CLV_API const clv_tensor *clv_tensors_find(const clv_tensors *tensors, const char *name);
/** A value of the header's __metadata__; NULL when there is none. */
CLV_API const char *clv_tensors_metadata(const clv_tensors *tensors, const char *key);

/**
 * Elements [first, first + count) as float32. F16, BF16 widen exactly; F64 is rounded.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (range, a type that is no float); CLV_E_IO; CLV_E_FORMAT (the file
 *         became shorter since it was opened).
 */
CLV_API clv_status clv_tensors_read_f32(const clv_tensors *tensors, const clv_tensor *tensor,
                                        size_t first, size_t count, float *out);
/** All bytes of a tensor as they are, little-endian. `bytes` must be tensor->bytes. */
CLV_API clv_status clv_tensors_read(const clv_tensors *tensors, const clv_tensor *tensor, void *out,
                                    size_t bytes);

/** Bytes [first, first + bytes) of a tensor. CLV_E_ARGUMENT (range); else as clv_tensors_read_f32. */
CLV_API clv_status clv_tensors_read_part(const clv_tensors *tensors, const clv_tensor *tensor,
                                         uint64_t first, void *out, size_t bytes);

/** A tensor to be written: `data` holds the elements in this machine's byte order. Frozen. */
typedef struct clv_tensor_source {
    const char *name; /**< UTF-8, not "__metadata__" */
    clv_tensor_type type;
    size_t rank;
    size_t shape[CLV_TENSOR_RANK_MAX];
    const void *data;
} clv_tensor_source;

/**
 * Writes a file that every reader of the format takes: data of wide types first, so that each
 * element lies at a multiple of its size. The file is complete or absent.
 *
 * @param metadata  pairs of key and value, ends with NULL; may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (a name twice, empty or not UTF-8; CLV_TENSOR_OTHER; rank);
 *         CLV_E_SHAPE (more than any memory); CLV_E_IO; CLV_E_MEMORY.
 */
CLV_API clv_status clv_tensors_write(const char *path, const clv_tensor_source *sources,
                                     size_t count, const char *const *metadata);

CLV_END_DECLS

#endif
