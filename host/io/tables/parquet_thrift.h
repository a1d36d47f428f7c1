/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of Thrift's compact protocol, in which a Parquet file has its footer and the headers of its pages. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_THRIFT_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reader of the bytes [at, end). `bad` is set after a failure; values that were read since then are meaningless. */
typedef struct clv_thrift {
    const unsigned char *at, *end;
    bool bad;
} clv_thrift;

unsigned clv_thrift_byte(clv_thrift *t);
uint64_t clv_thrift_varint(clv_thrift *t);
int64_t clv_thrift_int(clv_thrift *t); /* reads an I16, I32 or I64 */
void clv_thrift_skip(clv_thrift *t, uint64_t count);

/* Reads the head of a field and returns its type. *field must be the number of the previous field, and becomes that of
 * this one. */
unsigned clv_thrift_field(clv_thrift *t, unsigned *field);
/* Reads the head of a list. Returns its length; *type is the type of its elements. */
size_t clv_thrift_list(clv_thrift *t, unsigned *type);
void clv_thrift_skip_value(clv_thrift *t, unsigned type);

#endif
