/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the report of a run: what ran where, how long it took, and why. */
#include "runtime/job/report.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/job/balance/balance.h"
#include "runtime/record/context.h"

#include <cleave/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sum of all jobs of one kind, because an operation may run thousands of them. */
typedef struct job_sum {
    char name[128], signature[256];
    size_t runs;
    clv_job_record sum;
} job_sum;

struct clv_report {
    clv_json *machine, *operation;
    job_sum *jobs;
    size_t job_count, job_capacity;
    bool short_of_memory;
    double seconds;
    clv_share_record shares[CLV_BALANCE_MAX_DEVICES + 1]; /* shares of the last job */
    size_t share_count;
    char started[32];
};

clv_status clv_report_create(clv_report **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "report: out is NULL");
    *out = NULL;
    clv_report *report = clv_zalloc(1, sizeof *report);
    if (!report) return clv_fail(CLV_E_MEMORY, "not enough memory for a report");
    report->operation = clv_json_object();
    clv_utc(report->started, sizeof report->started);
    *out = report;
    return CLV_OK;
}

void clv_report_free(clv_report *report)
{
    if (!report) return;
    clv_json_free(report->machine);
    clv_json_free(report->operation);
    clv_free(report->jobs);
    clv_free(report);
}

double clv_report_seconds(const clv_report *report)
{
    return report->seconds;
}

size_t clv_report_share_count(const clv_report *report)
{
    return report->share_count;
}

clv_share clv_report_share(const clv_report *report, size_t index)
{
    return index < report->share_count ? report->shares[index].share : (clv_share){ 0 };
}

void clv_report_note(clv_report *report, const char *key, double value)
{
    if (report) clv_json_add_number(report->operation, key, value);
}

void clv_report_note_text(clv_report *report, const char *key, const char *value)
{
    if (report) clv_json_add_string(report->operation, key, value);
}

void clv_report_add_share(clv_job_record *record, const clv_share *share, const char *why,
                          double setup_s, double units_per_s, size_t max_chunk)
{
    clv_share_record *r = &record->shares[record->share_count++];
    *r = (clv_share_record){
        .share = *share, .setup_s = setup_s, .units_per_s = units_per_s, .max_chunk = max_chunk
    };
    clv_copy_string(r->device, sizeof r->device, share->device);
    clv_copy_string(r->why, sizeof r->why, why);
}

static clv_json *describe_machine(const clv_context *context)
{
    const clv_probe_report *probe = context->probe;
    clv_json *machine = clv_json_object();
    clv_json_add_string(machine, "mode", clv_mode_name(context->mode));
    clv_json_add_string(machine, "reason", context->reason);
    clv_json_add_string(machine, "cpu", probe->host.cpu_model);
    clv_json_add_int(machine, "threads", probe->host.threads_allowed);
    clv_json_add_string(machine, "loader", probe->loader_path);
    clv_json *devices = clv_json_add_array(machine, "devices");
    for (size_t i = 0; i < context->device_count; ++i) {
        const clv_device *device = &context->devices[i];
        clv_json *d = clv_json_add_object(devices, NULL);
        clv_json_add_string(d, "label", device->label);
        clv_json_add_string(d, "name", device->facts->name);
        clv_json_add_string(d, "class", clv_device_class_name(device->facts->device_class));
        clv_json_add_string(d, "driver", device->facts->driver_version);
        clv_json_add_bool(d, "zero_copy", device->zero_copy);
        clv_json_add_bool(d, "threads_bound", device->bound);
        clv_json_add_bytes(d, "budget_bytes", device->budget);
        if (device->loop_limit != CLV_UNKNOWN)
            clv_json_add_int(d, "loop_limit", (int64_t)device->loop_limit);
        if (device->state == CLV_DEVICE_QUARANTINED)
            clv_json_add_string(d, "quarantined", device->trouble.message);
    }
    return machine;
}

static void describe_share(clv_json *list, const clv_share_record *r, const clv_job_record *job)
{
    const clv_share *s = &r->share;
    clv_json *o = clv_json_add_object(list, NULL);
    clv_json_add_string(o, "device", r->device);
    clv_json_add_int(o, "units", (int64_t)s->units);
    clv_json_add_number(o, "share", job->units ? (double)s->units / (double)job->units : 0);
    clv_json_add_int(o, "chunks", (int64_t)s->chunks);
    clv_json_add_number(o, "busy_s", s->busy_s);
    if (s->kernel_s >= 0)
        clv_json_add_number(o, "kernel_s", s->kernel_s);
    else
        clv_json_add_null(o, "kernel_s");
    clv_json_add_number(o, "setup_s", r->setup_s);
    if (r->units_per_s > 0)
        clv_json_add_number(o, "units_per_s", r->units_per_s);
    else
        clv_json_add_null(o, "units_per_s");
    clv_json_add_bytes(o, "bytes_to_device", s->bytes_to_device);
    clv_json_add_bytes(o, "bytes_from_device", s->bytes_from_device);
    clv_json_add_bytes(o, "memory_peak_bytes", s->memory_peak_bytes);
    clv_json_add_int(o, "dropped", (int64_t)s->dropped);
    clv_json_add_int(o, "failed", (int64_t)s->failed);
    if (r->max_chunk) clv_json_add_int(o, "chunk_lowered_to", (int64_t)r->max_chunk);
    clv_json_add_string(o, "why", r->why);
}

static void describe_job(clv_json *list, const job_sum *jobs)
{
    static const char *const schedules[] = { "adaptive", "static", "dynamic", "hguided" };
    const clv_job_record *record = &jobs->sum;
    clv_json *job = clv_json_add_object(list, NULL);
    clv_json_add_string(job, "name", jobs->name);
    clv_json_add_string(job, "signature", record->signature ? jobs->signature : NULL);
    clv_json_add_int(job, "runs", (int64_t)jobs->runs);
    clv_json_add_int(job, "units", (int64_t)record->units);
    clv_json_add_number(job, "seconds", record->seconds);
    clv_json_add_string(job, "schedule", schedules[record->schedule]);
    clv_json_add_number(job, "imbalance", record->imbalance);
    if (record->efficiency > 0)
        clv_json_add_number(job, "efficiency", record->efficiency);
    else
        clv_json_add_null(job, "efficiency"); /* no speed was measured */
    clv_json *shares = clv_json_add_array(job, "shares");
    for (size_t i = 0; i < record->share_count; ++i)
        describe_share(shares, &record->shares[i], record);
}

static bool is_alike(const job_sum *jobs, const clv_job_record *record)
{
    const clv_job_record *sum = &jobs->sum;
    bool alike = strcmp(jobs->name, record->name) == 0 && sum->schedule == record->schedule &&
                 sum->share_count == record->share_count && !sum->signature == !record->signature &&
                 (!record->signature || strcmp(jobs->signature, record->signature) == 0);
    for (size_t i = 0; i < record->share_count && alike; ++i)
        alike = strcmp(sum->shares[i].device, record->shares[i].device) == 0;
    return alike;
}

/* Adds one device's share: sums what can be counted, and takes the rest from the latest job. */
static void add_share(clv_share_record *sum, const clv_share_record *one)
{
    clv_share_record both = *one;
    const clv_share *s = &sum->share;
    both.share.units += s->units, both.share.chunks += s->chunks;
    both.share.busy_s += s->busy_s;
    both.share.kernel_s =
        s->kernel_s < 0 || one->share.kernel_s < 0 ? -1 : s->kernel_s + one->share.kernel_s;
    both.share.bytes_to_device += s->bytes_to_device;
    both.share.bytes_from_device += s->bytes_from_device;
    both.share.memory_peak_bytes = CLV_MAX(s->memory_peak_bytes, one->share.memory_peak_bytes);
    both.share.dropped += s->dropped, both.share.failed += s->failed;
    both.setup_s += sum->setup_s;
    if (!(both.units_per_s > 0)) both.units_per_s = sum->units_per_s;
    if (!both.max_chunk) both.max_chunk = sum->max_chunk;
    *sum = both;
}

/* Adds a job; imbalance and efficiency are means, weighted by the jobs' seconds. */
static void add_to_sum(clv_job_record *sum, const clv_job_record *one)
{
    const double all = sum->seconds + one->seconds, part = all > 0 ? one->seconds / all : 0;
    sum->imbalance += part * (one->imbalance - sum->imbalance);
    if (!(sum->efficiency > 0))
        sum->efficiency = one->efficiency;
    else if (one->efficiency > 0)
        sum->efficiency += part * (one->efficiency - sum->efficiency);
    sum->units += one->units, sum->seconds = all;
    for (size_t i = 0; i < one->share_count; ++i)
        add_share(&sum->shares[i], &one->shares[i]);
}

void clv_report_add_job(clv_report *report, const clv_context *context,
                        const clv_job_record *record)
{
    if (!report->machine) report->machine = describe_machine(context);
    size_t k = 0;
    while (k < report->job_count && !is_alike(&report->jobs[k], record))
        ++k;
    if (k < report->job_count) {
        add_to_sum(&report->jobs[k].sum, record);
        ++report->jobs[k].runs;
    } else if (clv_reserve(&report->jobs, &report->job_capacity, k + 1, sizeof *report->jobs)) {
        job_sum *jobs = &report->jobs[report->job_count++];
        *jobs = (job_sum){ .runs = 1, .sum = *record };
        clv_copy_string(jobs->name, sizeof jobs->name, record->name);
        if (record->signature)
            clv_copy_string(jobs->signature, sizeof jobs->signature, record->signature);
    } else {
        report->short_of_memory = true;
    }

    report->seconds += record->seconds;
    report->share_count = record->share_count;
    memcpy(report->shares, record->shares, sizeof report->shares);
    for (size_t i = 0; i < report->share_count; ++i) {
        clv_share_record *r = &report->shares[i];
        r->share.device = r->device;
        if (r->share.left_out) r->share.left_out = r->why;
    }
}

char *clv_report_json(const clv_report *report)
{
    if (report->short_of_memory) return NULL;
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.report/1");
    clv_json_add_string(root, "version", clv_version());
    clv_json_add_string(root, "started_utc", report->started);
    clv_json_add_number(root, "seconds", report->seconds);
    clv_json_add_copy(root, "machine", report->machine);
    clv_json_add_copy(root, "operation", report->operation);
    clv_json *jobs = clv_json_add_array(root, "jobs");
    for (size_t k = 0; k < report->job_count; ++k)
        describe_job(jobs, &report->jobs[k]);
    char *text = clv_json_text(root, false);
    clv_json_free(root);
    return text;
}
