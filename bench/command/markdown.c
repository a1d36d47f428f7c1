/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of a bench as Markdown, for a README. */
#include "bench/command/bench.h"

#include <cleave/version.h>

#include <string.h>

/* Adds a cell and escapes '|', which would end it. */
static void add_cell(clv_text *out, const char *text)
{
    clv_text_add(out, " ");
    for (; *text; ++text)
        clv_text_add(out, *text == '|' ? "\\|" : "%c", *text);
    clv_text_add(out, " |");
}

static void add_head(const bench *b, clv_text *out)
{
    clv_text_add(out, "Cleave %s, %.10s. Machine: ", clv_version(), b->started);
    bench_describe_machine(b, out);
    clv_text_add(out, ".\n\n");
    for (size_t i = 0; i < b->party_count; ++i) {
        const bench_party *p = &b->parties[i];
        if (!p->device && !*p->modes) continue;
        clv_text_add(out, "- %s: ", p->name);
        if (p->device) bench_describe_device(b, i, out);
        if (*p->modes) clv_text_add(out, "%smode %s", p->device ? "; " : "", p->modes);
        clv_text_add(out, "\n");
    }
    if (!b->ended)
        clv_text_add(out, "\n**Incomplete: the run was interrupted, or is going on.**\n");
    else if (bench_late(b))
        clv_text_add(out,
                     "\n**Incomplete: %zu entries had no time (--budget); they are listed below. "
                     "`--resume` adds them.**\n",
                     bench_late(b));
    if (bench_was_busy(b))
        clv_text_add(out, "\n**The machine was busy (load %.1f): these times are too long.**\n",
                     b->plan.load_before);
}

static void add_row(const bench *b, size_t c, size_t p, bool first, clv_text *out)
{
    const bench_cell *cell = &b->cells[c][p];
    const bench_stat *s = cell->stat;
    char text[BENCH_CELL];
    bench_rate rate;
    bench_rates(b, c, p, &rate);
    clv_text_add(out, "|");
    add_cell(out, first ? b->cases[c].name : "");
    add_cell(out, b->parties[p].name);
    add_cell(out, bench_time_cell(b, &s[BENCH_KERNEL], text));
    add_cell(out, bench_time_cell(b, &s[BENCH_COMPUTE], text));
    add_cell(out, bench_ratio_cell(b, c, &s[BENCH_COMPUTE], BENCH_COMPUTE, text));
    add_cell(out, bench_time_cell(b, &s[BENCH_FILES], text));
    add_cell(out, bench_ratio_cell(b, c, &s[BENCH_FILES], BENCH_FILES, text));
    add_cell(out, bench_time_cell(b, &s[BENCH_COLD], text));
    add_cell(out, cell->memory_bytes ? clv_format_bytes(cell->memory_bytes, text) : "");
    add_cell(out, bench_rate_cell(rate.gflops, rate.gflops_part, text));
    add_cell(out, bench_rate_cell(rate.gb_s, rate.gb_s_part, text));
    if (b->cases[c].workload->unit) add_cell(out, bench_items_cell(b, c, p, text));
    clv_text_add(out, "\n");
}

static void add_workload(const bench *b, const bench_workload *workload, clv_text *out)
{
    clv_text_add(out, "\n### %s\n", workload->title);
    bench_add_modes(b, workload, false, out);
    clv_text_add(out,
                 "\n| input | by | kernels | compute | | files | | cold | memory | GFLOP/s "
                 "| GB/s |%s%s\n"
                 "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|%s\n",
                 workload->unit ? workload->unit : "", workload->unit ? " |" : "",
                 workload->unit ? "--:|" : "");
    for (size_t c = 0; c < b->case_count; ++c) {
        bool first = true;
        if (b->cases[c].workload != workload) continue;
        for (size_t p = 0; p < b->party_count; ++p) {
            const bench_stat *s = b->cells[c][p].stat;
            if (!s[BENCH_COMPUTE].count && !s[BENCH_FILES].count) continue;
            add_row(b, c, p, first, out);
            first = false;
        }
    }
    clv_text_add(
        out,
        "\nTimes are medians of at least %zu runs%s. *kernels*: by the device's clock; *compute*: "
        "from\n"
        "memory to memory; *files*: the whole command, from files to files, with warm caches; "
        "*cold*:\n"
        "the same with empty caches; *x*: time relative to the fastest device; GFLOP/s and GB/s: "
        "of\n"
        "the kernels, or of compute if the kernels have no times; %%: share of the rate that\n"
        "`cleave probe --bench` measured.\n",
        b->plan.repeats, bench_few_repeats(b) ? " (\\*: fewer)" : "");
}

static void add_facts(const bench *b, clv_text *out)
{
    char text[BENCH_CELL];
    if (!b->fact_count) return;
    clv_text_add(out, "\n### The runtime\n\n| | |");
    for (size_t p = 0; p < b->party_count; ++p)
        if (bench_has_facts(b, p)) add_cell(out, b->parties[p].name);
    clv_text_add(out, "\n|---|---|");
    for (size_t p = 0; p < b->party_count; ++p)
        if (bench_has_facts(b, p)) clv_text_add(out, "--:|");
    clv_text_add(out, "\n");
    for (size_t i = 0; i < b->fact_count; ++i) {
        clv_text_add(out, "|");
        add_cell(out, b->facts[i].name);
        add_cell(out, b->facts[i].unit);
        for (size_t p = 0; p < b->party_count; ++p)
            if (bench_has_facts(b, p)) add_cell(out, bench_fact_cell(&b->facts[i], p, text));
        clv_text_add(out, "\n");
    }
}

/* Lists why figures are missing: for each party and each reason, the cases. */
static void add_notes(const bench *b, clv_text *out)
{
    for (size_t p = 0; p < b->party_count; ++p)
        for (size_t c = 0; c < b->case_count; ++c) {
            const char *note = b->cells[c][p].note;
            size_t first = 0;
            while (strcmp(b->cells[first][p].note, note) != 0)
                ++first;
            if (!*note || first < c) continue; /* in the list of an earlier case */
            clv_text_add(out, "\n- %s: %s: %s", b->parties[p].name, note, b->cases[c].name);
            for (size_t i = c + 1; i < b->case_count; ++i)
                if (strcmp(b->cells[i][p].note, note) == 0)
                    clv_text_add(out, "; %s", b->cases[i].name);
        }
    clv_text_add(out, "\n");
}

char *bench_markdown(const bench *b)
{
    clv_text out = { 0 };
    add_head(b, &out);
    for (size_t i = 0; i < b->workload_count; ++i)
        add_workload(b, b->workloads[i], &out);
    add_facts(b, &out);
    add_notes(b, &out);
    if (out.failed) clv_text_clear(&out);
    return out.data;
}
