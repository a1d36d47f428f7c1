/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of an open safetensors file. */
#ifndef CLEAVE_HOST_MODEL_TENSORS_H
#define CLEAVE_HOST_MODEL_TENSORS_H

#include "base/json.h"

#include <cleave/tensors.h>

struct clv_tensors {
    char *path; /* for messages */
    int descriptor;
    uint64_t data_offset, data_bytes; /* offset and length of the data after the header */
    clv_json *header;                 /* owns the names */
    clv_tensor *tensors;              /* [count], in the order of the data */
    const clv_tensor **by_name;       /* [count], sorted by name */
    size_t count;
};

/* clv_tensor_type_name returns the format's name of a type, clv_tensor_type_bits its bits per element; NULL and 0 for
 * CLV_TENSOR_OTHER. */
const char *clv_tensor_type_name(clv_tensor_type type);
size_t clv_tensor_type_bits(clv_tensor_type type);

/* Checks the header's JSON, the `length` bytes at `text`, and fills header, tensors, by_name and count. data_offset and
 * data_bytes must be set. */
clv_status clv_tensors_parse(clv_tensors *tensors, const char *text, size_t length);

#endif
