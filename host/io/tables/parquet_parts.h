/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the numbers that the writer and the reader of Parquet share: the types of Thrift's compact protocol and of
 * Parquet. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_PARTS_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_PARTS_H

enum {
    THRIFT_STOP = 0,
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
};

enum {
    PARQUET_BOOLEAN = 0,
    PARQUET_INT32 = 1,
    PARQUET_INT64 = 2,
    PARQUET_FLOAT = 4,
    PARQUET_DOUBLE = 5,
    PARQUET_BYTE_ARRAY = 6,
};

/* The position, in a number of `size` bytes on this machine, of the byte that is byte i in the file. Files store the
 * lowest byte first. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CLV_PARQUET_BYTE(i, size) (i)
#else
#define CLV_PARQUET_BYTE(i, size) ((size)-1 - (i))
#endif

#endif
