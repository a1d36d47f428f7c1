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

struct clv_report {
    clv_json *machine, *jobs, *operation;
    double seconds;
    clv_share_record shares[CLV_BALANCE_MAX_DEVICES + 1]; /* of the last job */
    size_t share_count;
    char started[32];
};

clv_status clv_report_create(clv_report **out)
{
    if (!out) return clv_fail(CLV_E_ARGUMENT, "report: out is NULL");
    *out = NULL;
    clv_report *report = clv_zalloc(1, sizeof *report);
    if (!report) return clv_fail(CLV_E_MEMORY, "not enough memory for a report");
    report->jobs = clv_json_array();
    report->operation = clv_json_object();
    clv_utc(report->started, sizeof report->started);
    *out = report;
    return CLV_OK;
}

void clv_report_free(clv_report *report)
{
    if (!report) return;
    clv_json_free(report->machine);
    clv_json_free(report->jobs);
    clv_json_free(report->operation);
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

void clv_report_add_job(clv_report *report, const clv_context *context,
                        const clv_job_record *record)
{
    static const char *const schedules[] = { "adaptive", "static", "dynamic", "hguided" };
    if (!report->machine) report->machine = describe_machine(context);
    clv_json *job = clv_json_add_object(report->jobs, NULL);
    clv_json_add_string(job, "name", record->name);
    clv_json_add_string(job, "signature", record->signature);
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
    clv_json *root = clv_json_object();
    clv_json_add_string(root, "schema", "cleave.report/1");
    clv_json_add_string(root, "version", clv_version());
    clv_json_add_string(root, "started_utc", report->started);
    clv_json_add_number(root, "seconds", report->seconds);
    clv_json_add_copy(root, "machine", report->machine);
    clv_json_add_copy(root, "operation", report->operation);
    clv_json_add_copy(root, "jobs", report->jobs);
    char *text = clv_json_text(root, false);
    clv_json_free(root);
    return text;
}
