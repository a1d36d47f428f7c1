/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tree of platforms and devices in a report for people. */
#include "probe/report/report_tree.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"
#include "probe/judge/quirks.h"
#include "probe/report/wrap.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 6, NAME = 27, CLASS = 15, SIZE = 8 }; /* columns of a device's first line */

typedef struct branch {
    const char *platform, *under, *device, *detail; /* prefixes of lines */
} branch;

/* Returns the prefixes of the lines for a platform, a device of it, and the device's details. */
static branch branch_of(const clv_page *p, bool last_platform, bool last_device)
{
    static const branch utf8[2][2] = {
        {
            { "├─ ", "│  ", "│  ├─ ", "│  │      " },
            { "├─ ", "│  ", "│  └─ ", "│         " },
        },
        {
            { "└─ ", "   ", "   ├─ ", "   │      " },
            { "└─ ", "   ", "   └─ ", "          " },
        },
    };
    static const branch ascii[2][2] = {
        { { "|- ", "|  ", "|  |- ", "|  |      " }, { "|- ", "|  ", "|  `- ", "|         " } },
        { { "`- ", "   ", "   |- ", "   |      " }, { "`- ", "   ", "   `- ", "          " } },
    };
    return p->style->lines ? utf8[last_platform][last_device] : ascii[last_platform][last_device];
}

/* Short pieces of text that are written as "a; b; c", with line breaks only between pieces. */
typedef struct pieces {
    clv_text text; /* separated by newlines */
} pieces;

static void add(pieces *list, const char *format, ...) CLV_PRINTF(2, 3);

static void add(pieces *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (list->text.length) clv_text_add(&list->text, "\n");
    clv_text_vadd(&list->text, format, args);
    va_end(args);
}

static void write_pieces(const clv_page *p, const branch *b, clv_tint tint, pieces *list)
{
    clv_wrap w;
    clv_wrap_begin(&w, p->out, p->style->colour, b->detail, b->detail);
    for (const char *at = clv_text_get(&list->text); *at;) {
        const size_t length = strcspn(at, "\n");
        clv_wrap_piece(&w, tint, "%.*s%s", (int)length, at, at[length] ? ";" : "");
        at += length + (at[length] == '\n');
    }
    clv_wrap_end(&w);
    if (list->text.failed) p->out->failed = true;
    clv_text_clear(&list->text);
}

static void state_of(const clv_page *p, const clv_probe_device *device, clv_tint *tint, char *out,
                     size_t capacity)
{
    const clv_probe_mode *mode = &p->report->mode;
    const size_t index = (size_t)(device - p->report->devices);
    const char *checked = device->check.done && device->check.ok ? ", checked" : "";
    *tint = CLV_GREEN;
    if (!device->usable) {
        *tint = CLV_RED;
        snprintf(out, capacity, "unusable");
    } else if (device->duplicate_of != SIZE_MAX) {
        *tint = CLV_DIM;
        snprintf(out, capacity, "same as %zu%s", device->duplicate_of, checked);
    } else {
        const bool gpu = mode->recommended == CLV_MODE_GPU || mode->recommended == CLV_MODE_HYBRID;
        const bool cpu = mode->recommended == CLV_MODE_CPU || mode->recommended == CLV_MODE_HYBRID;
        const bool chosen =
            (gpu && index == mode->primary_device) || (cpu && index == mode->cpu_device);
        snprintf(out, capacity, "%s%s", chosen ? "chosen" : "ready", checked);
    }
}

static void write_first_line(const clv_page *p, const clv_probe_device *device, const branch *b)
{
    static const char *const classes[] = { "discrete GPU", "integrated GPU", "CPU", "accelerator",
                                           "software" };
    const size_t index = (size_t)(device - p->report->devices);
    char name[4 * NAME], size[16], state[40];
    clv_tint tint;
    clv_wrap w;
    clv_copy_string(name, sizeof name, clv_known(device->name_clean));
    /* too long for its column: cuts the name and marks the cut */
    if (clv_columns(name, strlen(name)) >= NAME) {
        size_t end = strlen(name);
        while (clv_columns(name, end) > NAME - 2)
            --end;
        memcpy(name + end, p->style->lines ? "…" : "~", p->style->lines ? 4 : 2);
    }
    state_of(p, device, &tint, state, sizeof state);
    clv_wrap_begin(&w, p->out, p->style->colour, b->device, b->detail);
    clv_wrap_piece(&w, CLV_BOLD, "%-3zu %s", index, name);
    clv_wrap_column(&w, INDENT + 4 + NAME);
    clv_wrap_piece(&w, CLV_PLAIN, "%s", classes[device->device_class]);
    clv_wrap_column(&w, INDENT + 4 + NAME + CLASS);
    clv_wrap_piece(&w, CLV_PLAIN, "%*s", SIZE, clv_known_bytes(device->global_bytes, size));
    clv_wrap_piece(&w, tint, " %s", state);
    clv_wrap_end(&w);
}

static void add_memory(pieces *list, const clv_probe_device *device)
{
    char text[16];
    const bool tried = device->free_source && clv_starts_with(device->free_source, "unknown");
    if (device->free_bytes == CLV_UNKNOWN)
        add(list, "free memory %s", tried ? device->free_source : "unknown");
    else
        add(list, "%s free", clv_known_bytes(device->free_bytes, text));
    if (device->own_bytes != CLV_UNKNOWN && device->own_bytes)
        add(list, "%s held by this program", clv_known_bytes(device->own_bytes, text));
    if (device->max_alloc_bytes != CLV_UNKNOWN && device->max_alloc_bytes < device->global_bytes)
        add(list, "largest buffer %s", clv_known_bytes(device->max_alloc_bytes, text));
}

static void add_compute(pieces *list, const clv_probe_device *device)
{
    const char *kind = clv_known(device->units_kind);
    const bool cores = strcmp(kind, "core") == 0 && device->compute_units > 1;
    if (device->compute_units && device->clock_mhz > 0)
        add(list, "%u %s%s at %.2f GHz", device->compute_units, kind, cores ? "s" : "",
            device->clock_mhz / 1000);
    else if (device->compute_units)
        add(list, "%u %s%s", device->compute_units, kind, cores ? "s" : "");
    if (device->arch) add(list, "%s", device->arch);
    add(list, "%s, %s",
        !device->fp64                      ? "no fp64"
        : device->fp64_emulated == CLV_YES ? "fp64 emulated"
                                           : "fp64",
        device->fp16 ? "fp16" : "no fp16");
}

static void add_place(pieces *list, const clv_probe_device *device)
{
    add(list, "driver %s", clv_known(device->driver_version));
    if (!device->pci_address) return;
    if (device->pci_link_gen != CLV_UNKNOWN && device->pci_link_width != CLV_UNKNOWN)
        add(list, "PCI %s, gen %u x%u", device->pci_address, (unsigned)device->pci_link_gen,
            (unsigned)device->pci_link_width);
    else
        add(list, "PCI %s", device->pci_address);
    if (device->numa_node != CLV_UNKNOWN) add(list, "NUMA node %u", (unsigned)device->numa_node);
    if (device->utilisation_percent >= 0) add(list, "%.0f %% busy", device->utilisation_percent);
}

static void add_rate(pieces *list, const char *name, double rate, const char *unit)
{
    if (rate >= 0) add(list, "%s %.3g %s", name, rate, unit);
}

static void write_rates(const clv_page *p, const branch *b, const clv_probe_rates *rates)
{
    pieces list = { 0 };
    if (!rates->date) return;
    add_rate(&list, "fp32", rates->fp32_gflops, "GFLOP/s");
    add_rate(&list, "fp64", rates->fp64_gflops, "GFLOP/s");
    add_rate(&list, "fp16", rates->fp16_gflops, "GFLOP/s");
    add_rate(&list, "int8", rates->int8_gops, "GOP/s");
    add_rate(&list, "memory", rates->global_gb_s, "GB/s");
    if (rates->h2d_gb_s >= 0 && rates->d2h_gb_s >= 0)
        add(&list, "copies %.3g in, %.3g out GB/s", rates->h2d_gb_s, rates->d2h_gb_s);
    add_rate(&list, "launch", rates->launch_us, "us");
    add(&list, "measured %.10s", rates->date);
    if (rates->fp32_gflops < 0 && rates->protocol) add(&list, "%s", rates->protocol);
    write_pieces(p, b, CLV_PLAIN, &list);
}

static void write_note(const clv_page *p, const branch *b, clv_tint tint, const char *format, ...)
    CLV_PRINTF(4, 5);

static void write_note(const clv_page *p, const branch *b, clv_tint tint, const char *format, ...)
{
    char next[64];
    clv_text text = { 0 };
    va_list args;
    clv_wrap w;
    va_start(args, format);
    clv_text_vadd(&text, format, args);
    va_end(args);
    snprintf(next, sizeof next, "%s%s", b->detail, tint == CLV_DIM ? "  " : "");
    clv_wrap_begin(&w, p->out, p->style->colour, b->detail, next);
    clv_wrap_words(&w, tint, "%s", clv_text_get(&text));
    clv_wrap_end(&w);
    if (text.failed) p->out->failed = true;
    clv_text_clear(&text);
}

static void write_quirks(const clv_page *p, const branch *b, const clv_probe_device *device)
{
    for (const char *at = device->quirks; at && *at;) {
        char name[64];
        const size_t length = strcspn(at, " ");
        clv_copy_string(name, CLV_MIN(length + 1, sizeof name), at);
        at += length + (at[length] == ' ');
        const clv_quirk *quirk = clv_quirk_find(name);
        if (quirk) write_note(p, b, CLV_DIM, "- %s (%s)", quirk->reason, quirk->source);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns whether an entry only repeats one that is already shown: five platforms of one vendor may list one card five
 * times. */
static bool is_plain_copy(const clv_page *p, const clv_probe_device *device)
{
    if (device->duplicate_of == SIZE_MAX) return false;
    const clv_probe_device *first = &p->report->devices[device->duplicate_of];
    return same_text(device->name, first->name) && same_text(device->version, first->version) &&
           same_text(device->driver_version, first->driver_version) &&
           device->global_bytes == first->global_bytes;
}

static void write_device(const clv_page *p, const clv_probe_device *device, const branch *b)
{
    pieces list = { 0 };
    write_first_line(p, device, b);
    if (!device->usable) write_note(p, b, CLV_RED, "%s", clv_known(device->unusable_reason));
    if (is_plain_copy(p, device) && !p->style->more) return;
    add_memory(&list, device);
    add_compute(&list, device);
    add_place(&list, device);
    write_pieces(p, b, CLV_PLAIN, &list);
    if (device->flags.loop_limit)
        write_note(p, b, CLV_YELLOW,
                   "restricted: a work-item stops after %llu loop turns, without an error",
                   (unsigned long long)device->flags.loop_limit);
    write_rates(p, b, &device->measured);
    if (!p->style->more) return;
    write_note(p, b, CLV_DIM, "%s; id %s; %s", clv_known(device->name), clv_known(device->id),
               clv_known(device->class_reason));
    write_quirks(p, b, device);
}

/* Returns the length of the version, "OpenCL 3.0", at the start of "OpenCL 3.0 PoCL 3.1+debian  Linux, ...". */
static int version_length(const char *version)
{
    const char *blank = strchr(version, ' ');
    blank = blank ? strchr(blank + 1, ' ') : NULL;
    return (int)(blank ? (size_t)(blank - version) : strlen(version));
}

static void write_platform_line(const clv_page *p, size_t index, size_t count, const branch *b)
{
    const clv_probe_report *report = p->report;
    const clv_probe_platform *platform = &report->platforms[index];
    clv_wrap w;
    clv_wrap_begin(&w, p->out, p->style->colour, b->platform, b->under);
    clv_wrap_piece(&w, CLV_BOLD, "%s%s", clv_known(platform->name), platform->version ? "," : "");
    if (platform->version)
        clv_wrap_piece(&w, CLV_PLAIN, "%.*s", version_length(platform->version), platform->version);
    if (platform->icd < report->icd_count) {
        const clv_probe_icd *icd = &report->icds[platform->icd];
        const char *file = icd->file ? icd->file : icd->library_path ? icd->library_path : "driver";
        const char *slash = strrchr(file, '/');
        char spent[24];
        clv_wrap_piece(&w, CLV_DIM, "(%s%s%s)", slash && !p->style->more ? slash + 1 : file,
                       icd->duration_s >= 0 ? ", " : "",
                       icd->duration_s >= 0 ? clv_format_seconds(icd->duration_s, spent) : "");
    }
    if (!count) clv_wrap_piece(&w, CLV_DIM, "shows no device");
    if (platform->message) clv_wrap_words(&w, CLV_YELLOW, "%s", platform->message);
    clv_wrap_end(&w);
}

static void write_platform(const clv_page *p, size_t index, bool last)
{
    const clv_probe_report *report = p->report;
    size_t count = 0, seen = 0;
    for (size_t i = 0; i < report->device_count; ++i)
        count += report->devices[i].platform == index;
    const branch top = branch_of(p, last, true);
    write_platform_line(p, index, count, &top);
    for (size_t i = 0; i < report->device_count; ++i) {
        if (report->devices[i].platform != index) continue;
        const branch b = branch_of(p, last, ++seen == count);
        write_device(p, &report->devices[i], &b);
    }
}

/* Returns the rank of a platform: platforms are in the order of their devices, those without devices last. */
static size_t rank_of(const clv_page *p, size_t platform)
{
    for (size_t i = 0; i < p->report->device_count; ++i)
        if (p->report->devices[i].platform == platform) return i;
    return p->report->device_count + platform;
}

void clv_page_tree(const clv_page *p)
{
    const size_t count = p->report->platform_count;
    size_t before = 0; /* ranks below `before` have been written */
    for (size_t written = 0; written < count; ++written) {
        size_t next = SIZE_MAX, lowest = SIZE_MAX;
        for (size_t i = 0; i < count; ++i) {
            const size_t rank = rank_of(p, i);
            if (rank >= before && rank < lowest) lowest = rank, next = i;
        }
        write_platform(p, next, written + 1 == count);
        before = lowest + 1;
    }
}
