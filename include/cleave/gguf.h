/* SPDX-License-Identifier: Apache-2.0 */
/* Reads GGUF files, the format in which quantised language models are distributed. */
#ifndef CLEAVE_GGUF_H
#define CLEAVE_GGUF_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** How the weights of a tensor are stored. The numbers are those in the files. The format has further types: Cleave can
 *  list tensors of such a type, but not compute with them. */
typedef enum clv_quant {
    CLV_QUANT_F32 = 0,
    CLV_QUANT_F16 = 1,
    CLV_QUANT_Q4_0 = 2,
    CLV_QUANT_Q4_1 = 3,
    CLV_QUANT_Q5_0 = 6,
    CLV_QUANT_Q5_1 = 7,
    CLV_QUANT_Q8_0 = 8,
    CLV_QUANT_Q2_K = 10,
    CLV_QUANT_Q3_K = 11,
    CLV_QUANT_Q4_K = 12,
    CLV_QUANT_Q5_K = 13,
    CLV_QUANT_Q6_K = 14,
    CLV_QUANT_IQ4_NL = 20,
    CLV_QUANT_IQ4_XS = 23,
    CLV_QUANT_BF16 = 30,
} clv_quant;

/** Facts about a storage type of weights. Frozen. */
typedef struct clv_quant_facts {
    const char *name; /**< "Q4_1" */
    size_t count;     /**< weights in a block */
    size_t bytes;     /**< bytes of a block */
    bool supported;   /**< Cleave can compute with the type */
} clv_quant_facts;

/** Returns the facts about a storage type; NULL if the format has no type with this number. */
CLV_API const clv_quant_facts *clv_quant_get_facts(uint32_t type);

/** Types of metadata values; the numbers are those in the files. */
typedef enum clv_gguf_type {
    CLV_GGUF_U8 = 0,
    CLV_GGUF_I8 = 1,
    CLV_GGUF_U16 = 2,
    CLV_GGUF_I16 = 3,
    CLV_GGUF_U32 = 4,
    CLV_GGUF_I32 = 5,
    CLV_GGUF_F32 = 6,
    CLV_GGUF_BOOL = 7,
    CLV_GGUF_STRING = 8,
    CLV_GGUF_ARRAY = 9,
    CLV_GGUF_U64 = 10,
    CLV_GGUF_I64 = 11,
    CLV_GGUF_F64 = 12,
} clv_gguf_type;

/** A value of the metadata, or an element of an array. Texts and arrays are borrowed from the file's handle. Frozen. */
typedef struct clv_gguf_value {
    clv_gguf_type type;
    int64_t whole;     /**< set for integers and bool; a u64 beyond INT64_MAX becomes INT64_MAX */
    double number;     /**< set for every number and bool */
    const char *text;  /**< STRING: bytes, not terminated */
    size_t length;     /**< bytes of `text` */
    clv_gguf_type of;  /**< ARRAY: type of its elements */
    uint64_t count;    /**< ARRAY: how many elements are left; clv_gguf_next takes one */
    const void *place; /**< ARRAY: for the library only */
} clv_gguf_value;

enum { CLV_GGUF_RANK_MAX = 4 };

/** What a file says about one tensor. Frozen; borrowed from the file's handle. */
typedef struct clv_gguf_tensor {
    const char *name;
    uint32_t type;                      /**< a clv_quant, or another type of the format */
    size_t rank;                        /**< 1 to 4 */
    uint64_t extent[CLV_GGUF_RANK_MAX]; /**< innermost first; 1 beyond the rank */
    uint64_t count;                     /**< number of weights */
    uint64_t offset;                    /**< position of its first byte in the file */
    uint64_t bytes;
} clv_gguf_tensor;

/** An open GGUF file. Any number of threads may read from one. */
typedef struct clv_gguf clv_gguf;

/**
 * Opens a little-endian GGUF file of version 2 or 3 and checks everything before the data: each count and length must
 * fit into the remaining bytes, types must be known, names must be unique, the product of a shape must not overflow,
 * and tensors must lie inside the file without overlap. The call never allocates more memory than the file's length
 * justifies, and does not read the data.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT (the message says what was found and what was expected); CLV_E_UNSUPPORTED
 *         (version 1, big-endian); CLV_E_MEMORY. *out is NULL after a failure.
 */
CLV_API clv_status clv_gguf_open(const char *path, clv_gguf **out);
CLV_API void clv_gguf_close(clv_gguf *file); /**< accepts NULL */

CLV_API uint32_t clv_gguf_version(const clv_gguf *file);
CLV_API const char *clv_gguf_path(const clv_gguf *file); /**< the path given to clv_gguf_open */

/** The metadata's pairs, in the order of the file. clv_gguf_pair returns a pair's key, or NULL beyond the last, and
 *  stores its value in *value (may be NULL). */
CLV_API size_t clv_gguf_pair_count(const clv_gguf *file);
CLV_API const char *clv_gguf_pair(const clv_gguf *file, size_t index, clv_gguf_value *value);
/** Gets the value of a key and returns true; returns false if there is no such key. */
CLV_API bool clv_gguf_get(const clv_gguf *file, const char *key, clv_gguf_value *value);
/** Takes the next element from the front of an array and returns true; returns false if no element is left. */
CLV_API bool clv_gguf_next(clv_gguf_value *array, clv_gguf_value *element);

/** The file's tensors. clv_gguf_tensor_at returns one by its position in the file (NULL beyond the last),
 *  clv_gguf_tensor_find by its name (NULL if there is none). */
CLV_API size_t clv_gguf_tensor_count(const clv_gguf *file);
CLV_API const clv_gguf_tensor *clv_gguf_tensor_at(const clv_gguf *file, size_t index);
CLV_API const clv_gguf_tensor *clv_gguf_tensor_find(const clv_gguf *file, const char *name);

/**
 * Reads bytes [first, first + bytes) of a tensor as they are in the file.
 * @return CLV_OK; CLV_E_ARGUMENT (the range exceeds the tensor); CLV_E_IO; CLV_E_FORMAT (the file has become shorter
 *         since it was opened).
 */
CLV_API clv_status clv_gguf_read(const clv_gguf *file, const clv_gguf_tensor *tensor,
                                 uint64_t first, void *out, size_t bytes);
/**
 * Reads weights [first, first + count) as float32. `first` and `count` must be multiples of the type's block.
 * Errors: CLV_E_UNSUPPORTED (Cleave cannot compute with the type, which the message names); those of clv_gguf_read.
 * Accuracy: each weight is rounded at most once.
 */
CLV_API clv_status clv_gguf_read_f32(const clv_gguf *file, const clv_gguf_tensor *tensor,
                                     uint64_t first, size_t count, float *out);

CLV_END_DECLS

#endif
