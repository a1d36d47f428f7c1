/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of an open safetensors file. */
#ifndef CLEAVE_HOST_MODEL_TENSORS_H
#define CLEAVE_HOST_MODEL_TENSORS_H

#include "base/json.h"

#include <cleave/tensors.h>

struct clv_tensors {
    char *path; /* for messages */
    int descriptor;
    uint64_t data_offset, data_bytes; /* the part after the header */
    clv_json *header;                 /* owns the names */
    clv_tensor *tensors;              /* [count], in the order of the data */
    const clv_tensor **by_name;       /* [count], sorted */
    size_t count;
};

/* Return the format's name of a type, and its bits; NULL and 0 for CLV_TENSOR_OTHER. */
const char *clv_tensor_type_name(clv_tensor_type type);
size_t clv_tensor_type_bits(clv_tensor_type type);

/* Checks the header's JSON and fills header, tensors, by_name and count. `text` holds `length`
 * bytes; data_offset and data_bytes must be set. */
clv_status clv_tensors_parse(clv_tensors *tensors, const char *text, size_t length);

#endif
