/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for the texts in /proc, /sys and /etc: pure functions that are safe on any bytes. */
#include "probe/host/kernel_text.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        ++text;
    return text;
}

/* Parses decimal digits at `text`, saturating; sets *end to the first character after them. */
static uint64_t digits(const char *text, const char **end)
{
    uint64_t value = 0;
    for (; isdigit((unsigned char)*text); ++text)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            value = CLV_UNKNOWN;
    *end = text;
    return value;
}

static bool copy_span(const char *text, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    for (; used < length && used + 1 < capacity; ++used)
        out[used] = text[used];
    while (used && isspace((unsigned char)out[used - 1]))
        --used;
    out[used] = '\0';
    return used > 0;
}

uint64_t clv_meminfo_bytes(const char *meminfo, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = meminfo; *line; line = next_line(line)) {
        if (strncmp(line, key, length) != 0 || line[length] != ':') continue;
        const char *at = skip_blanks(line + length + 1), *end;
        const uint64_t kib = digits(at, &end);
        uint64_t bytes;
        if (end == at || __builtin_mul_overflow(kib, (uint64_t)1024, &bytes)) return CLV_UNKNOWN;
        return bytes;
    }
    return CLV_UNKNOWN;
}

bool clv_cpuinfo_value(const char *cpuinfo, const char *key, char *out, size_t capacity)
{
    const size_t length = strlen(key);
    for (const char *line = cpuinfo; *line; line = next_line(line)) {
        if (strncmp(line, key, length) != 0) continue;
        const char *at = skip_blanks(line + length);
        if (*at != ':') continue;
        at = skip_blanks(at + 1);
        return copy_span(at, strcspn(at, "\n"), out, capacity);
    }
    out[0] = '\0';
    return false;
}

void clv_isa_text(const char *flags, clv_text *out)
{
    static const char *const known[] = {
        "sse4_2",   "avx",         "avx2",        "fma",         "f16c",     "avx512f",  "avx512bw",
        "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_int8",
        "amx_bf16", "asimd",       "asimdhp",     "asimddp",     "sve",      "sve2",     "bf16",
        "i8mm",     "sme",         "vsx",         "rvv",
    };
    for (size_t i = 0; i < CLV_LEN(known); ++i) {
        const size_t length = strlen(known[i]);
        for (const char *at = flags; (at = strstr(at, known[i])); at += length) {
            if ((at != flags && at[-1] != ' ') || (at[length] && at[length] != ' ')) continue;
            clv_text_add(out, "%s%s", out->length ? " " : "", known[i]);
            break;
        }
    }
}

/* A line is "id:controllers:path"; for v2, the id is 0 and the list of controllers is empty. */
bool clv_cgroup_path(const char *cgroup, const char *controller, char *out, size_t capacity)
{
    const size_t length = strlen(controller);
    out[0] = '\0';
    for (const char *line = cgroup; *line; line = next_line(line)) {
        const char *end = line + strcspn(line, "\n");
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        if (!path) continue;
        bool found = length == 0 && path == list + 1;
        for (const char *name = list + 1; length && name < path; ++name) {
            const size_t span = strcspn(name, ",:");
            if (span == length && memcmp(name, controller, length) == 0) found = true;
            name += span;
        }
        if (!found) continue;
        /* ".." leads out of this process's namespace, so the path does not name the cgroup that limits the process */
        if (!copy_span(path + 1, (size_t)(end - path - 1), out, capacity) || strstr(out, ".."))
            out[0] = '\0';
        return out[0] == '/';
    }
    return false;
}

uint64_t clv_cgroup_bytes(const char *text)
{
    const char *end;
    const uint64_t bytes = digits(text, &end);
    /* v1 writes about 2^63 for "no limit" */
    if (end == text || bytes >= UINT64_C(1) << 60) return CLV_UNKNOWN;
    return bytes;
}

unsigned clv_cgroup_threads(const char *text)
{
    const char *end;
    const uint64_t quota = digits(text, &end);
    if (end == text) return 0;
    const char *at = skip_blanks(end);
    const uint64_t period = digits(at, &end);
    if (end == at || period == 0 || quota == 0 || quota > UINT32_MAX || period > UINT32_MAX)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

unsigned clv_cpulist_count(const char *text)
{
    uint64_t count = 0;
    while (isdigit((unsigned char)*text)) {
        const uint64_t first = digits(text, &text);
        uint64_t last = first;
        if (*text == '-') {
            const char *at = text + 1;
            last = digits(at, &text);
            if (text == at) return 0;
        }
        if (last < first || last > 1 << 20) return 0;
        count += last - first + 1;
        if (*text == ',') ++text;
    }
    while (isspace((unsigned char)*text))
        ++text;
    return *text || count > 1 << 20 ? 0 : (unsigned)count;
}

uint64_t clv_pcie_generation(const char *text)
{
    static const char *const speeds[] = { "2.5", "5", "8", "16", "32", "64" };
    const size_t length = strcspn(text, " ");
    if (!clv_starts_with(text + length, " GT/s")) return CLV_UNKNOWN;
    for (size_t i = 0; i < CLV_LEN(speeds); ++i) {
        const size_t digits_of = strlen(speeds[i]);
        if (strncmp(text, speeds[i], digits_of) != 0) continue;
        if (length == digits_of ||
            (length == digits_of + 2 && strncmp(text + digits_of, ".0", 2) == 0))
            return i + 1;
    }
    return CLV_UNKNOWN;
}

bool clv_os_release_value(const char *text, const char *key, char *out, size_t capacity)
{
    const size_t length = strlen(key);
    out[0] = '\0';
    for (const char *line = text; *line; line = next_line(line)) {
        if (strncmp(line, key, length) != 0 || line[length] != '=') continue;
        const char *value = line + length + 1;
        size_t span = strcspn(value, "\n");
        if (span >= 2 && (*value == '"' || *value == '\'') && value[span - 1] == *value)
            ++value, span -= 2;
        return copy_span(value, span, out, capacity);
    }
    return false;
}

/* The file has lines "vvvv  vendor name", each followed by "\tdddd  device name" lines of that vendor. */
bool clv_pci_ids_name(const char *text, unsigned vendor, unsigned device, char *out,
                      size_t capacity)
{
    char want_vendor[8], want_device[8];
    bool inside = false;
    snprintf(want_vendor, sizeof want_vendor, "%04x  ", vendor & 0xFFFF);
    snprintf(want_device, sizeof want_device, "\t%04x  ", device & 0xFFFF);
    out[0] = '\0';
    for (const char *line = text; *line; line = next_line(line)) {
        if (*line == '#' || *line == '\n') continue;
        if (*line != '\t') {
            if (inside) return false;
            inside = clv_starts_with(line, want_vendor);
        } else if (inside && clv_starts_with(line, want_device)) {
            line += strlen(want_device);
            return copy_span(line, strcspn(line, "\n"), out, capacity);
        }
    }
    return false;
}

/* Parses a size such as "123 KiB", "4 MiB" or "17"; returns false for anything else. */
static bool read_size(const char *text, uint64_t *bytes)
{
    char number[24];
    while (*text == ' ' || *text == '\t')
        ++text;
    const size_t length = strspn(text, "0123456789");
    uint64_t unit = 1;
    if (!length || length >= sizeof number) return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (clv_starts_with(text + length, " KiB"))
        unit = 1 << 10;
    else if (clv_starts_with(text + length, " MiB"))
        unit = 1 << 20;
    return clv_parse_u64(number, bytes) && !__builtin_mul_overflow(*bytes, unit, bytes);
}

bool clv_fdinfo_parse(const char *text, char *address, size_t capacity, uint64_t *client,
                      uint64_t *resident_bytes)
{
    char id[32];
    uint64_t part;
    bool any = false;
    if (!clv_cpuinfo_value(text, "drm-pdev", address, capacity) ||
        !clv_cpuinfo_value(text, "drm-client-id", id, sizeof id) || !clv_parse_u64(id, client))
        return false;
    *resident_bytes = 0;
    for (const char *line = text; (line = strstr(line, "drm-resident-vram"));) {
        const char *value = strpbrk(line, ":\n");
        if (value && *value == ':' && read_size(value + 1, &part) &&
            !__builtin_add_overflow(*resident_bytes, part, resident_bytes))
            any = true;
        line += strcspn(line, "\n");
    }
    return any;
}
