/* SPDX-License-Identifier: Apache-2.0 */
/* Finds hardware that several drivers offer, so that it counts only once. */
#include "probe/judge/duplicates.h"

#include "base/alloc.h"
#include "probe/judge/classify.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct work {
    clv_machine *machine;
    size_t *group; /* [device]: index of the first device that is the same hardware */
    size_t *best;  /* [group]: primary device of the group */
    size_t *order; /* [new index]: index in the old array */
} work;

static bool same(const char *a, const char *b)
{
    return a && b && strcasecmp(a, b) == 0;
}

static bool shares_cores(const clv_probe_device *device)
{
    return device->device_class == CLV_CLASS_CPU || device->device_class == CLV_CLASS_SOFTWARE;
}

static const char *library_of(const clv_machine *m, const clv_probe_device *device)
{
    const size_t icd = m->platforms[device->platform].icd;
    return icd < m->report.icd_count ? m->icds[icd].library_path : NULL;
}

typedef bool alike(const clv_probe_device *a, const clv_probe_device *b);

static bool same_pci(const clv_probe_device *a, const clv_probe_device *b)
{
    return same(a->pci_address, b->pci_address);
}

static bool same_name(const clv_probe_device *a, const clv_probe_device *b)
{
    return same(a->name_clean, b->name_clean) && clv_is_gpu(a) == clv_is_gpu(b);
}

/* Returns how many devices of the device's platform are like it by `test`, and sets *before to the number of those that
 * come before it. */
static size_t alike_on_platform(const clv_machine *m, size_t index, alike *test, size_t *before)
{
    const clv_probe_device *device = &m->devices[index];
    size_t count = 0;
    *before = 0;
    for (size_t i = 0; i < m->report.device_count; ++i) {
        if (m->devices[i].platform != device->platform || !test(device, &m->devices[i])) continue;
        ++count;
        if (i < index) ++*before;
    }
    return count;
}

/* Returns whether two entries are the same hardware. Several entries of one platform may have the same address (AMD's
 * topology has no PCI domain) or the same name; in this case the k-th such entry of one platform is the k-th of the
 * other. */
static bool same_hardware(const clv_machine *m, size_t i, size_t j)
{
    const clv_probe_device *a = &m->devices[i], *b = &m->devices[j];
    if (a->platform == b->platform) return false;
    if (shares_cores(a) || shares_cores(b)) return shares_cores(a) && shares_cores(b);

    size_t a_before, b_before;
    const char *library = library_of(m, a);
    if (library && same(library, library_of(m, b)))
        return a->ordinal == b->ordinal && same(a->name, b->name);
    if (a->pci_address && b->pci_address) {
        if (!same_pci(a, b)) return false;
        alike_on_platform(m, i, same_pci, &a_before);
        alike_on_platform(m, j, same_pci, &b_before);
        return a_before == b_before;
    }
    /* different drivers, and even different versions of one driver, lay out UUIDs differently */
    if (a->uuid && b->uuid && same(a->driver_uuid, b->driver_uuid)) return same(a->uuid, b->uuid);
    if (!same_name(a, b)) return false;
    return alike_on_platform(m, i, same_name, &a_before) ==
               alike_on_platform(m, j, same_name, &b_before) &&
           a_before == b_before;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

/* Compares two CPU runtimes. If both were measured and their rates differ by more than the noise, the faster one is
 * better. */
static int compare_cpu_runtimes(const clv_probe_device *a, const clv_probe_device *b)
{
    const double x = a->measured.fp32_gflops, y = b->measured.fp32_gflops;
    int better = order(a->device_class == CLV_CLASS_CPU, b->device_class == CLV_CLASS_CPU);
    if (!better && x > 0 && y > 0 && (x > 1.1 * y || y > 1.1 * x)) better = order(x, y);
    if (!better)
        better = order(a->vendor_norm == CLV_VENDOR_POCL, b->vendor_norm == CLV_VENDOR_POCL);
    return better;
}

/* Returns a positive number if entry a is better, a negative one if entry b is better. */
static int compare_entries(const clv_machine *m, const clv_probe_device *a,
                           const clv_probe_device *b)
{
    const clv_probe_platform *pa = &m->platforms[a->platform], *pb = &m->platforms[b->platform];
    const int rules[] = {
        order(a->usable, b->usable),
        shares_cores(a) ? compare_cpu_runtimes(a, b) : 0,
        order(!same(a->profile, "EMBEDDED_PROFILE"), !same(b->profile, "EMBEDDED_PROFILE")),
        order(a->fp64, b->fp64),
        order(pa->vendor_norm == a->vendor_norm, pb->vendor_norm == b->vendor_norm),
        order((double)(a->max_alloc_bytes + 1), (double)(b->max_alloc_bytes + 1)), /* unknown: 0 */
        order(clv_opencl_version(a->version), clv_opencl_version(b->version)),
    };
    for (size_t i = 0; i < CLV_LEN(rules); ++i)
        if (rules[i]) return rules[i];
    return 0;
}

static void find_groups(work *w)
{
    const clv_machine *m = w->machine;
    for (size_t i = 0; i < m->report.device_count; ++i) {
        w->group[i] = i;
        for (size_t j = 0; j < i && w->group[i] == i; ++j)
            if (same_hardware(m, i, j)) w->group[i] = w->group[j];
        const size_t group = w->group[i];
        if (group == i)
            w->best[i] = i;
        else if (compare_entries(m, &m->devices[i], &m->devices[w->best[group]]) > 0)
            w->best[group] = i;
    }
}

/* Makes a device's id: "cpu:pocl", "pci:0000:03:00.0", "uuid:...", "name:Tesla K20c". */
static const char *make_id(clv_machine *m, const clv_probe_device *device)
{
    const clv_probe_platform *platform = &m->platforms[device->platform];
    if (shares_cores(device)) {
        char slug[32] = "";
        if (device->vendor_norm != CLV_VENDOR_OTHER && device->vendor_norm != CLV_VENDOR_MESA)
            return clv_machine_text(m, "cpu:%s", clv_vendor_name(device->vendor_norm));
        clv_copy_string(slug, sizeof slug, platform->name ? platform->name : "unnamed");
        for (char *c = slug; *c; ++c)
            *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
        return clv_machine_text(m, "cpu:%s", slug);
    }
    if (device->pci_address) return clv_machine_text(m, "pci:%s", device->pci_address);
    if (device->uuid) return clv_machine_text(m, "uuid:%s", device->uuid);
    return clv_machine_text(m, "name:%s", device->name_clean ? device->name_clean : "");
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* Compares the positions of two devices in the report; never returns 0. */
static int compare_places(const work *w, size_t i, size_t j)
{
    const clv_probe_device *devices = w->machine->devices;
    const clv_probe_device *a = &devices[i], *b = &devices[j];
    const size_t lead_a = w->best[w->group[i]], lead_b = w->best[w->group[j]];
    if (lead_a != lead_b) { /* different hardware: compares the primary entries */
        a = &devices[lead_a], b = &devices[lead_b];
        if (a->device_class != b->device_class) return a->device_class < b->device_class ? -1 : 1;
        const int by_id = compare_text(a->id, b->id);
        if (by_id) return by_id;
    } else if ((lead_a == i) != (lead_b == j)) {
        return lead_a == i ? -1 : 1;
    }
    if (a->platform != b->platform) return a->platform < b->platform ? -1 : 1;
    if (a->ordinal != b->ordinal) return a->ordinal < b->ordinal ? -1 : 1;
    return lead_a != lead_b ? (lead_a < lead_b ? -1 : 1) : i < j ? -1 : 1;
}

static void sort_devices(work *w, clv_probe_device *sorted)
{
    clv_machine *m = w->machine;
    const size_t count = m->report.device_count;
    /* insertion sort, because it is stable and its comparison has access to the context */
    for (size_t i = 0; i < count; ++i) {
        size_t at = i;
        for (; at > 0 && compare_places(w, i, w->order[at - 1]) < 0; --at)
            w->order[at] = w->order[at - 1];
        w->order[at] = i;
    }
    for (size_t at = 0; at < count; ++at)
        sorted[at] = m->devices[w->order[at]];
    memcpy(m->devices, sorted, count * sizeof *sorted);
}

/* Marks the duplicates among sorted devices. Primary entries come first, so that the duplicates can refer to them. */
static void mark_duplicates(const work *w)
{
    clv_probe_device *devices = w->machine->devices;
    for (size_t at = 0; at < w->machine->report.device_count; ++at) {
        const size_t best = w->best[w->group[w->order[at]]];
        devices[at].primary = best == w->order[at];
        devices[at].duplicate_of = SIZE_MAX;
        for (size_t k = 0; k < at && !devices[at].primary; ++k)
            if (w->order[k] == best) devices[at].duplicate_of = k;
    }
}

/* Sorts the devices before they are grouped. Matches of different kinds can contradict each other; then the order of
 * the comparisons decides, and the result must not depend on the loader's order. */
static void sort_alone(work *w, clv_probe_device *sorted)
{
    for (size_t i = 0; i < w->machine->report.device_count; ++i)
        w->group[i] = w->best[i] = i;
    sort_devices(w, sorted);
}

static void sort_platforms(clv_machine *m)
{
    clv_probe_platform *p = m->platforms;
    for (size_t i = 1; i < m->report.platform_count; ++i) {
        for (size_t at = i; at > 0; --at) {
            int place = compare_text(p[at].name, p[at - 1].name);
            if (!place) place = compare_text(p[at].version, p[at - 1].version);
            if (place >= 0) break;
            const clv_probe_platform swap = p[at];
            p[at] = p[at - 1];
            p[at - 1] = swap;
            for (size_t d = 0; d < m->report.device_count; ++d) {
                if (m->devices[d].platform == at)
                    m->devices[d].platform = at - 1;
                else if (m->devices[d].platform == at - 1)
                    m->devices[d].platform = at;
            }
        }
    }
}

/* Makes ids unique. Different hardware never has the same id: "name:X#0", "name:X#1"; "pci:A", "pci:A#1". Entries of
 * the same GPU do have the same id. */
static void number_ids(clv_machine *m)
{
    for (size_t i = 0; i < m->report.device_count; ++i) {
        clv_probe_device *device = &m->devices[i];
        if (!device->primary && !shares_cores(device)) {
            device->id = m->devices[device->duplicate_of].id;
            continue;
        }
        size_t earlier = 0;
        const size_t length = device->id ? strlen(device->id) : 0;
        for (size_t j = 0; j < i; ++j) {
            const clv_probe_device *other = &m->devices[j];
            if ((other->primary || shares_cores(other)) && other->id && device->id &&
                strncmp(other->id, device->id, length) == 0 &&
                (!other->id[length] || other->id[length] == '#'))
                ++earlier;
        }
        if (earlier || (device->id && clv_starts_with(device->id, "name:")))
            device->id = clv_machine_text(m, "%s#%zu", device->id ? device->id : "", earlier);
    }
}

static bool is_code_name(const char *name)
{
    return !name || clv_starts_with(name, "gfx") || strstr(name, "[0x");
}

/* Copies names between drivers: if the primary entry of a card has a code name such as "gfx1031" and a duplicate has
 * the product name, the primary entry takes the product name, which users know. */
static void share_names(clv_machine *m)
{
    for (size_t i = 0; i < m->report.device_count; ++i) {
        const clv_probe_device *device = &m->devices[i];
        if (device->duplicate_of == SIZE_MAX || shares_cores(device)) continue;
        clv_probe_device *first = &m->devices[device->duplicate_of];
        if (is_code_name(first->name_clean) && !is_code_name(device->name_clean))
            first->name_clean = device->name_clean;
    }
}

void clv_merge_duplicates(clv_machine *machine)
{
    const size_t count = machine->report.device_count;
    sort_platforms(machine);
    if (!count) return;
    work w = {
        .machine = machine,
        .group = clv_zalloc(count, sizeof(size_t)),
        .best = clv_zalloc(count, sizeof(size_t)),
        .order = clv_zalloc(count, sizeof(size_t)),
    };
    clv_probe_device *sorted = clv_zalloc(count, sizeof *sorted);
    if (!w.group || !w.best || !w.order || !sorted) {
        machine->failed = true;
    } else {
        for (size_t i = 0; i < count; ++i)
            machine->devices[i].id = make_id(machine, &machine->devices[i]);
        sort_alone(&w, sorted);
        find_groups(&w);
        sort_devices(&w, sorted);
        mark_duplicates(&w);
        number_ids(machine);
        share_names(machine);
    }
    clv_free(w.group), clv_free(w.best), clv_free(w.order), clv_free(sorted);
}
