/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files: the container in which quantised language models are passed around. */
#ifndef CLEAVE_GGUF_H
#define CLEAVE_GGUF_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** How the weights of a tensor are stored; the numbers are those in the files. Other numbers that the
 *  format knows can be listed, but not computed with. */
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

/** What a block of a type holds. Frozen. */
typedef struct clv_quant_facts {
    const char *name; /**< "Q4_1" */
    size_t count;     /**< weights in a block */
    size_t bytes;     /**< bytes of a block */
    bool supported;   /**< Cleave can compute with it */
} clv_quant_facts;

/** Facts about a type; NULL when the format does not know the number. Declared frozen. */
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

/** A value of the metadata, or an element of an array. Frozen; texts and arrays are borrowed
 *  from the file's handle. */
typedef struct clv_gguf_value {
    clv_gguf_type type;
    int64_t whole;     /**< integers and bool; a u64 beyond INT64_MAX is INT64_MAX */
    double number;     /**< every number and bool */
    const char *text;  /**< STRING: bytes, not terminated */
    size_t length;     /**< of `text` */
    clv_gguf_type of;  /**< ARRAY: type of its elements */
    uint64_t count;    /**< ARRAY: how many are left; clv_gguf_next takes one */
    const void *place; /**< ARRAY: the library's own */
} clv_gguf_value;

enum { CLV_GGUF_RANK_MAX = 4 };

/** What a file says about one tensor. Frozen; borrowed from the file's handle. */
typedef struct clv_gguf_tensor {
    const char *name;
    uint32_t type;                      /**< a clv_quant, or another number that the format knows */
    size_t rank;                        /**< 1 to 4 */
    uint64_t extent[CLV_GGUF_RANK_MAX]; /**< innermost first; 1 beyond the rank */
    uint64_t count;                     /**< weights */
    uint64_t offset;                    /**< of the first byte in the file */
    uint64_t bytes;
} clv_gguf_tensor;

/** An open GGUF file. Any number of threads may read from one. */
typedef struct clv_gguf clv_gguf;

/**
 * Opens a GGUF file of version 2 or 3, little-endian, and checks everything in front of the data before
 * it is believed: each count and length against the bytes that are left, types, names that are unique,
 * shapes whose product cannot wrap, tensors that lie inside the file and do not overlap. Memory is taken
 * only for what the file's length justifies. Nothing of the data is read.
 *
 * @return CLV_OK; CLV_E_IO; CLV_E_FORMAT names what was found and what is expected; CLV_E_UNSUPPORTED
 *         (version 1, big-endian); CLV_E_MEMORY. *out is NULL then.
 */
CLV_API clv_status clv_gguf_open(const char *path, clv_gguf **out);
CLV_API void clv_gguf_close(clv_gguf *file); /**< accepts NULL */

CLV_API uint32_t clv_gguf_version(const clv_gguf *file);
CLV_API const char *clv_gguf_path(const clv_gguf *file); /**< as it was opened */

/** Pairs of the metadata in the order of the file: the key, and the value in *value (may be NULL).
 *  NULL beyond the last. */
CLV_API size_t clv_gguf_pair_count(const clv_gguf *file);
CLV_API const char *clv_gguf_pair(const clv_gguf *file, size_t index, clv_gguf_value *value);
/** The value of a key; false when there is no such key. */
CLV_API bool clv_gguf_get(const clv_gguf *file, const char *key, clv_gguf_value *value);
/** The next element of an array, which gets shorter by it; false at its end. */
CLV_API bool clv_gguf_next(clv_gguf_value *array, clv_gguf_value *element);

/** Tensors in the order of the file; NULL beyond the last. By name: NULL when there is none. */
CLV_API size_t clv_gguf_tensor_count(const clv_gguf *file);
CLV_API const clv_gguf_tensor *clv_gguf_tensor_at(const clv_gguf *file, size_t index);
CLV_API const clv_gguf_tensor *clv_gguf_tensor_find(const clv_gguf *file, const char *name);

/**
 * Bytes [first, first + bytes) of a tensor as they lie in the file.
 * @return CLV_OK; CLV_E_ARGUMENT (range); CLV_E_IO; CLV_E_FORMAT (the file became shorter since it was
 *         opened).
 */
CLV_API clv_status clv_gguf_read(const clv_gguf *file, const clv_gguf_tensor *tensor,
                                 uint64_t first, void *out, size_t bytes);
/**
 * Weights [first, first + count) as float32; both are multiples of the type's block.
 * Accuracy: one rounding at most. CLV_E_UNSUPPORTED names a type that Cleave cannot compute with; else
 * as clv_gguf_read.
 */
CLV_API clv_status clv_gguf_read_f32(const clv_gguf *file, const clv_gguf_tensor *tensor,
                                     uint64_t first, size_t count, float *out);

CLV_END_DECLS

#endif
