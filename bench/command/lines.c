/* SPDX-License-Identifier: Apache-2.0 */
/* Sends figures from a party's process to the command, one line of JSON each.
 *
 *   {"doing": "paco 50x50, T=50"}
 *   {"case": 3, "metric": "compute", "seconds": [0.1, 0.11]}
 *   {"case": 3, "flops": 1e9, "traffic": 1e8}      {"case": 3, "note": "no memory", "late": false}
 *   {"case": 3, "shares": [{"device": "...", "part": 0.7}, ...]}
 *   {"fact": "launch and wait", "unit": "us", "values": [...]}
 *   {"party": "PyTorch 2.9", "case": 3, "agreement": 1e-6, ...}     outside programs */
#include "bench/command/bench.h"

#include "host/cli/cli.h"
#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const char *const metrics[BENCH_METRICS] = { "kernel", "compute", "files", "cold" };

static void write_line(bench_run *run, clv_json *line)
{
    char *text = clv_json_text(line, true);
    if (text) cli_say(run->out, "%s\n", text);
    clv_json_text_free(text);
    clv_json_free(line);
}

static clv_json *line_about(size_t case_index)
{
    clv_json *line = clv_json_object();
    clv_json_add_int(line, "case", (int64_t)case_index);
    return line;
}

static void add_values(clv_json *line, const char *key, const double *values, size_t count)
{
    clv_json *list = clv_json_add_array(line, key);
    for (size_t i = 0; i < count; ++i)
        clv_json_add_number(list, NULL, values[i]);
}

void bench_say(bench_run *run, const char *doing)
{
    clv_json *line = clv_json_object();
    clv_json_add_string(line, "doing", doing);
    write_line(run, line);
}

void bench_send(bench_run *run, size_t case_index, bench_metric metric, const double *values,
                size_t count)
{
    clv_json *line = line_about(case_index);
    clv_json_add_string(line, "metric", metrics[metric]);
    add_values(line, "seconds", values, count);
    write_line(run, line);
}

void bench_send_cost(bench_run *run, size_t case_index, double flops, double traffic)
{
    clv_json *line = line_about(case_index);
    clv_json_add_number(line, "flops", flops);
    clv_json_add_number(line, "traffic", traffic);
    write_line(run, line);
}

void bench_send_shares(bench_run *run, size_t case_index, const clv_report *report)
{
    clv_json *line = line_about(case_index), *list = clv_json_add_array(line, "shares");
    size_t units = 0;
    for (size_t i = 0; i < clv_report_share_count(report); ++i)
        units += clv_report_share(report, i).units;
    for (size_t i = 0; i < clv_report_share_count(report) && units; ++i) {
        const clv_share share = clv_report_share(report, i);
        clv_json *entry = clv_json_add_object(list, NULL);
        clv_json_add_string(entry, "device", share.device);
        clv_json_add_number(entry, "part", (double)share.units / (double)units);
    }
    write_line(run, line);
}

void bench_send_note(bench_run *run, size_t case_index, const char *note)
{
    bench_send_left_out(run, case_index, note, false);
}

void bench_send_left_out(bench_run *run, size_t case_index, const char *note, bool late)
{
    clv_json *line = line_about(case_index);
    clv_json_add_string(line, "note", note);
    clv_json_add_bool(line, "late", late);
    write_line(run, line);
}

void bench_send_for(bench_run *run, const char *party, size_t case_index, const double *values,
                    size_t count)
{
    clv_json *line = line_about(case_index);
    clv_json_add_string(line, "party", party);
    clv_json_add_string(line, "metric", metrics[BENCH_COMPUTE]);
    add_values(line, "seconds", values, count);
    write_line(run, line);
}

void bench_send_fact(bench_run *run, const char *name, const char *unit, const double *values,
                     size_t count)
{
    clv_json *line = clv_json_object();
    clv_json_add_string(line, "fact", name);
    clv_json_add_string(line, "unit", unit);
    add_values(line, "values", values, count);
    write_line(run, line);
}

void bench_in_time(bench_cell *cell)
{
    if (cell->late) *cell->note = '\0';
    cell->late = false;
}

/* ---- taking ------------------------------------------------------------------------------------------ */

size_t bench_find_party(bench *b, bench_kind kind, const char *name)
{
    for (size_t i = 0; i < b->party_count; ++i)
        if (strcmp(b->parties[i].name, name) == 0) return i;
    if (b->party_count == BENCH_MOST_PARTIES) return SIZE_MAX;
    bench_party *party = &b->parties[b->party_count];
    *party = (bench_party){ .kind = kind };
    clv_copy_string(party->name, sizeof party->name, name);
    for (size_t i = 0; i < BENCH_MOST_CASES; ++i)
        b->cells[i][b->party_count].agreement = -1;
    return b->party_count++;
}

/* Adds samples to `values`, which has `count` of earlier turns and room for BENCH_MOST_SAMPLES. */
static bench_stat read_stat(const clv_json *list, double *values, size_t count)
{
    for (size_t i = 0; i < clv_json_count(list) && count < BENCH_MOST_SAMPLES; ++i) {
        const double value = clv_json_number(clv_json_at(list, i), NAN);
        if (isfinite(value)) values[count++] = value;
    }
    return bench_stat_of(values, count);
}

static void take_fact(bench *b, size_t party, const clv_json *line, const char *name)
{
    size_t i = 0;
    while (i < b->fact_count && strcmp(b->facts[i].name, name) != 0)
        ++i;
    if (i == BENCH_MOST_FACTS) return;
    if (i == b->fact_count) {
        clv_copy_string(b->facts[i].name, sizeof b->facts[i].name, name);
        clv_copy_string(b->facts[i].unit, sizeof b->facts[i].unit,
                        clv_json_string(clv_json_get(line, "unit"), ""));
        ++b->fact_count;
    }
    double values[BENCH_MOST_SAMPLES];
    b->facts[i].by_party[party] = read_stat(clv_json_get(line, "values"), values, 0);
}

void bench_take_shares(bench_cell *cell, const clv_json *list)
{
    cell->share_count = 0;
    for (size_t i = 0; i < clv_json_count(list) && cell->share_count < BENCH_MOST_SHARES; ++i) {
        const clv_json *entry = clv_json_at(list, i);
        bench_share *share = &cell->shares[cell->share_count++];
        clv_copy_string(share->device, sizeof share->device,
                        clv_json_string(clv_json_get(entry, "device"), ""));
        share->part = clv_json_number(clv_json_get(entry, "part"), 0);
    }
}

static void take_case(bench *b, size_t party, size_t index, const clv_json *line)
{
    bench_cell *cell = &b->cells[index][party];
    bench_case *c = &b->cases[index];
    const char *metric = clv_json_string(clv_json_get(line, "metric"), ""),
               *note = clv_json_string(clv_json_get(line, "note"), NULL);
    if (cell->kept) return; /* an outside program measured it again */
    for (size_t i = 0; i < BENCH_METRICS; ++i)
        if (strcmp(metric, metrics[i]) == 0)
            cell->stat[i] =
                read_stat(clv_json_get(line, "seconds"), cell->seconds[i], cell->stat[i].count);
    if (*metric) bench_in_time(cell);
    c->flops = clv_json_number(clv_json_get(line, "flops"), c->flops);
    c->traffic = clv_json_number(clv_json_get(line, "traffic"), c->traffic);
    cell->memory_bytes =
        (uint64_t)clv_json_number(clv_json_get(line, "memory"), (double)cell->memory_bytes);
    cell->agreement = clv_json_number(clv_json_get(line, "agreement"), cell->agreement);
    if (clv_json_get(line, "shares")) bench_take_shares(cell, clv_json_get(line, "shares"));
    if (!note) return;
    clv_copy_string(cell->note, sizeof cell->note, note);
    cell->late = clv_json_bool(clv_json_get(line, "late"), false);
}

const char *bench_take(bench *b, size_t party, const char *text)
{
    static char doing[120];
    clv_json *line;
    if (clv_json_parse("a figure", text, strlen(text), &line)) return NULL;
    const char *said = clv_json_string(clv_json_get(line, "doing"), NULL),
               *fact = clv_json_string(clv_json_get(line, "fact"), NULL),
               *peer = clv_json_string(clv_json_get(line, "party"), NULL);
    const int64_t index = clv_json_int(clv_json_get(line, "case"), -1);
    if (peer) party = bench_find_party(b, BENCH_PEER, peer);
    if (said)
        clv_copy_string(doing, sizeof doing, said);
    else if (fact && party < b->party_count)
        take_fact(b, party, line, fact);
    else if (index >= 0 && (size_t)index < b->case_count && party < b->party_count)
        take_case(b, party, (size_t)index, line);
    clv_json_free(line);
    return said ? doing : NULL;
}
