/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a report: its arrays grow, and its strings exist as long as the report. */
#include "probe/machine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/visible.h"

#include <stdarg.h>
#include <string.h>

struct clv_machine_text {
    struct clv_machine_text *next;
    char bytes[];
};

clv_probe_host clv_host_unknown(void)
{
    return (clv_probe_host){
        .threads_allowed = 1,
        .freq_max_mhz = -1,
        .memory_total_bytes = CLV_UNKNOWN,
        .memory_available_bytes = CLV_UNKNOWN,
        .memory_limit_bytes = CLV_UNKNOWN,
        .swap_total_bytes = CLV_UNKNOWN,
        .hwloc_total_bytes = CLV_UNKNOWN,
    };
}

clv_probe_device clv_device_unknown(void)
{
    return (clv_probe_device){
        .duplicate_of = SIZE_MAX,
        .pci_device_id = CLV_UNKNOWN,
        .numa_node = CLV_UNKNOWN,
        .pci_link_gen = CLV_UNKNOWN,
        .pci_link_width = CLV_UNKNOWN,
        .available = true,
        .compiler_available = true,
        .clock_mhz = -1,
        .wavefront = CLV_UNKNOWN,
        .global_bytes = CLV_UNKNOWN,
        .free_bytes = CLV_UNKNOWN,
        .own_bytes = CLV_UNKNOWN,
        .max_alloc_bytes = CLV_UNKNOWN,
        .local_bytes = CLV_UNKNOWN,
        .constant_bytes = CLV_UNKNOWN,
        .cache_bytes = CLV_UNKNOWN,
        .vram_bytes = CLV_UNKNOWN,
        .timer_resolution_ns = CLV_UNKNOWN,
        .printf_bytes = CLV_UNKNOWN,
        .utilisation_percent = -1,
        .check = { .build_s = -1, .run_s = -1, .max_error = -1, .loop_limit = CLV_UNKNOWN },
        .measured = { .fp32_gflops = -1,
                      .fp64_gflops = -1,
                      .fp16_gflops = -1,
                      .int8_gops = -1,
                      .global_gb_s = -1,
                      .h2d_gb_s = -1,
                      .d2h_gb_s = -1,
                      .launch_us = -1 },
    };
}

clv_machine *clv_machine_create(void)
{
    clv_machine *machine = clv_zalloc(1, sizeof *machine);
    if (!machine) return NULL;
    machine->report.duration_s = -1;
    machine->report.host = clv_host_unknown();
    machine->report.mode.primary_device = machine->report.mode.cpu_device = SIZE_MAX;
    return machine;
}

void clv_machine_free(clv_machine *machine)
{
    if (!machine) return;
    for (struct clv_machine_text *next; machine->texts; machine->texts = next) {
        next = machine->texts->next;
        clv_free(machine->texts);
    }
    clv_free(machine->icds), clv_free(machine->pci_gpus), clv_free(machine->platforms);
    clv_free(machine->devices), clv_free(machine->warnings), clv_free(machine->caches);
    clv_free(machine);
}

/* Makes room for one more item. The caller fills in the item and updates the report's pointer to the array. */
static bool grow(clv_machine *machine, void *items, size_t *capacity, size_t count, size_t size)
{
    if (clv_reserve(items, capacity, count + 1, size)) return true;
    machine->failed = true;
    return false;
}

clv_probe_icd *clv_machine_add_icd(clv_machine *m)
{
    clv_probe_report *report = &m->report;
    if (!grow(m, &m->icds, &m->icd_capacity, report->icd_count, sizeof *m->icds)) return NULL;
    report->icds = m->icds;
    m->icds[report->icd_count] = (clv_probe_icd){ .status = "unchecked", .duration_s = -1 };
    return &m->icds[report->icd_count++];
}

clv_probe_pci_gpu *clv_machine_add_pci_gpu(clv_machine *m)
{
    clv_probe_report *report = &m->report;
    if (!grow(m, &m->pci_gpus, &m->pci_gpu_capacity, report->pci_gpu_count, sizeof *m->pci_gpus))
        return NULL;
    report->pci_gpus = m->pci_gpus;
    m->pci_gpus[report->pci_gpu_count] = (clv_probe_pci_gpu){ 0 };
    return &m->pci_gpus[report->pci_gpu_count++];
}

clv_probe_platform *clv_machine_add_platform(clv_machine *m)
{
    clv_probe_report *report = &m->report;
    if (!grow(m, &m->platforms, &m->platform_capacity, report->platform_count,
              sizeof *m->platforms))
        return NULL;
    report->platforms = m->platforms;
    m->platforms[report->platform_count] = (clv_probe_platform){ .icd = SIZE_MAX };
    return &m->platforms[report->platform_count++];
}

clv_probe_device *clv_machine_add_device(clv_machine *m)
{
    clv_probe_report *report = &m->report;
    if (!grow(m, &m->devices, &m->device_capacity, report->device_count, sizeof *m->devices))
        return NULL;
    report->devices = m->devices;
    m->devices[report->device_count] = clv_device_unknown();
    return &m->devices[report->device_count++];
}

clv_probe_cache *clv_machine_add_cache(clv_machine *m)
{
    clv_probe_host *host = &m->report.host;
    if (!grow(m, &m->caches, &m->cache_capacity, host->cache_count, sizeof *m->caches)) return NULL;
    host->caches = m->caches;
    m->caches[host->cache_count] = (clv_probe_cache){ 0 };
    return &m->caches[host->cache_count++];
}

void clv_machine_clear_warnings(clv_machine *machine)
{
    machine->report.warning_count = 0;
}

void clv_machine_warn(clv_machine *m, const char *code, const char *hint, const char *format, ...)
{
    clv_probe_report *report = &m->report;
    clv_text message = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&message, format, args);
    va_end(args);
    if (grow(m, &m->warnings, &m->warning_capacity, report->warning_count, sizeof *m->warnings)) {
        report->warnings = m->warnings;
        m->warnings[report->warning_count++] = (clv_probe_warning){
            .code = clv_machine_keep(m, code),
            .message = clv_machine_keep(m, clv_text_get(&message)),
            .hint = clv_machine_keep(m, hint),
        };
    }
    clv_text_clear(&message);
}

static char *new_text(clv_machine *machine, size_t length)
{
    struct clv_machine_text *text = clv_alloc(1, sizeof *text + length + 1);
    if (!text) {
        machine->failed = true;
        return NULL;
    }
    text->next = machine->texts;
    machine->texts = text;
    text->bytes[length] = '\0';
    return text->bytes;
}

const char *clv_machine_keep(clv_machine *machine, const char *text)
{
    if (!text) return NULL;
    const size_t size = strlen(text) + 1;
    char *kept = new_text(machine, size - 1);
    if (kept) memcpy(kept, text, size);
    return kept;
}

const char *clv_machine_text(clv_machine *machine, const char *format, ...)
{
    clv_text text = { 0 };
    va_list args;
    va_start(args, format);
    clv_text_vadd(&text, format, args);
    va_end(args);
    if (text.failed) machine->failed = true;
    const char *kept = text.failed ? NULL : clv_machine_keep(machine, clv_text_get(&text));
    clv_text_clear(&text);
    return kept;
}

/* Returns the length of the UTF-8 character at `bytes`, or 0 if the character is invalid. Overlong forms and surrogates
 * are invalid, because JSON readers reject them. */
static size_t utf8_length(const unsigned char *bytes, size_t left)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = bytes[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xC2 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                                         : 4;
    if (length <= 1) return length;
    if (first > 0xF4 || length > left) return 0;
    uint32_t code = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((bytes[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

const char *clv_machine_foreign(clv_machine *machine, const char *bytes, size_t length)
{
    if (!bytes) return NULL;
    length = strnlen(bytes, CLV_MIN(length, (size_t)CLV_TEXT_LIMIT));
    while (length && (unsigned char)bytes[length - 1] <= ' ')
        --length;
    while (length && (unsigned char)*bytes <= ' ')
        ++bytes, --length;
    if (!length) return NULL;
    char *kept = new_text(machine, length);
    for (size_t i = 0; kept && i < length;) {
        const size_t step = utf8_length((const unsigned char *)bytes + i, length - i);
        const bool good =
            step && bytes[i] != '\n' && bytes[i] != '\t' && clv_is_visible(bytes + i, step);
        if (good)
            memcpy(kept + i, bytes + i, step);
        else
            kept[i] = bytes[i] == '\n' || bytes[i] == '\t' ? ' ' : '?';
        i += good ? step : 1;
    }
    return kept;
}

void clv_machine_set_free(clv_machine *machine, clv_probe_device *device, uint64_t bytes,
                          const char *source)
{
    char now[32];
    clv_utc(now, sizeof now);
    device->free_bytes = CLV_MIN(bytes, device->global_bytes);
    device->free_source = source;
    device->free_time = clv_machine_keep(machine, now);
}

bool clv_probe_has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}
