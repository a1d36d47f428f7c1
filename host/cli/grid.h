/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a table on the terminal: columns are as wide as their cells, and the verdict is coloured. */
#ifndef CLEAVE_HOST_CLI_GRID_H
#define CLEAVE_HOST_CLI_GRID_H

#include <cleave/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_GRID_COLUMNS = 12 };

typedef enum cli_tone { CLI_PLAIN, CLI_GOOD, CLI_BAD, CLI_DIM } cli_tone;

typedef struct cli_column {
    const char *title;
    bool right;   /* the column is aligned to the right */
    size_t least; /* width, in characters, before any row is known */
} cli_column;

typedef struct cli_grid_item {
    char *text; /* owned; NULL: empty */
    cli_tone tone;
} cli_grid_item;

/* Zero-initialise all members except the columns. Rows may be printed as they arrive (the first printing then fixes the
 * widths) or all at the end. */
typedef struct cli_grid {
    const cli_column *columns;
    size_t column_count;
    cli_grid_item *items; /* row after row */
    size_t item_count, item_capacity, printed;
    size_t width[CLI_GRID_COLUMNS];
    bool failed; /* out of memory: rows are missing */
} cli_grid;

void cli_grid_cell(cli_grid *grid, cli_tone tone, const char *format, ...) CLV_PRINTF(3, 4);
/* Pads the current row with empty cells. */
void cli_grid_end_row(cli_grid *grid);
/* Prints the titles (first call only), then the rows that were not printed yet. */
void cli_grid_print(cli_grid *grid, FILE *out);
void cli_grid_clear(cli_grid *grid);

/* ---- what the terminal can show ---------------------------------------------------------------- */

bool cli_shows_colour(FILE *out); /* a terminal, and NO_COLOR is not set */
bool cli_shows_utf8(void);        /* by LC_ALL, LC_CTYPE, LANG */
size_t cli_text_width(const char *utf8);

#endif
