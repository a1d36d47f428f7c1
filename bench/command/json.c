/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of a bench as JSON, schema cleave.bench/1. Times are in seconds; `null` means unknown. */
#include "bench/command/bench.h"

#include <cleave/version.h>

#include <math.h>

static const char *const kinds[] = { "device", "together", "reference", "peer" };
const char *const bench_metric_names[BENCH_METRICS] = { "kernel", "compute", "files",
                                                        "files_cold" };

static double known(double value)
{
    return value >= 0 ? value : NAN; /* not finite: null */
}

static void add_stat(clv_json *parent, const char *key, const bench_stat *stat)
{
    if (!stat->count) {
        clv_json_add_null(parent, key);
        return;
    }
    clv_json *o = clv_json_add_object(parent, key);
    clv_json_add_int(o, "count", (int64_t)stat->count);
    clv_json_add_number(o, "median", stat->median);
    clv_json_add_number(o, "minimum", stat->minimum);
    clv_json_add_number(o, "maximum", stat->maximum);
    clv_json_add_number(o, "spread", (stat->maximum - stat->minimum) / stat->median);
}

static void add_machine(const bench *b, clv_json *root)
{
    const clv_probe_host *h = &b->probe->host;
    clv_json *m = clv_json_add_object(root, "machine");
    clv_json_add_string(m, "cpu", h->cpu_model);
    clv_json_add_int(m, "cores", h->cores);
    clv_json_add_int(m, "threads_allowed", h->threads_allowed);
    clv_json_add_string(m, "isa", h->isa);
    clv_json_add_bytes(m, "memory_bytes", h->memory_total_bytes);
    clv_json_add_string(m, "os", h->os_name);
    clv_json_add_string(m, "os_version", h->os_version);
    clv_json_add_string(m, "kernel", h->kernel);
    clv_json_add_string(m, "hypervisor", h->hypervisor);
    clv_json_add_number(m, "load_before", known(b->plan.load_before));
    clv_json_add_number(m, "load_after", known(b->plan.load_after));
}

static void add_device(const bench *b, const clv_probe_device *d, clv_json *parent)
{
    const clv_probe_platform *p = &b->probe->platforms[d->platform];
    clv_json *o = clv_json_add_object(parent, "device");
    clv_json_add_string(o, "id", d->id);
    clv_json_add_string(o, "name", d->name);
    clv_json_add_string(o, "class", clv_device_class_name(d->device_class));
    clv_json_add_string(o, "platform", p->name);
    clv_json_add_string(o, "platform_version", p->version);
    clv_json_add_string(o, "driver", d->driver_version);
    clv_json_add_int(o, "compute_units", d->compute_units);
    clv_json_add_bytes(o, "global_bytes", d->global_bytes);
    clv_json_add_number(o, "fp32_gflops", known(d->measured.fp32_gflops));
    clv_json_add_number(o, "global_gb_s", known(d->measured.global_gb_s));
    clv_json_add_string(o, "measured_utc", d->measured.date);
}

static void add_parties(const bench *b, clv_json *root)
{
    clv_json *list = clv_json_add_array(root, "parties");
    for (size_t i = 0; i < b->party_count; ++i) {
        const bench_party *p = &b->parties[i];
        clv_json *o = clv_json_add_object(list, NULL);
        clv_json_add_string(o, "name", p->name);
        clv_json_add_string(o, "kind", kinds[p->kind]);
        if (*p->modes) clv_json_add_string(o, "modes", p->modes);
        if (p->device) add_device(b, p->device, o);
    }
}

static void add_rates(const bench *b, size_t c, size_t p, clv_json *o)
{
    bench_rate rate;
    if (!bench_rates(b, c, p, &rate)) return;
    clv_json_add_number(o, "gflops", known(rate.gflops));
    clv_json_add_number(o, "gflops_part", known(rate.gflops_part));
    clv_json_add_number(o, "gb_s", known(rate.gb_s));
    clv_json_add_number(o, "gb_s_part", known(rate.gb_s_part));
}

static void add_cell(const bench *b, size_t c, size_t p, clv_json *list)
{
    const bench_cell *cell = &b->cells[c][p];
    clv_json *o = clv_json_add_object(list, NULL);
    clv_json_add_string(o, "party", b->parties[p].name);
    for (size_t m = 0; m < BENCH_METRICS; ++m)
        add_stat(o, bench_metric_names[m], &cell->stat[m]);
    add_rates(b, c, p, o);
    if (bench_items_s(b, c, p) > 0) {
        clv_json_add_number(o, "rate", bench_items_s(b, c, p));
        clv_json_add_string(o, "rate_unit", b->cases[c].workload->unit);
    }
    if (cell->memory_bytes) clv_json_add_bytes(o, "memory_bytes", cell->memory_bytes);
    for (size_t m = BENCH_COMPUTE; m <= BENCH_FILES; ++m) {
        const double best = bench_best(b, c, (bench_metric)m);
        if (cell->stat[m].count && best > 0)
            clv_json_add_number(o, m == BENCH_COMPUTE ? "compute_ratio" : "files_ratio",
                                cell->stat[m].median / best);
    }
    if (cell->agreement >= 0) clv_json_add_number(o, "agreement", cell->agreement);
    if (cell->share_count) {
        clv_json *shares = clv_json_add_array(o, "shares");
        for (size_t i = 0; i < cell->share_count; ++i) {
            clv_json *share = clv_json_add_object(shares, NULL);
            clv_json_add_string(share, "device", cell->shares[i].device);
            clv_json_add_number(share, "part", cell->shares[i].part);
        }
    }
    if (*cell->note) clv_json_add_string(o, "note", cell->note);
    if (cell->late) clv_json_add_bool(o, "late", true);
}

static void add_cases(const bench *b, clv_json *root)
{
    clv_json *list = clv_json_add_array(root, "cases");
    for (size_t c = 0; c < b->case_count; ++c) {
        const bench_case *k = &b->cases[c];
        clv_json *o = clv_json_add_object(list, NULL);
        clv_json_add_string(o, "workload", k->workload->name);
        clv_json_add_string(o, "name", k->name);
        clv_json *size = clv_json_add_array(o, "size");
        for (size_t i = 0; i < 3; ++i)
            clv_json_add_int(size, NULL, (int64_t)k->size[i]);
        clv_json_add_number(o, "flops", k->flops > 0 ? k->flops : NAN);
        clv_json_add_number(o, "traffic_bytes", k->traffic > 0 ? k->traffic : NAN);
        clv_json *results = clv_json_add_array(o, "results");
        for (size_t p = 0; p < b->party_count; ++p)
            if (bench_has(b, c, p)) add_cell(b, c, p, results);
    }
}

static void add_facts(const bench *b, clv_json *root)
{
    clv_json *list = clv_json_add_array(root, "runtime");
    for (size_t i = 0; i < b->fact_count; ++i) {
        clv_json *o = clv_json_add_object(list, NULL);
        clv_json_add_string(o, "name", b->facts[i].name);
        clv_json_add_string(o, "unit", b->facts[i].unit);
        clv_json *results = clv_json_add_array(o, "results");
        for (size_t p = 0; p < b->party_count; ++p) {
            if (!b->facts[i].by_party[p].count) continue;
            clv_json *result = clv_json_add_object(results, NULL);
            clv_json_add_string(result, "party", b->parties[p].name);
            add_stat(result, "value", &b->facts[i].by_party[p]);
        }
    }
}

clv_json *bench_json(const bench *b)
{
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.bench/1");
    clv_json_add_string(root, "version", clv_version());
    clv_json_add_string(root, "started_utc", b->started);
    clv_json_add_int(root, "repeats", (int64_t)b->plan.repeats);
    clv_json_add_int(root, "turns", (int64_t)b->plan.turns);
    clv_json_add_number(root, "patience_s", b->plan.patience_s);
    clv_json_add_bool(root, "complete", b->ended && !bench_late(b) && !b->runtime_late);
    if (b->plan.budget_s > 0) clv_json_add_number(root, "budget_s", b->plan.budget_s);
    add_machine(b, root);
    add_parties(b, root);
    add_cases(b, root);
    add_facts(b, root);
    return root;
}
