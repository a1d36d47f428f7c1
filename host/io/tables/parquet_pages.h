/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of one column of a Parquet file in order, from its chunks and their pages. */
#ifndef CLEAVE_HOST_IO_TABLES_PARQUET_PAGES_H
#define CLEAVE_HOST_IO_TABLES_PARQUET_PAGES_H

#include "host/io/tables/parquet_thrift.h"

#include <cleave/status.h>

enum { CLV_PARQUET_NAME = 128 };

typedef struct clv_parquet_column {
    char name[CLV_PARQUET_NAME];
    unsigned type; /* PARQUET_... */
    bool is_unsigned, optional;
    size_t size; /* bytes of a number */
} clv_parquet_column;

/* The part of a column that one group of rows holds. */
typedef struct clv_parquet_chunk {
    uint64_t offset, bytes, values;
    unsigned codec;
} clv_parquet_chunk;

typedef struct clv_parquet_file {
    const char *path;
    const unsigned char *data;
    size_t length;
    clv_parquet_column *columns;
    size_t count, room;
    clv_parquet_chunk *chunks; /* `count` chunks for each group of rows */
    size_t chunk_count, chunk_room;
    uint64_t rows, missing_texts;
    uint64_t opened; /* bytes of the chunks opened so far */
    /* made: bytes of unpacked pages and dictionaries so far; most_made: their limit */
    uint64_t made, most_made;
    /* for messages: a form of Parquet that Cleave does not read; NULL: none */
    const char *other;
} clv_parquet_file;

/* A reader of numbers that are stored in turns as runs of equal numbers and as groups of packed bits. */
typedef struct clv_parquet_runs {
    clv_thrift from;
    unsigned width;          /* bits of a number */
    uint64_t repeat, packed; /* numbers left in the run, or in the group in progress */
    uint32_t value;          /* the number that the current run repeats */
    uint64_t bits;           /* bits that were read but not used yet */
    unsigned held;           /* number of bits in `bits` */
} clv_parquet_runs;

/* A value: bytes in the file or in an unpacked page. */
typedef struct clv_parquet_value {
    const unsigned char *at; /* NULL: the value is missing */
    size_t length;
} clv_parquet_value;

/* The place up to which a column has been read. Zero-initialise, and set `next` to the column's number. */
typedef struct clv_parquet_place {
    size_t next;      /* number of the next chunk to open */
    unsigned codec;   /* codec of the open chunk */
    clv_thrift pages; /* the rest of the open chunk */
    /* left: values left in the chunk; here: of these, values left in the page */
    uint64_t left, here;
    clv_thrift page; /* the plain values of the page */
    bool optional, indexed, runs_of_bits;
    /* levels: which values exist; numbers: places in the dictionary, or truth values */
    clv_parquet_runs levels, numbers;
    /* unpacked: the page, words: the dictionary, if they were compressed */
    unsigned char *unpacked, *words;
    size_t unpacked_room, words_room;
    clv_parquet_value *entries; /* the dictionary's values */
    size_t entry_count, entry_room;
    unsigned char bit; /* the current truth value */
} clv_parquet_place;

void clv_parquet_place_clear(clv_parquet_place *place);

clv_status clv_parquet_damaged(const clv_parquet_file *file, const char *what);

/* Moves to the next page that has values; place->here becomes 0 if the column has no further page. `rows` is the number
 * of values that the column must still have. Sets file->other if the page is in a form that is not read. */
clv_status clv_parquet_turn(clv_parquet_file *file, const clv_parquet_column *column,
                            clv_parquet_place *place, uint64_t rows);
/* Reads the column's next value, and moves to the next page if necessary. `rows` is as in clv_parquet_turn. */
clv_status clv_parquet_next(clv_parquet_file *file, const clv_parquet_column *column,
                            clv_parquet_place *place, uint64_t rows, clv_parquet_value *value);

#endif
