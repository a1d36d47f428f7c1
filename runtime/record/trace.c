/* SPDX-License-Identifier: Apache-2.0 */
/* Records what ran when, as a Chrome trace: one process per device, one track per queue. */
#include "runtime/record/trace.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/thread.h"
#include "runtime/record/device.h"

#include <string.h>

enum { MAX_EVENTS = 1000000 };

typedef struct event {
    const clv_device *device;
    unsigned track;
    char name[64];
    double start, end; /* end < start: a note */
    size_t bytes;
} event;

struct clv_trace {
    clv_mutex lock;
    double zero;
    event *events;
    size_t count, capacity, lost;
};

clv_trace *clv_trace_create(void)
{
    clv_trace *trace = clv_zalloc(1, sizeof *trace);
    if (!trace) return NULL;
    clv_mutex_init(&trace->lock);
    trace->zero = clv_now();
    return trace;
}

void clv_trace_free(clv_trace *trace)
{
    if (!trace) return;
    pthread_mutex_destroy(&trace->lock);
    clv_free(trace->events);
    clv_free(trace);
}

static void add(clv_trace *trace, const event *e)
{
    pthread_mutex_lock(&trace->lock);
    if (trace->count < MAX_EVENTS &&
        clv_reserve(&trace->events, &trace->capacity, trace->count + 1, sizeof *trace->events))
        trace->events[trace->count++] = *e;
    else
        ++trace->lost;
    pthread_mutex_unlock(&trace->lock);
}

void clv_trace_span(clv_trace *trace, const clv_device *device, unsigned track, const char *name,
                    double start, double end, size_t bytes)
{
    if (!trace) return;
    event e = { .device = device, .track = track, .start = start, .end = end, .bytes = bytes };
    clv_copy_string(e.name, sizeof e.name, name);
    add(trace, &e);
}

void clv_trace_note(clv_trace *trace, const clv_device *device, double when, const char *text)
{
    if (!trace) return;
    event e = { .device = device, .start = when, .end = when - 1 };
    clv_copy_string(e.name, sizeof e.name, text);
    add(trace, &e);
}

/* Returns the number of a device's process in the trace. Devices are numbered in the order in which they appear; 0 is
 * the host. */
static int process_of(const clv_device **seen, size_t *seen_count, const clv_device *device)
{
    if (!device) return 0;
    for (size_t i = 0; i < *seen_count; ++i)
        if (seen[i] == device) return (int)i + 1;
    if (*seen_count == CLV_LEN(((const clv_device *[64]){ 0 }))) return 64;
    seen[(*seen_count)++] = device;
    return (int)*seen_count;
}

static void name_process(clv_json *list, int process, const char *name)
{
    clv_json *e = clv_json_add_object(list, NULL);
    clv_json_add_string(e, "ph", "M");
    clv_json_add_string(e, "name", "process_name");
    clv_json_add_int(e, "pid", process);
    clv_json_add_string(clv_json_add_object(e, "args"), "name", name);
}

clv_status clv_trace_write(clv_trace *trace, const char *path)
{
    const clv_device *seen[64];
    size_t seen_count = 0;
    clv_json *root = clv_json_object();
    clv_json *list = clv_json_add_array(root, "traceEvents");
    pthread_mutex_lock(&trace->lock);
    for (size_t i = 0; i < trace->count; ++i) {
        const event *t = &trace->events[i];
        const bool note = t->end < t->start;
        clv_json *e = clv_json_add_object(list, NULL);
        clv_json_add_string(e, "ph", note ? "i" : "X");
        clv_json_add_string(e, "name", t->name);
        clv_json_add_int(e, "pid", process_of(seen, &seen_count, t->device));
        clv_json_add_int(e, "tid", t->track);
        clv_json_add_number(e, "ts", (t->start - trace->zero) * 1e6);
        if (!note) clv_json_add_number(e, "dur", (t->end - t->start) * 1e6);
        if (t->bytes) clv_json_add_bytes(clv_json_add_object(e, "args"), "bytes", t->bytes);
    }
    name_process(list, 0, "host");
    for (size_t i = 0; i < seen_count; ++i)
        name_process(list, (int)i + 1, seen[i]->label);
    if (trace->lost) clv_json_add_int(root, "events_lost", (int64_t)trace->lost);
    pthread_mutex_unlock(&trace->lock);
    clv_json_add_string(root, "displayTimeUnit", "ms");
    const clv_status status = clv_json_write(root, path);
    clv_json_free(root);
    return status;
}
