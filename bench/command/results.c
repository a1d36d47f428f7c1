/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tables and plots of a bench share. */
#include "bench/command/bench.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

double bench_best(const bench *b, size_t case_index, bench_metric metric)
{
    double best = 0;
    for (size_t i = 0; i < b->party_count; ++i) {
        const bench_stat *s = &b->cells[case_index][i].stat[metric];
        if (b->parties[i].kind != BENCH_DEVICE && b->parties[i].kind != BENCH_TOGETHER) continue;
        if (s->count && (best == 0 || s->median < best)) best = s->median;
    }
    return best;
}

double bench_working_s(const bench_cell *cell)
{
    const bench_stat *kernel = &cell->stat[BENCH_KERNEL], *compute = &cell->stat[BENCH_COMPUTE];
    return kernel->count ? kernel->median : compute->count ? compute->median : 0;
}

bool bench_rates(const bench *b, size_t case_index, size_t party, bench_rate *rate)
{
    const bench_case *c = &b->cases[case_index];
    const bench_cell *cell = &b->cells[case_index][party];
    const clv_probe_device *device = b->parties[party].device;
    const double seconds = bench_working_s(cell);
    *rate = (bench_rate){ -1, -1, -1, -1 };
    if (!(seconds > 0) || !(c->flops > 0) || !device) return false;
    rate->gflops = c->flops / seconds * 1e-9;
    if (c->traffic > 0) rate->gb_s = c->traffic / seconds * 1e-9;
    if (device->measured.fp32_gflops > 0)
        rate->gflops_part = rate->gflops / device->measured.fp32_gflops;
    if (rate->gb_s > 0 && device->measured.global_gb_s > 0)
        rate->gb_s_part = rate->gb_s / device->measured.global_gb_s;
    return true;
}

bool bench_has(const bench *b, size_t case_index, size_t party)
{
    const bench_cell *cell = &b->cells[case_index][party];
    for (size_t i = 0; i < BENCH_METRICS; ++i)
        if (cell->stat[i].count) return true;
    return *cell->note != '\0';
}

const char *bench_seconds(double seconds, char *out)
{
    *out = '\0';
    return seconds > 0 ? clv_format_seconds(seconds, out) : out;
}

const char *bench_time_cell(const bench *b, const bench_stat *stat, char *out)
{
    bench_seconds(stat->count ? stat->median : 0, out);
    if (stat->count && stat->count < b->plan.repeats) strcat(out, "*");
    return out;
}

const char *bench_ratio_cell(const bench *b, size_t case_index, const bench_stat *stat,
                             bench_metric metric, char *out)
{
    const double best = bench_best(b, case_index, metric);
    *out = '\0';
    if (!stat->count || !(best > 0)) return out;
    const double ratio = stat->median / best;
    snprintf(out, BENCH_CELL, ratio < 9.95 ? "x%.1f" : "x%.0f", ratio);
    return out;
}

const char *bench_rate_cell(double rate, double part, char *out)
{
    *out = '\0';
    if (!(rate >= 0)) return out;
    if (part >= 0)
        snprintf(out, BENCH_CELL, "%.3g (%.0f %%)", rate, 100 * part);
    else
        snprintf(out, BENCH_CELL, "%.3g", rate);
    return out;
}

double bench_items_s(const bench *b, size_t case_index, size_t party)
{
    const double seconds = bench_working_s(&b->cells[case_index][party]);
    return seconds > 0 ? b->cases[case_index].items / seconds : 0;
}

const char *bench_items_cell(const bench *b, size_t case_index, size_t party, char *out)
{
    const double rate = bench_items_s(b, case_index, party);
    *out = '\0';
    if (rate > 0) snprintf(out, BENCH_CELL, rate < 99.95 ? "%.1f" : "%.0f", rate);
    return out;
}

const char *bench_fact_cell(const bench_fact *fact, size_t party, char *out)
{
    const bench_stat *s = &fact->by_party[party];
    *out = '\0';
    if (s->count) snprintf(out, BENCH_CELL, "%.3g", s->median);
    return out;
}

bool bench_has_facts(const bench *b, size_t party)
{
    for (size_t i = 0; i < b->fact_count; ++i)
        if (b->facts[i].by_party[party].count) return true;
    return false;
}

size_t bench_late(const bench *b)
{
    size_t late = 0;
    for (size_t c = 0; c < b->case_count; ++c)
        for (size_t p = 0; p < b->party_count; ++p)
            late += b->cells[c][p].late;
    return late;
}

bool bench_few_repeats(const bench *b)
{
    for (size_t i = 0; i < b->case_count; ++i)
        for (size_t p = 0; p < b->party_count; ++p)
            for (size_t m = 0; m < BENCH_METRICS; ++m)
                if (b->cells[i][p].stat[m].count && b->cells[i][p].stat[m].count < b->plan.repeats)
                    return true;
    return false;
}

void bench_describe_machine(const bench *b, clv_text *out)
{
    const clv_probe_host *h = &b->probe->host;
    char size[16];
    clv_text_add(out, "%s, %u cores", h->cpu_model ? h->cpu_model : "unknown processor", h->cores);
    if (h->memory_total_bytes != CLV_UNKNOWN)
        clv_text_add(out, ", %s", clv_format_bytes(h->memory_total_bytes, size));
    if (h->os_name) clv_text_add(out, ", %s %s", h->os_name, h->os_version ? h->os_version : "");
    if (h->kernel) clv_text_add(out, ", %s", h->kernel);
}

void bench_describe_device(const bench *b, size_t party, clv_text *out)
{
    const clv_probe_device *d = b->parties[party].device;
    const clv_probe_platform *p = &b->probe->platforms[d->platform];
    clv_text_add(out, "%s, driver %s", p->name ? p->name : "",
                 d->driver_version ? d->driver_version : "?");
    if (d->measured.fp32_gflops > 0) clv_text_add(out, ", %.0f GFLOP/s", d->measured.fp32_gflops);
    if (d->measured.global_gb_s > 0)
        clv_text_add(out, ", %.1f GB/s measured", d->measured.global_gb_s);
}

bool bench_was_busy(const bench *b)
{
    const double most = 0.5 * b->probe->host.threads_allowed;
    return b->plan.load_before > most && b->plan.load_before > 0.5;
}
