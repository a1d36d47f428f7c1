/* SPDX-License-Identifier: Apache-2.0 */
/* Reads safetensors files, with strict checks, and writes them. Such a file holds named arrays. */
#ifndef CLEAVE_TENSORS_H
#define CLEAVE_TENSORS_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** Element types of the safetensors format. The numbers never change. */
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
    /** A type of the format with which Cleave cannot compute (FP8, FP4, complex): it reads only the bytes. */
    CLV_TENSOR_OTHER = 13,
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
    uint64_t offset;                   /**< position of its first byte in the file */
    uint64_t bytes;
} clv_tensor;

/** An open safetensors file. Any number of threads may read from one. */
typedef struct clv_tensors clv_tensors;

/**
 * Opens a safetensors file and checks the whole header before using any part of it. The header must not be longer than
 * the file or 100 MB; it must be UTF-8 JSON, one object without repeated names and with bounded nesting; all types must
 * be known; each shape's product must not overflow and must fit the number of bytes; and the tensors' ranges must cover
 * the data without gap, overlap or remainder. The data are not read.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (the message names the tensor, what was found and what was expected, and says
 *         so if the file is a Git LFS pointer, a pickle or a GGUF file); CLV_E_SHAPE (rank above 8); CLV_E_MEMORY. *out
 *         is NULL after a failure.
 */
CLV_API clv_status clv_tensors_open(const char *path, clv_tensors **out);
CLV_API void clv_tensors_close(clv_tensors *tensors); /**< accepts NULL */

CLV_API size_t clv_tensors_count(const clv_tensors *tensors);
/** Returns a tensor by its position in the order of the data; NULL beyond the last. */
CLV_API const clv_tensor *clv_tensors_at(const clv_tensors *tensors, size_t index);
/** Returns the tensor of that name; NULL if there is none. */
CLV_API const clv_tensor *clv_tensors_find(const clv_tensors *tensors, const char *name);
/** Returns a value of the header's __metadata__; NULL if there is none. */
CLV_API const char *clv_tensors_metadata(const clv_tensors *tensors, const char *key);

/**
 * Reads elements [first, first + count) as float32. F16 and BF16 are widened exactly, F64 is rounded.
 *
 * @return CLV_OK; CLV_E_ARGUMENT (the range exceeds the tensor, or its type is not a float); CLV_E_IO; CLV_E_FORMAT
 *         (the file has become shorter since it was opened).
 */
CLV_API clv_status clv_tensors_read_f32(const clv_tensors *tensors, const clv_tensor *tensor,
                                        size_t first, size_t count, float *out);
/** Reads all bytes of a tensor as they are in the file, little-endian. `bytes` must be tensor->bytes. */
CLV_API clv_status clv_tensors_read(const clv_tensors *tensors, const clv_tensor *tensor, void *out,
                                    size_t bytes);

/** Reads bytes [first, first + bytes) of a tensor. Errors: CLV_E_ARGUMENT (the range exceeds the tensor); those of
 *  clv_tensors_read_f32. */
CLV_API clv_status clv_tensors_read_part(const clv_tensors *tensors, const clv_tensor *tensor,
                                         uint64_t first, void *out, size_t bytes);

/** A tensor to write; `data` holds its elements in this machine's byte order. Frozen. */
typedef struct clv_tensor_source {
    const char *name; /**< UTF-8, not "__metadata__" */
    clv_tensor_type type;
    size_t rank;
    size_t shape[CLV_TENSOR_RANK_MAX];
    const void *data;
} clv_tensor_source;

/**
 * Writes a file that every reader of the format accepts. It puts wide types first, so that the offset of each element
 * is a multiple of its size. After a failure there is no incomplete file.
 *
 * @param metadata  pairs of key and value, ended by NULL; may be NULL.
 * @return CLV_OK; CLV_E_ARGUMENT (a name that is repeated, empty or not UTF-8; CLV_TENSOR_OTHER; a rank above 8);
 *         CLV_E_SHAPE (more bytes than can be addressed); CLV_E_IO; CLV_E_MEMORY.
 */
CLV_API clv_status clv_tensors_write(const char *path, const clv_tensor_source *sources,
                                     size_t count, const char *const *metadata);

CLV_END_DECLS

#endif
