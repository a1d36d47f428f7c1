/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the values of one column of a Parquet file: its chunks, their pages, and the values in them. */
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

/* The part of a column that belongs to one group of rows. */
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
    clv_parquet_chunk *chunks; /* `count` of each group */
    size_t chunk_count, chunk_room;
    uint64_t rows, missing_texts;
    uint64_t opened;          /* bytes of the chunks opened so far */
    uint64_t made, most_made; /* bytes of unpacked pages and of dictionaries so far; limit */
    const char *other;        /* a form that is not read; NULL: none */
} clv_parquet_file;

/* Numbers as runs of equal ones and as groups of bits, which take turns. */
typedef struct clv_parquet_runs {
    clv_thrift from;
    unsigned width;          /* bits of a number */
    uint64_t repeat, packed; /* numbers left of the run in progress */
    uint32_t value;          /* that repeats */
    uint64_t bits;           /* read, and not used yet */
    unsigned held;           /* their number */
} clv_parquet_runs;

/* A value in the file or in what was unpacked. */
typedef struct clv_parquet_value {
    const unsigned char *at; /* NULL: it is missing */
    size_t length;
} clv_parquet_value;

/* How far a column has been read. Zero-initialise, and set `next` to the column's number. */
typedef struct clv_parquet_place {
    size_t next;         /* the chunk to be opened next */
    unsigned codec;      /* of the open one */
    clv_thrift pages;    /* what is left of it */
    uint64_t left, here; /* values left of it, those of its page included; of the page */
    clv_thrift page;     /* plain values */
    bool optional, indexed, runs_of_bits;
    clv_parquet_runs levels,
        numbers; /* which values are there; places in the dictionary, or truth values */
    unsigned char *unpacked, *words; /* the page and the dictionary, where they were packed */
    size_t unpacked_room, words_room;
    clv_parquet_value *entries; /* of the dictionary */
    size_t entry_count, entry_room;
    unsigned char bit; /* a truth value */
} clv_parquet_place;

void clv_parquet_place_clear(clv_parquet_place *place);

clv_status clv_parquet_damaged(const clv_parquet_file *file, const char *what);

/* Moves to the next page that has values; a column without one ends with `here` = 0. `rows`: how many are missing. Sets
 * file->other for a form that is not read. */
clv_status clv_parquet_turn(clv_parquet_file *file, const clv_parquet_column *column,
                            clv_parquet_place *place, uint64_t rows);
/* Reads the next value. */
clv_status clv_parquet_next(clv_parquet_file *file, const clv_parquet_column *column,
                            clv_parquet_place *place, uint64_t rows, clv_parquet_value *value);

#endif
