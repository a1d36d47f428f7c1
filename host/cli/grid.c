/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a table on the terminal. */
#include "host/cli/grid.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/visible.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_shows_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(out)) && !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
}

bool cli_shows_utf8(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < CLV_LEN(variables); ++i) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return clv_contains_nocase(value, "utf-8") || clv_contains_nocase(value, "utf8");
    }
    return false;
}

size_t cli_text_width(const char *utf8)
{
    size_t width = 0;
    for (; *utf8; ++utf8)
        width += ((unsigned char)*utf8 & 0xC0) != 0x80;
    return width;
}

void cli_grid_cell(cli_grid *grid, cli_tone tone, const char *format, ...)
{
    clv_text raw = { 0 }, text = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&raw, format, args);
    va_end(args);
    clv_text_visible(&text, clv_text_get(&raw), raw.length);
    clv_text_clear(&raw);
    if (text.failed || !clv_reserve(&grid->items, &grid->item_capacity, grid->item_count + 1,
                                    sizeof *grid->items)) {
        grid->failed = true;
        clv_text_clear(&text);
        return;
    }
    grid->items[grid->item_count++] = (cli_grid_item){ text.data, tone };
}

void cli_grid_end_row(cli_grid *grid)
{
    while (grid->item_count % grid->column_count && !grid->failed)
        cli_grid_cell(grid, CLI_PLAIN, "%s", "");
}

static const char *text_of(const cli_grid_item *item)
{
    return item->text ? item->text : "";
}

static void measure(cli_grid *grid)
{
    assert(grid->column_count > 0);
    for (size_t c = 0; c < grid->column_count; ++c)
        grid->width[c] = CLV_MAX(grid->columns[c].least, cli_text_width(grid->columns[c].title));
    for (size_t i = 0; i < grid->item_count; ++i) {
        size_t *width = &grid->width[i % grid->column_count];
        *width = CLV_MAX(*width, cli_text_width(text_of(&grid->items[i])));
    }
}

static void print_cell(const cli_grid *grid, size_t column, const char *text, const char *colour,
                       FILE *out)
{
    const size_t width = cli_text_width(text),
                 pad = width < grid->width[column] ? grid->width[column] - width : 0;
    const bool right = grid->columns[column].right, last = column + 1 == grid->column_count;
    fprintf(out, "%s%*s%s%s%s", column ? "  " : "", right ? (int)pad : 0, "", colour, text,
            *colour ? "\033[0m" : "");
    if (!right && !last) fprintf(out, "%*s", (int)pad, "");
    if (last) fputc('\n', out);
}

static void print_titles(const cli_grid *grid, FILE *out)
{
    const char *line = cli_shows_utf8() ? "─" : "-", *dim = cli_shows_colour(out) ? "\033[1m" : "";
    size_t total = 2 * (grid->column_count - 1);
    for (size_t c = 0; c < grid->column_count; ++c) {
        total += grid->width[c];
        print_cell(grid, c, grid->columns[c].title, dim, out);
    }
    for (size_t i = 0; i < total; ++i)
        fputs(line, out);
    fputc('\n', out);
}

void cli_grid_print(cli_grid *grid, FILE *out)
{
    static const char *const colours[] = { "", "\033[32m", "\033[1;31m", "\033[2m" };
    if (!grid->printed) {
        measure(grid);
        print_titles(grid, out);
    }
    for (size_t i = grid->printed; i < grid->item_count; ++i)
        print_cell(grid, i % grid->column_count, text_of(&grid->items[i]),
                   cli_shows_colour(out) ? colours[grid->items[i].tone] : "", out);
    grid->printed = grid->item_count;
}

void cli_grid_clear(cli_grid *grid)
{
    for (size_t i = 0; i < grid->item_count; ++i)
        clv_free(grid->items[i].text);
    clv_free(grid->items);
    grid->items = NULL;
    grid->item_count = grid->item_capacity = grid->printed = 0;
}
