/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of Thrift's compact protocol, in which Parquet has its footer and the headers of its pages. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_THRIFT_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in bytes. `bad`: something was wrong, and everything read since then is worthless. */
typedef struct clv_thrift {
    const unsigned char *at, *end;
    bool bad;
} clv_thrift;

unsigned clv_thrift_byte(clv_thrift *t);
uint64_t clv_thrift_varint(clv_thrift *t);
int64_t clv_thrift_int(clv_thrift *t); /* I16, I32, I64 */
void clv_thrift_skip(clv_thrift *t, uint64_t count);

/* Reads the head of a field: returns its type, and its number in *field, which holds that of the one before. */
unsigned clv_thrift_field(clv_thrift *t, unsigned *field);
/* Reads the head of a list: returns its length, and the type of its elements. */
size_t clv_thrift_list(clv_thrift *t, unsigned *type);
void clv_thrift_skip_value(clv_thrift *t, unsigned type);

#endif
