/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a report for people: the machine, the mode and its reason, a tree of platforms and devices, and advice. */
#include "probe/report/report_text.h"

#include "base/alloc.h"
#include "base/lapack.h"
#include "probe/report/build.h"
#include "probe/report/report_tree.h"
#include "probe/report/wrap.h"

#include <cleave/version.h>

#include <stdio.h>
#include <string.h>

enum { LABEL = 11 }; /* width of "Processor  " */

static void begin(const clv_page *p, clv_wrap *w, const char *label)
{
    char first[LABEL + 1];
    snprintf(first, sizeof first, "%-*s", LABEL, label);
    clv_wrap_begin(w, p->out, p->style->colour, first, "           ");
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void write_system(const clv_page *p)
{
    const clv_probe_host *host = &p->report->host;
    clv_wrap w;
    if (!host->os_name && !host->kernel) return;
    begin(p, &w, "System");
    clv_wrap_piece(&w, CLV_PLAIN, "%s%s%s,", clv_known(host->os_name), host->os_version ? " " : "",
                   host->os_version ? host->os_version : "");
    clv_wrap_piece(&w, CLV_PLAIN, "%s,", clv_known(host->kernel));
    clv_wrap_piece(&w, CLV_PLAIN, "%s%s", clv_known(host->arch),
                   host->hypervisor || host->container == CLV_YES ? "," : "");
    if (host->hypervisor)
        clv_wrap_piece(&w, CLV_PLAIN, "virtual machine (%s)%s", host->hypervisor,
                       host->container == CLV_YES ? "," : "");
    if (host->container == CLV_YES) clv_wrap_piece(&w, CLV_PLAIN, "in a container");
    clv_wrap_end(&w);
}

static void write_processor(const clv_page *p)
{
    const clv_probe_host *host = &p->report->host;
    clv_wrap w;
    if (!host->cpu_model && !host->cores) return;
    begin(p, &w, "Processor");
    clv_wrap_piece(&w, CLV_PLAIN, "%s:", clv_known(host->cpu_model));
    if (host->packages > 1) clv_wrap_piece(&w, CLV_PLAIN, "%u packages,", host->packages);
    if (host->cores) clv_wrap_piece(&w, CLV_PLAIN, "%u cores,", host->cores);
    if (host->threads) clv_wrap_piece(&w, CLV_PLAIN, "%u threads", host->threads);
    if (host->threads_allowed < host->threads)
        clv_wrap_piece(&w, CLV_YELLOW, "(%u of them for this process)", host->threads_allowed);
    if (host->numa_nodes > 1) clv_wrap_piece(&w, CLV_PLAIN, "on %u NUMA nodes", host->numa_nodes);
    clv_wrap_end(&w);
    if (!host->cache_count && !host->isa) return;
    begin(p, &w, "");
    for (size_t i = 0; i < host->cache_count; ++i) {
        const clv_probe_cache *cache = &host->caches[i];
        const unsigned long long kib = cache->bytes / 1024;
        if (cache->type == 'i') continue;
        if (cache->count > 1)
            clv_wrap_piece(&w, CLV_PLAIN, "L%u %u x %llu %s,", cache->level, cache->count,
                           kib < 1024 ? kib : kib / 1024, kib < 1024 ? "KiB" : "MiB");
        else
            clv_wrap_piece(&w, CLV_PLAIN, "L%u %llu %s,", cache->level,
                           kib < 1024 ? kib : kib / 1024, kib < 1024 ? "KiB" : "MiB");
    }
    clv_wrap_words(&w, CLV_PLAIN, "%s", host->isa ? host->isa : "instruction set unknown");
    clv_wrap_end(&w);
}

static void write_memory(const clv_page *p)
{
    const clv_probe_host *host = &p->report->host;
    char all[16], left[16];
    clv_wrap w;
    if (host->memory_total_bytes == CLV_UNKNOWN && host->memory_available_bytes == CLV_UNKNOWN)
        return;
    begin(p, &w, "Memory");
    if (host->memory_total_bytes != CLV_UNKNOWN)
        clv_wrap_piece(&w, CLV_PLAIN, "%s,", clv_known_bytes(host->memory_total_bytes, all));
    clv_wrap_piece(&w, CLV_PLAIN, "%s available",
                   clv_known_bytes(host->memory_available_bytes, left));
    if (host->memory_limit_bytes != CLV_UNKNOWN)
        clv_wrap_piece(&w, CLV_YELLOW, "(this process is limited to %s)",
                       clv_known_bytes(host->memory_limit_bytes, all));
    clv_wrap_end(&w);
}

static void write_lapack(const clv_page *p)
{
    const clv_probe_host *host = &p->report->host;
    clv_wrap w;
    if (host->lapack == CLV_MAYBE) return;
    begin(p, &w, "LAPACK");
    if (host->lapack == CLV_YES)
        clv_wrap_words(&w, CLV_PLAIN, "%s, for eigenvalues of general matrices",
                       clv_known(host->lapack_library));
    else
        clv_wrap_words(&w, CLV_YELLOW, "not found: eigenvalues of general matrices need it, and %s",
                       CLV_LAPACK_WHERE);
    clv_wrap_end(&w);
}

static void write_gpus(const clv_page *p)
{
    const clv_probe_report *report = p->report;
    for (size_t i = 0; i < report->pci_gpu_count; ++i) {
        const clv_probe_pci_gpu *gpu = &report->pci_gpus[i];
        clv_wrap w;
        begin(p, &w, i ? "" : "On PCI");
        clv_wrap_piece(&w, CLV_PLAIN, "%s", clv_known(gpu->address));
        if (gpu->name)
            clv_wrap_piece(&w, CLV_PLAIN, "%s,", gpu->name);
        else
            clv_wrap_piece(&w, CLV_PLAIN, "%04x:%04x,", gpu->vendor_id, gpu->device_id);
        clv_wrap_piece(&w, CLV_PLAIN, gpu->kernel_driver ? "driver %s," : "no kernel driver%s,",
                       gpu->kernel_driver ? gpu->kernel_driver : "");
        clv_wrap_piece(&w, gpu->has_opencl ? CLV_PLAIN : CLV_YELLOW, "%s",
                       gpu->has_opencl ? "seen by OpenCL" : "not seen by OpenCL");
        clv_wrap_end(&w);
    }
}

static void write_mode(const clv_page *p)
{
    const clv_probe_mode *mode = &p->report->mode;
    const char *name = clv_mode_name(mode->recommended);
    const char *reason = clv_known(mode->reason);
    /* `reason` ends with ": cpu", which is cut off */
    const size_t length = strlen(reason), tail = strlen(name) + 2;
    clv_wrap w;
    begin(p, &w, "Mode");
    clv_wrap_piece(&w, CLV_BOLD, "%s", name);
    clv_wrap_piece(&w, CLV_PLAIN, "(rule %s):", clv_known(mode->rule));
    clv_wrap_words(&w, CLV_PLAIN, "%.*s", (int)(length > tail ? length - tail : length), reason);
    clv_wrap_end(&w);
}

static void write_build(const clv_page *p)
{
    clv_wrap w;
    const bool less = *clv_build_without();
    if (!p->style->more && !less) return;
    begin(p, &w, "Cleave");
    clv_wrap_piece(&w, CLV_PLAIN, "%s", clv_version());
    if (p->style->more && clv_build_commit())
        clv_wrap_piece(&w, CLV_PLAIN, "(commit %.12s)", clv_build_commit());
    if (p->style->more && *clv_build_with())
        clv_wrap_words(&w, CLV_PLAIN, "with %s%s", clv_build_with(), less ? ";" : "");
    if (less) clv_wrap_words(&w, CLV_YELLOW, "built without %s", clv_build_without());
    clv_wrap_end(&w);
}

static void write_loader(const clv_page *p)
{
    const clv_probe_report *report = p->report;
    clv_wrap w;
    if (!report->loader_path) return;
    begin(p, &w, "Loader");
    if (report->loader_name) {
        clv_wrap_piece(&w, CLV_PLAIN, "%s%s%s,", report->loader_name,
                       report->loader_version ? " " : "",
                       report->loader_version ? report->loader_version : "");
    }
    clv_wrap_piece(&w, CLV_PLAIN, "%s", report->loader_path);
    if (report->layers) clv_wrap_piece(&w, CLV_YELLOW, "with layers %s", report->layers);
    if (!report->isolated && !report->simulated)
        clv_wrap_words(&w, CLV_YELLOW, "(all drivers in one process)");
    clv_wrap_end(&w);
}

/* ---- drivers and advice ---------------------------------------------------------------------- */

static void write_drivers(const clv_page *p)
{
    const clv_probe_report *report = p->report;
    for (size_t i = 0; i < report->icd_count; ++i) {
        const clv_probe_icd *icd = &report->icds[i];
        clv_wrap w;
        if (p->style->more && icd->driver_output) {
            clv_wrap_begin(&w, p->out, p->style->colour, "", "  ");
            clv_wrap_words(&w, CLV_DIM, "%s says: %s", clv_known(icd->file), icd->driver_output);
            clv_wrap_end(&w);
        }
        if (strcmp(icd->status, "no_platform") != 0) continue;
        clv_wrap_begin(&w, p->out, p->style->colour, "", "  ");
        clv_wrap_words(&w, CLV_DIM, "%s: %s", clv_known(icd->file), clv_known(icd->message));
        clv_wrap_end(&w);
    }
}

static void write_warnings(const clv_page *p)
{
    for (size_t i = 0; i < p->report->warning_count; ++i) {
        const clv_probe_warning *warning = &p->report->warnings[i];
        clv_wrap w;
        if (!i) clv_text_bytes(p->out, "\n", 1);
        clv_wrap_begin(&w, p->out, p->style->colour, "", "  ");
        clv_wrap_piece(&w, CLV_YELLOW, "!");
        clv_wrap_words(&w, CLV_PLAIN, "%s", clv_known(warning->message));
        clv_wrap_end(&w);
        if (!warning->hint) continue;
        clv_wrap_begin(&w, p->out, p->style->colour, "  ", "     ");
        clv_wrap_words(&w, CLV_DIM, "-> %s", warning->hint);
        clv_wrap_end(&w);
    }
}

char *clv_report_text(const clv_probe_report *report, const clv_report_style *style)
{
    clv_text out = { 0 };
    const clv_page p = { .report = report, .style = style, .out = &out };
    if (report->simulated) {
        clv_wrap w;
        begin(&p, &w, "Simulated");
        clv_wrap_words(&w, CLV_YELLOW, "%s; no driver was touched", report->simulated);
        clv_wrap_end(&w);
    }
    write_system(&p);
    write_processor(&p);
    write_memory(&p);
    write_lapack(&p);
    write_gpus(&p);
    write_loader(&p);
    write_build(&p);
    write_mode(&p);
    if (report->platform_count) clv_text_add(&out, "\nPlatforms and devices\n");
    clv_page_tree(&p);
    write_drivers(&p);
    write_warnings(&p);
    if (out.failed) clv_text_clear(&out);
    return out.data;
}

char *clv_report_list(const clv_probe_report *report)
{
    clv_text out = { 0 };
    clv_text_add(&out, "%s", ""); /* makes the text empty, not NULL, if there are no devices */
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        char size[16];
        if (!device->usable) continue;
        clv_text_add(&out, "%zu  %-14s  %-26s  %8s  %s, driver %s", i,
                     clv_device_class_name(device->device_class), clv_known(device->name_clean),
                     clv_known_bytes(device->global_bytes, size),
                     clv_known(report->platforms[device->platform].name),
                     clv_known(device->driver_version));
        if (device->duplicate_of != SIZE_MAX)
            clv_text_add(&out, ", same as %zu", device->duplicate_of);
        clv_text_add(&out, "\n");
    }
    if (out.failed) clv_text_clear(&out);
    return out.data;
}

char *clv_probe_text(const clv_probe_report *report)
{
    const clv_report_style plain = { 0 };
    return clv_report_text(report, &plain);
}
