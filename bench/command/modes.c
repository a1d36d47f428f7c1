/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the times of CPU, GPU and both together, one line per case, for HTML pages and Markdown. */
#include "bench/command/bench.h"

#include "base/alloc.h"

#include <cleave/probe.h>

#include <string.h>

enum { MODES = 3 };
static const char *const modes[MODES] = { "cpu", "gpu", "hybrid" };
static const char *const titles[MODES] = { "CPU", "GPU", "hybrid" };

/* Returns the party that works in a mode; SIZE_MAX if none does. A party lists its modes as "cpu, hybrid". */
static size_t party_of(const bench *b, const char *mode)
{
    for (size_t p = 0; p < b->party_count; ++p) {
        const char *at = strstr(b->parties[p].modes, mode);
        if (at) return p;
    }
    return SIZE_MAX;
}

static const bench_stat *time_of(const bench *b, size_t c, size_t p)
{
    const bench_stat *s = p == SIZE_MAX ? NULL : &b->cells[c][p].stat[BENCH_COMPUTE];
    return s && s->count ? s : NULL;
}

typedef struct line {
    char cell[MODES][BENCH_CELL], gain[BENCH_CELL], plain[BENCH_CELL];
} line;

/* Fills in a case's line; returns false if no mode has a figure. */
static bool line_of(const bench *b, size_t c, line *l)
{
    const bench_stat *found[MODES];
    const bench_stat *plain = NULL;
    double best = 0;
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < MODES; ++i) {
        found[i] = time_of(b, c, party_of(b, modes[i]));
        if (!found[i]) continue;
        bench_time_cell(b, found[i], l->cell[i]);
        if (best == 0 || found[i]->median < best) best = found[i]->median;
    }
    for (size_t p = 0; p < b->party_count; ++p)
        if (b->parties[p].kind == BENCH_REFERENCE) plain = time_of(b, c, p);
    if (plain) bench_time_cell(b, plain, l->plain);
    if (found[0] && best < found[0]->median)
        snprintf(l->gain, sizeof l->gain, "x%.3g", found[0]->median / best);
    return best > 0;
}

static bool is_here(const bench *b, const bench_workload *workload)
{
    line l;
    for (size_t c = 0; c < b->case_count; ++c)
        if (b->cases[c].workload == workload && line_of(b, c, &l)) return true;
    return false;
}

/* Adds a cell of Markdown or HTML. */
static void add(bool html, const char *text, clv_text *out)
{
    clv_text_add(out, html ? "<td>" : " ");
    bench_escape(*text || html ? text : "-", out);
    clv_text_add(out, html ? "</td>" : " |");
}

void bench_add_modes(const bench *b, const bench_workload *workload, bool html, clv_text *out)
{
    line l;
    if (!is_here(b, workload)) return;
    if (html)
        clv_text_add(out, "<div class=\"scroll\"><table>\n<tr><th class=\"l\">from memory to memory"
                          "</th>");
    else
        clv_text_add(out, "\n| from memory to memory |");
    for (size_t i = 0; i < MODES; ++i)
        clv_text_add(out, html ? "<th>%s</th>" : " %s |", titles[i]);
    clv_text_add(out, html ? "<th>best against CPU</th><th>plain C</th></tr>\n"
                           : " best against CPU | plain C |\n"
                             "|---|--:|--:|--:|--:|--:|\n");
    for (size_t c = 0; c < b->case_count; ++c) {
        if (b->cases[c].workload != workload || !line_of(b, c, &l)) continue;
        clv_text_add(out, html ? "<tr><td class=\"l\">" : "| ");
        bench_escape(b->cases[c].name, out);
        clv_text_add(out, html ? "</td>" : " |");
        for (size_t i = 0; i < MODES; ++i)
            add(html, l.cell[i], out);
        add(html, l.gain, out);
        add(html, l.plain, out);
        clv_text_add(out, html ? "</tr>\n" : "\n");
    }
    if (html) clv_text_add(out, "</table></div>\n");
}
