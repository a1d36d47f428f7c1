/* SPDX-License-Identifier: Apache-2.0 */
/* A card's facts out of a recorded machine: the profiles that `cleave probe --simulate` reads. */
#include "card.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *profile, const char *key)
{
    const char *text = json_string_value(json_object_get(profile, key));
    return text ? strdup(text) : NULL;
}

static uint64_t number_of(const json_t *profile, const char *key, uint64_t otherwise)
{
    const json_t *value = json_object_get(profile, key);
    return json_is_number(value) ? (uint64_t)json_number_value(value) : otherwise;
}

static bool flag_of(const json_t *profile, const char *key)
{
    return json_is_true(json_object_get(profile, key));
}

/* The list of extensions as the one line that a driver gives, without halves, which PoCL does not compile, and without
 * subgroups by Intel, which make its compiler warn. CLBlast takes any name that begins like theirs for the first one.
 */
static const char *words_of(const json_t *list)
{
    size_t length = 1, i;
    const json_t *word;
    json_array_foreach(list, i, word) length += json_string_length(word) + 1;
    char *text = calloc(length, 1);
    json_array_foreach(list, i, word)
    {
        const char *name = json_string_value(word);
        if (!text || strcmp(name, "cl_khr_fp16") == 0 ||
            strncmp(name, "cl_intel_subgroups", 18) == 0)
            continue;
        if (*text) strcat(text, " ");
        strcat(text, name);
    }
    return text;
}

/* AMD's drivers tell it, in KiB. */
static uint64_t free_bytes(const json_t *p)
{
    const json_t *kib = json_array_get(json_object_get(p, "amd_free_kib"), 0);
    return kib ? (uint64_t)json_number_value(kib) << 10 : number_of(p, "global_mem_bytes", 0);
}

static void read_profile(const json_t *p, card_facts *f)
{
    *f = (card_facts){
        .platform = text_of(p, "platform_name"),
        .platform_version = text_of(p, "platform_version"),
        .vendor = text_of(p, "vendor"),
        .name = text_of(p, "name"),
        .version = text_of(p, "device_version"),
        .driver = text_of(p, "driver_version"),
        .extensions = words_of(json_object_get(p, "extensions")),
        .board_name = text_of(p, "board_name"),
        .profile = text_of(p, "profile"),
        .vendor_id = (uint32_t)number_of(p, "vendor_id", 0),
        .compute_units = (uint32_t)number_of(p, "compute_units", 1),
        .clock_mhz = (uint32_t)number_of(p, "max_clock_mhz", 0),
        .wavefront = (uint32_t)number_of(p, "wavefront", 0),
        .preferred_multiple = (uint32_t)number_of(p, "preferred_wg_multiple", 32),
        .global_bytes = number_of(p, "global_mem_bytes", UINT64_C(1) << 32),
        .max_alloc_bytes = number_of(p, "max_alloc_bytes", UINT64_C(1) << 30),
        .local_bytes = number_of(p, "local_mem_bytes", 32768),
        .free_bytes = free_bytes(p),
        .timer_ns = number_of(p, "profiling_timer_ns", 1),
        .max_work_group = (size_t)number_of(p, "max_work_group_size", 256),
        .fp64 = flag_of(p, "fp64"),
        .unified = flag_of(p, "unified_memory"),
        .local_is_global = strcmp(json_string_value(json_object_get(p, "local_mem_type"))
                                      ? json_string_value(json_object_get(p, "local_mem_type"))
                                      : "local",
                                  "global") == 0,
        .integrated = flag_of(p, "nv_integrated"),
        .kernel_timeout = flag_of(p, "nv_kernel_timeout"),
    };
    const char *capability = json_string_value(json_object_get(p, "compute_capability"));
    const char *pci = json_string_value(json_object_get(p, "pci"));
    if (capability) sscanf(capability, "%u.%u", &f->capability[0], &f->capability[1]);
    if (pci) sscanf(pci, "%x:%x:%x.%x", &f->pci[0], &f->pci[1], &f->pci[2], &f->pci[3]);
}

bool card_read(const char *where, card_facts *facts)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", where);
    char *id = strrchr(path, '#');
    if (id) *id++ = '\0';
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    const json_t *profile, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(root, "devices"), i, profile)
    {
        const char *name = json_string_value(json_object_get(profile, "id"));
        if (!found && (!id || (name && strcmp(name, id) == 0))) found = profile;
    }
    if (found)
        read_profile(found, facts);
    else
        fprintf(stderr, "simulated card: %s: %s\n", where, root ? "no such device" : error.text);
    json_decref(root);
    return found && facts->name && facts->vendor && facts->platform && facts->version &&
           facts->driver && facts->extensions;
}
