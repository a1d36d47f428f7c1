/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes after the first as a file, whose kind the first byte chooses: a text vector ('v'), the first or
 * second column of a text file ('p', 'q'), a table of any kind ('a'), else a CSV table. */
#include "fuzz.h"

#include "base/alloc.h"
#include "host/io/formats/column.h"
#include "host/io/formats/table.h"
#include "host/io/tables/any.h"

#include <math.h>
#include <string.h>

static void try_vector(const char *path, size_t size)
{
    double *values;
    size_t count;
    if (clv_text_vector_read(path, &values, &count)) {
        FUZZ_CHECK(!values && !count);
        return;
    }
    FUZZ_CHECK(count && count <= size);
    for (size_t i = 0; i < count; ++i)
        FUZZ_CHECK(isfinite(values[i]));
    clv_free(values);
}

static void try_column(const char *path, size_t size, const char *column)
{
    double *values;
    size_t count;
    if (clv_text_column_read(path, column, &values, &count)) {
        FUZZ_CHECK(!values && !count);
        return;
    }
    FUZZ_CHECK(count && count <= size);
    fuzz_touch(values, count * sizeof *values);
    clv_free(values);
}

static void try_table(const char *path, size_t size)
{
    clv_csv_table *table;
    size_t length, sum = 0, found;
    if (clv_csv_read(path, &table)) {
        FUZZ_CHECK(!table);
        return;
    }
    const size_t rows = clv_csv_rows(table), columns = clv_csv_columns(table);
    FUZZ_CHECK(columns);
    double *values = fuzz_alloc(rows, sizeof *values);
    for (size_t c = 0; c < columns && c < 8; ++c) {
        if (clv_csv_find(table, clv_csv_name(table, c), &found) == CLV_OK) FUZZ_CHECK(found == c);
        (void)clv_csv_doubles(table, c, values);
    }
    clv_free(values);
    clv_csv_header(table, &length);
    for (size_t r = 0; r < rows; ++r) {
        const char *row = clv_csv_row(table, r, &length);
        FUZZ_CHECK(length && strlen(row) >= length);
        sum += length;
    }
    FUZZ_CHECK(sum <= size);
    clv_csv_free(table);
}

static void try_any(const char *path)
{
    clv_csv_table *table;
    const char *kind;
    if (clv_table_read(path, '\0', &table, &kind)) {
        FUZZ_CHECK(!table);
        return;
    }
    const size_t rows = clv_csv_rows(table), columns = clv_csv_columns(table);
    clv_csv_cell *cells = fuzz_alloc(columns, sizeof *cells);
    double *values = fuzz_alloc(CLV_MAX(rows, (size_t)1), sizeof *values);
    clv_text text = { 0 };
    for (size_t r = 0; r < rows; ++r) {
        clv_csv_cells(table, r, cells);
        FUZZ_CHECK(cells[columns - 1].last);
        clv_csv_cell_text(&cells[r % columns], &text);
    }
    for (size_t c = 0; c < columns && c < 8; ++c)
        (void)clv_csv_doubles(table, c, values);
    clv_text_clear(&text);
    clv_free(values), clv_free(cells);
    clv_csv_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const char *path = fuzz_file(data + 1, size - 1);
    if (*data == 'v')
        try_vector(path, size);
    else if (*data == 'p' || *data == 'q')
        try_column(path, size, *data == 'q' ? "2" : NULL);
    else if (*data == 'a')
        try_any(path);
    else
        try_table(path, size);
    return 0;
}
