/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of a bench on the terminal. */
#include "bench/command/bench.h"
#include "host/cli/cli.h"
#include "host/cli/grid.h"

#include "base/alloc.h"

static void print_head(const bench *b, FILE *out)
{
    clv_text text = { 0 };
    bench_describe_machine(b, &text);
    cli_say(out, "Machine   %s\n", clv_text_get(&text));
    clv_text_clear(&text);
    for (size_t i = 0; i < b->party_count; ++i) {
        const bench_party *p = &b->parties[i];
        if (p->device) bench_describe_device(b, i, &text);
        if (p->device || *p->modes)
            cli_say(out, "%s%s: %s%s%s%s\n", i ? "          " : "Devices   ", p->name,
                    clv_text_get(&text), p->device && *p->modes ? "; " : "",
                    *p->modes ? "mode " : "", p->modes);
        clv_text_clear(&text);
    }
    if (bench_was_busy(b))
        cli_say(out, "WARNING   the machine was busy (load %.1f): these times are too long\n",
                b->plan.load_before);
}

static void add_row(const bench *b, size_t c, size_t p, cli_grid *grid)
{
    const bench_cell *cell = &b->cells[c][p];
    const bench_stat *s = cell->stat;
    char text[BENCH_CELL];
    bench_rate rate;
    cli_grid_cell(grid, CLI_PLAIN, "  %.32s", b->parties[p].name);
    if (!s[BENCH_COMPUTE].count && !s[BENCH_FILES].count) {
        cli_grid_cell(grid, CLI_PLAIN, "%s", "");
        cli_grid_cell(grid, CLI_DIM, "%s", "-");
        cli_grid_end_row(grid);
        return;
    }
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_time_cell(b, &s[BENCH_KERNEL], text));
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_time_cell(b, &s[BENCH_COMPUTE], text));
    cli_grid_cell(grid, CLI_PLAIN, "%s",
                  bench_ratio_cell(b, c, &s[BENCH_COMPUTE], BENCH_COMPUTE, text));
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_time_cell(b, &s[BENCH_FILES], text));
    cli_grid_cell(grid, CLI_PLAIN, "%s",
                  bench_ratio_cell(b, c, &s[BENCH_FILES], BENCH_FILES, text));
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_time_cell(b, &s[BENCH_COLD], text));
    bench_rates(b, c, p, &rate);
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_rate_cell(rate.gflops, rate.gflops_part, text));
    cli_grid_cell(grid, CLI_PLAIN, "%s", bench_rate_cell(rate.gb_s, rate.gb_s_part, text));
    if (b->cases[c].workload->unit)
        cli_grid_cell(grid, CLI_PLAIN, "%s", bench_items_cell(b, c, p, text));
}

static void print_workload(const bench *b, const bench_workload *workload, FILE *out)
{
    const cli_column columns[] = {
        { "", false },       { "kernels", true },
        { "compute", true }, { "", true },
        { "files", true },   { "", true },
        { "cold", true },    { "GFLOP/s", true },
        { "GB/s", true },    { workload->unit, true },
    };
    cli_grid grid = { .columns = columns, .column_count = CLV_LEN(columns) - !workload->unit };
    for (size_t c = 0; c < b->case_count; ++c) {
        if (b->cases[c].workload != workload) continue;
        cli_grid_cell(&grid, CLI_PLAIN, "%s", b->cases[c].name);
        cli_grid_end_row(&grid);
        for (size_t p = 0; p < b->party_count; ++p)
            if (bench_has(b, c, p)) add_row(b, c, p, &grid);
    }
    cli_say(out, "\n%s\n\n", workload->title);
    cli_grid_print(&grid, out);
    cli_grid_clear(&grid);
}

/* Prints why figures are missing, each reason of a party once. */
static void print_notes(const bench *b, FILE *out)
{
    for (size_t p = 0; p < b->party_count; ++p)
        for (size_t c = 0; c < b->case_count; ++c)
            if (*b->cells[c][p].note)
                cli_say(out, "%s, %s: %s\n", b->parties[p].name, b->cases[c].name,
                        b->cells[c][p].note);
}

static void print_facts(const bench *b, FILE *out)
{
    cli_column columns[CLI_GRID_COLUMNS] = { { "runtime", false }, { "", false } };
    size_t shown[CLI_GRID_COLUMNS], count = 0;
    char text[BENCH_CELL];
    if (!b->fact_count) return;
    for (size_t p = 0; p < b->party_count && count + 2 < CLV_LEN(columns); ++p)
        if (bench_has_facts(b, p)) {
            columns[count + 2] = (cli_column){ b->parties[p].name, true, 0 };
            shown[count++] = p;
        }
    cli_grid grid = { .columns = columns, .column_count = count + 2 };
    for (size_t i = 0; i < b->fact_count; ++i) {
        cli_grid_cell(&grid, CLI_PLAIN, "%s", b->facts[i].name);
        cli_grid_cell(&grid, CLI_DIM, "%s", b->facts[i].unit);
        for (size_t k = 0; k < count; ++k)
            cli_grid_cell(&grid, CLI_PLAIN, "%s", bench_fact_cell(&b->facts[i], shown[k], text));
    }
    cli_say(out, "\n");
    cli_grid_print(&grid, out);
    cli_grid_clear(&grid);
}

void bench_print(const bench *b, FILE *out)
{
    print_head(b, out);
    for (size_t i = 0; i < b->workload_count; ++i)
        print_workload(b, b->workloads[i], out);
    if (b->workload_count)
        cli_say(
            out,
            "\nTimes are medians. kernels: by the device's clock; compute: from memory to memory;\n"
            "files: the whole command, from files to files, with warm caches; cold: the same with\n"
            "empty caches; x: time relative to the fastest device; GFLOP/s and GB/s: of the "
            "kernels,\n"
            "or of compute if the kernels have no times; %%: share of the rate that `cleave probe\n"
            "--bench` measured.%s\n",
            bench_few_repeats(b) ? " *: fewer repeats." : "");
    print_notes(b, out);
    print_facts(b, out);
    if (bench_late(b))
        cli_say(out,
                "\n%zu entries had no time (--budget). The same command with --json FILE and "
                "--resume adds them.\n",
                bench_late(b));
}
