/* SPDX-License-Identifier: Apache-2.0 */
/* Parses texts that name devices. There is no other parser of them. */
#include "probe/judge/select.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "probe/judge/classify.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

typedef enum word { GPU, CPU, ALL, INDEX, PLACE, NAME, PCI, UUID } word;

typedef struct item {
    word word;
    bool exclude;
    uint64_t first, second; /* INDEX uses `first`, PLACE uses both */
    char text[256]; /* text of NAME, PCI and UUID; for others the whole item, for messages */
} item;

static bool read_place(const char *text, item *out)
{
    char first[24];
    const char *colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof first) return false;
    memcpy(first, text, (size_t)(colon - text));
    first[colon - text] = '\0';
    return clv_parse_u64(first, &out->first) && clv_parse_u64(colon + 1, &out->second);
}

static bool read_item(const char *text, item *out)
{
    static const struct {
        const char *prefix;
        word word;
    } prefixes[] = { { "name~", NAME }, { "pci=", PCI }, { "uuid=", UUID } };
    static const char *const kinds[] = { [GPU] = "gpu", [CPU] = "cpu", [ALL] = "all" };
    if (*text == '!') {
        out->exclude = true;
        for (++text; *text == ' '; ++text)
            continue;
    }
    for (size_t i = 0; i < CLV_LEN(prefixes); ++i) {
        const char *value = text + strlen(prefixes[i].prefix);
        if (!clv_starts_with(text, prefixes[i].prefix)) continue;
        out->word = prefixes[i].word;
        memmove(out->text, value, strlen(value) + 1);
        return *out->text != '\0'; /* the text was moved, so `value` is stale */
    }
    for (size_t i = 0; i < CLV_LEN(kinds); ++i) {
        if (strcasecmp(text, kinds[i]) != 0) continue;
        out->word = (word)i;
        return true;
    }
    out->word = strchr(text, ':') ? PLACE : INDEX;
    return out->word == PLACE ? read_place(text, out) : clv_parse_u64(text, &out->first);
}

/* Reads the item at *at without the blanks around it. Moves *at past the item's comma, or sets *at to NULL after the
 * last item. */
static bool next_item(const char **at, item *out)
{
    const char *begin = *at;
    size_t length = strcspn(begin, ",");
    *at = begin[length] ? begin + length + 1 : NULL;
    while (length && isspace((unsigned char)*begin))
        ++begin, --length;
    while (length && isspace((unsigned char)begin[length - 1]))
        --length;
    *out = (item){ 0 };
    if (!length || length >= sizeof out->text) return false;
    memcpy(out->text, begin, length);
    out->text[length] = '\0';
    return read_item(out->text, out);
}

/* Compares UUIDs, ignoring case and dashes. */
static bool same_uuid(const char *a, const char *b)
{
    for (; *a || *b; ++a, ++b) {
        while (*a == '-')
            ++a;
        while (*b == '-')
            ++b;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) break;
    }
    return true;
}

static bool same_pci(const char *address, const char *wanted)
{
    const char *colon = strchr(address, ':');
    return strcasecmp(address, wanted) == 0 || (colon && strcasecmp(colon + 1, wanted) == 0);
}

static bool matches(const clv_probe_report *report, size_t index, const item *it)
{
    const clv_probe_device *device = &report->devices[index];
    const char *platform = report->platforms[device->platform].name;
    switch (it->word) {
    case GPU:
        return clv_is_gpu(device);
    case CPU:
        return device->device_class == CLV_CLASS_CPU || device->device_class == CLV_CLASS_SOFTWARE;
    case ALL:
        return true;
    case INDEX:
        return index == it->first;
    case PLACE:
        return device->platform == it->first && device->ordinal == it->second;
    case NAME:
        return (device->name && clv_contains_nocase(device->name, it->text)) ||
               (device->name_clean && clv_contains_nocase(device->name_clean, it->text)) ||
               (platform && clv_contains_nocase(platform, it->text));
    case PCI:
        return device->pci_address && same_pci(device->pci_address, it->text);
    case UUID:
        return device->uuid && same_uuid(device->uuid, it->text);
    }
    return false;
}

char *clv_devices_summary(const clv_probe_report *report)
{
    clv_text text = { 0 };
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        clv_text_add(&text, "%s%zu %s \"%s\"%s", i ? ", " : "", i,
                     clv_device_class_name(device->device_class),
                     device->name_clean ? device->name_clean : "",
                     device->usable ? "" : " (unusable)");
    }
    if (!report->device_count) clv_text_add(&text, "no OpenCL device at all");
    if (text.failed) clv_text_clear(&text);
    return text.data;
}

static clv_status not_there(const clv_probe_report *report, const char *what, const char *why)
{
    char *summary = clv_devices_summary(report);
    const clv_status status = clv_fail(CLV_E_NO_DEVICE, "device \"%s\": %s; this machine has %s",
                                       what, why, summary ? summary : "");
    clv_free(summary);
    return status;
}

static size_t hardware_of(const clv_probe_report *report, size_t index)
{
    const size_t other = report->devices[index].duplicate_of;
    return other == SIZE_MAX ? index : other;
}

/* Adds the devices that an item names. An index or a place names exactly that entry. All other words name hardware: of
 * each piece of hardware, the first matching entry is chosen (the report lists the best first), unless an entry of that
 * hardware is already chosen. */
static clv_status include(const clv_probe_report *report, const item *it, const bool *excluded,
                          bool *taken, bool *chosen, const char *text)
{
    const bool exact = it->word == INDEX || it->word == PLACE;
    bool any = false, usable = false;
    for (size_t i = 0; i < report->device_count; ++i) {
        const clv_probe_device *device = &report->devices[i];
        if (!matches(report, i, it)) continue;
        any = true;
        if (!device->usable) {
            if (exact) return not_there(report, text, device->unusable_reason);
            continue;
        }
        usable = true;
        if (excluded[i] || (!exact && taken[hardware_of(report, i)])) continue;
        chosen[i] = taken[hardware_of(report, i)] = true;
    }
    if (!any) return not_there(report, text, "nothing on this machine matches");
    if (!usable) return not_there(report, text, "what matches cannot be used");
    return CLV_OK;
}

clv_status clv_check_selection(const char *selection)
{
    item it;
    for (const char *at = selection; at;)
        if (!next_item(&at, &it))
            return clv_fail(CLV_E_ARGUMENT,
                            "the list of devices \"%s\" is not valid; expected a comma-separated "
                            "list of gpu, cpu, all, N, P:D, name~TEXT, pci=ADDRESS or uuid=..., "
                            "each with ! in front to exclude",
                            selection);
    return CLV_OK;
}

static clv_status select_with(const clv_probe_report *report, const char *selection, bool *excluded,
                              bool *taken, bool *chosen)
{
    bool positive = false;
    item it;
    /* exclusions first, because they apply wherever they are written */
    for (const char *at = selection; at;) {
        if (!next_item(&at, &it)) return clv_check_selection(selection);
        if (!it.exclude) positive = true;
        for (size_t i = 0; it.exclude && i < report->device_count; ++i)
            if (matches(report, i, &it)) excluded[i] = true;
    }
    for (const char *at = selection; positive && at;)
        if (next_item(&at, &it) && !it.exclude)
            CLV_TRY(include(report, &it, excluded, taken, chosen, selection));
    if (!positive) {
        it = (item){ .word = ALL };
        CLV_TRY(include(report, &it, excluded, taken, chosen, selection));
    }
    for (size_t i = 0; i < report->device_count; ++i)
        if (chosen[i]) return CLV_OK;
    return not_there(report, selection, "nothing is left");
}

clv_status clv_select_devices(const clv_probe_report *report, const char *selection, bool *chosen)
{
    const size_t count = report->device_count;
    memset(chosen, 0, count * sizeof *chosen);
    bool *excluded = clv_zalloc(count, sizeof *excluded), *taken = clv_zalloc(count, sizeof *taken);
    const clv_status status = excluded && taken
                                  ? select_with(report, selection, excluded, taken, chosen)
                                  : clv_fail(CLV_E_MEMORY, "device: out of memory");
    if (status) memset(chosen, 0, count * sizeof *chosen);
    clv_free(excluded), clv_free(taken);
    return status;
}
