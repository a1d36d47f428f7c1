/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of a bench as one HTML page with plots and tables, which loads nothing from elsewhere. */
#include "bench/command/bench.h"

#include "base/alloc.h"

#include <cleave/version.h>

static const char style[] =
    ":root{--ink:#1f2328;--dim:#667080;--line:#d8dde4;--paper:#fff;--card:#f6f8fa}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa4b2;--line:#39414d;"
    "--paper:#14171c;--card:#1c2027}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:1060px;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}\n"
    ".dim{color:var(--dim)}.busy{background:#e3494822;border-left:4px solid #e34948;"
    "padding:.4rem .8rem}\n"
    ".scroll{overflow-x:auto;margin-bottom:1.5rem}table{border-collapse:collapse;font-variant-"
    "numeric:tabular-nums}\n"
    "td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}\n"
    "th{color:var(--dim);font-weight:600}td.l,th.l{text-align:left}tr.case td{font-weight:600;"
    "padding-top:.7rem;border-bottom:0}\n"
    "figure{margin:1rem 0;padding:1rem;background:var(--card);border-radius:8px}\n"
    "svg{width:100%;height:auto;display:block}svg text{font-size:12px;fill:var(--ink)}\n"
    "svg .title{font-weight:600;font-size:14px}svg .grid{stroke:var(--line);fill:none}\n"
    "svg .axis{stroke:var(--dim);fill:none}svg .line{fill:none;stroke-width:2}\n"
    ".key{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.45em}\n";

static void add_head(const bench *b, clv_text *out)
{
    clv_text machine = { 0 };
    bench_describe_machine(b, &machine);
    clv_text_add(out,
                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<title>Cleave bench, %.10s</title>\n<style>\n%s</style></head><body>\n"
                 "<h1>Cleave bench</h1>\n<p class=\"dim\">Cleave %s, %.10s. ",
                 b->started, style, clv_version(), b->started);
    bench_escape(clv_text_get(&machine), out);
    clv_text_add(out, "</p>\n<ul>\n");
    out->failed = out->failed || machine.failed;
    clv_text_clear(&machine);
    for (size_t i = 0; i < b->party_count; ++i) {
        const bench_party *p = &b->parties[i];
        clv_text text = { 0 };
        if (!p->device && !*p->modes) continue;
        if (p->device) bench_describe_device(b, i, &text);
        clv_text_add(out, "<li><span class=\"key\" style=\"background:%s\"></span><b>",
                     bench_colour(b, i));
        bench_escape(p->name, out);
        clv_text_add(out, "</b> ");
        bench_escape(clv_text_get(&text), out);
        if (*p->modes) clv_text_add(out, "%smode %s", p->device ? "; " : "", p->modes);
        clv_text_add(out, "</li>\n");
        out->failed = out->failed || text.failed;
        clv_text_clear(&text);
    }
    clv_text_add(out, "</ul>\n");
    if (bench_was_busy(b))
        clv_text_add(out,
                     "<p class=\"busy\">The machine was busy (load %.1f): these times are too "
                     "long.</p>\n",
                     b->plan.load_before);
}

static void add_cell(const char *text, clv_text *out)
{
    clv_text_add(out, "<td>");
    bench_escape(text, out);
    clv_text_add(out, "</td>");
}

static void add_row(const bench *b, size_t c, size_t p, clv_text *out)
{
    const bench_cell *cell = &b->cells[c][p];
    const bench_stat *s = cell->stat;
    char text[BENCH_CELL];
    bench_rate rate;
    bench_rates(b, c, p, &rate);
    clv_text_add(out, "<tr><td class=\"l\"><span class=\"key\" style=\"background:%s\"></span>",
                 bench_colour(b, p));
    bench_escape(b->parties[p].name, out);
    clv_text_add(out, "</td>");
    add_cell(bench_time_cell(b, &s[BENCH_KERNEL], text), out);
    add_cell(bench_time_cell(b, &s[BENCH_COMPUTE], text), out);
    add_cell(bench_ratio_cell(b, c, &s[BENCH_COMPUTE], BENCH_COMPUTE, text), out);
    add_cell(bench_time_cell(b, &s[BENCH_FILES], text), out);
    add_cell(bench_ratio_cell(b, c, &s[BENCH_FILES], BENCH_FILES, text), out);
    add_cell(bench_time_cell(b, &s[BENCH_COLD], text), out);
    add_cell(cell->memory_bytes ? clv_format_bytes(cell->memory_bytes, text) : "", out);
    add_cell(bench_rate_cell(rate.gflops, rate.gflops_part, text), out);
    add_cell(bench_rate_cell(rate.gb_s, rate.gb_s_part, text), out);
    if (b->cases[c].workload->unit) add_cell(bench_items_cell(b, c, p, text), out);
    clv_text_add(out, "</tr>\n");
}

static void add_table(const bench *b, const bench_workload *workload, clv_text *out)
{
    clv_text_add(out,
                 "<div class=\"scroll\"><table>\n<tr><th class=\"l\"></th><th>kernels</th>"
                 "<th>compute</th><th></th><th>files</th><th></th><th>cold</th>"
                 "<th>memory</th><th>GFLOP/s</th><th>GB/s</th>%s%s%s</tr>\n",
                 workload->unit ? "<th>" : "", workload->unit ? workload->unit : "",
                 workload->unit ? "</th>" : "");
    for (size_t c = 0; c < b->case_count; ++c) {
        if (b->cases[c].workload != workload) continue;
        clv_text_add(out, "<tr class=\"case\"><td class=\"l\" colspan=\"%d\">",
                     workload->unit ? 11 : 10);
        bench_escape(b->cases[c].name, out);
        clv_text_add(out, "</td></tr>\n");
        for (size_t p = 0; p < b->party_count; ++p)
            if (bench_has(b, c, p)) add_row(b, c, p, out);
    }
    clv_text_add(out, "</table></div>\n");
    for (size_t p = 0; p < b->party_count; ++p)
        for (size_t c = 0; c < b->case_count; ++c)
            if (b->cases[c].workload == workload && *b->cells[c][p].note) {
                clv_text_add(out, "<p class=\"dim\">");
                bench_escape(b->parties[p].name, out);
                clv_text_add(out, ", ");
                bench_escape(b->cases[c].name, out);
                clv_text_add(out, ": ");
                bench_escape(b->cells[c][p].note, out);
                clv_text_add(out, "</p>\n");
            }
}

/* Adds a drawing; an empty one adds no frame. */
static void add_figure(clv_text *drawing, clv_text *out)
{
    if (drawing->data) clv_text_add(out, "<figure>\n%s</figure>\n", drawing->data);
    out->failed = out->failed || drawing->failed;
    clv_text_clear(drawing);
}

static void add_workload(const bench *b, const bench_workload *workload, clv_text *out)
{
    static const bench_metric metrics[] = { BENCH_COMPUTE, BENCH_FILES };
    clv_text drawing = { 0 };
    clv_text_add(out, "<h2>");
    bench_escape(workload->title, out);
    clv_text_add(out, "</h2>\n");
    for (size_t i = 0; i < CLV_LEN(metrics); ++i) {
        bench_draw_dots(b, workload, metrics[i], &drawing);
        add_figure(&drawing, out);
    }
    for (size_t i = 0; i < workload->plot_count; ++i) {
        bench_draw_plot(b, &workload->plots[i], BENCH_COMPUTE, &drawing);
        add_figure(&drawing, out);
    }
    bench_add_modes(b, workload, true, out);
    add_table(b, workload, out);
}

static void add_facts(const bench *b, clv_text *out)
{
    char text[BENCH_CELL];
    if (!b->fact_count) return;
    clv_text_add(out, "<h2>The runtime</h2>\n<div class=\"scroll\"><table>\n<tr>"
                      "<th class=\"l\"></th><th></th>");
    for (size_t p = 0; p < b->party_count; ++p)
        if (bench_has_facts(b, p)) {
            clv_text_add(out, "<th>");
            bench_escape(b->parties[p].name, out);
            clv_text_add(out, "</th>");
        }
    clv_text_add(out, "</tr>\n");
    for (size_t i = 0; i < b->fact_count; ++i) {
        clv_text_add(out, "<tr><td class=\"l\">");
        bench_escape(b->facts[i].name, out);
        clv_text_add(out, "</td><td class=\"l\">");
        bench_escape(b->facts[i].unit, out);
        clv_text_add(out, "</td>");
        for (size_t p = 0; p < b->party_count; ++p)
            if (bench_has_facts(b, p)) add_cell(bench_fact_cell(&b->facts[i], p, text), out);
        clv_text_add(out, "</tr>\n");
    }
    clv_text_add(out, "</table></div>\n");
}

char *bench_html(const bench *b)
{
    clv_text out = { 0 }, shares = { 0 };
    add_head(b, &out);
    for (size_t i = 0; i < b->workload_count; ++i)
        add_workload(b, b->workloads[i], &out);
    bench_draw_shares(b, &shares);
    add_figure(&shares, &out);
    add_facts(b, &out);
    clv_text_add(
        &out,
        "<p class=\"dim\">Times are medians of at least %zu runs%s. kernels: by the device's "
        "clock; compute: from memory to memory; files: the whole command, from files to files, "
        "with warm caches; cold: the same with empty caches; x: time relative to the fastest "
        "device; GFLOP/s and GB/s: of the kernels, or of compute if the kernels have no times; "
        "%%: share of the rate that <code>cleave probe --bench</code> measured.</p>\n"
        "</body></html>\n",
        b->plan.repeats, bench_few_repeats(b) ? " (*: fewer)" : "");
    if (out.failed) clv_text_clear(&out);
    return out.data;
}
