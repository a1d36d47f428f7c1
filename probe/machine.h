/* SPDX-License-Identifier: Apache-2.0 */
/* A report under construction: arrays that grow, and strings that live as long as the report. */
#ifndef CLEAVE_PROBE_MACHINE_H
#define CLEAVE_PROBE_MACHINE_H

#include "base/text.h"

#include <cleave/probe.h>

enum { CLV_TEXT_LIMIT = 65536 }; /* bytes kept of one text from a driver */

typedef struct clv_machine {
    clv_probe_report report; /* first member: clv_probe_free gets a pointer to it */
    /* the arrays of the report, writable */
    clv_probe_icd *icds;
    clv_probe_pci_gpu *pci_gpus;
    clv_probe_platform *platforms;
    clv_probe_device *devices;
    clv_probe_warning *warnings;
    clv_probe_cache *caches;
    size_t icd_capacity, pci_gpu_capacity, platform_capacity, device_capacity, warning_capacity,
        cache_capacity;
    struct clv_machine_text *texts;
    bool hindered; /* a helper was killed or could not start, for reasons outside the driver */
    bool failed;   /* memory ran out somewhere: check once, at the end */
} clv_machine;

clv_machine *clv_machine_create(void);       /* all facts are unknown; NULL if out of memory */
void clv_machine_free(clv_machine *machine); /* accepts NULL */

/* Each of these appends an entry whose fields are all unknown; NULL if out of memory. Pointers to earlier entries of
 * the array become invalid. */
clv_probe_icd *clv_machine_add_icd(clv_machine *machine);
clv_probe_pci_gpu *clv_machine_add_pci_gpu(clv_machine *machine);
clv_probe_platform *clv_machine_add_platform(clv_machine *machine);
clv_probe_device *clv_machine_add_device(clv_machine *machine);
clv_probe_cache *clv_machine_add_cache(clv_machine *machine);
void clv_machine_clear_warnings(clv_machine *machine);
void clv_machine_warn(clv_machine *machine, const char *code, const char *hint, const char *format,
                      ...) CLV_PRINTF(4, 5);

/* Make strings that live as long as the report. NULL if out of memory or if there is nothing to keep. */
const char *clv_machine_text(clv_machine *machine, const char *format, ...) CLV_PRINTF(2, 3);
const char *clv_machine_keep(clv_machine *machine, const char *text); /* NULL stays NULL */
/* Keeps a text from outside: it ends at the first zero byte, control characters and bytes that are not UTF-8 become
 * '?', blanks at both ends are removed, and at most CLV_TEXT_LIMIT bytes stay. An empty text becomes NULL. */
const char *clv_machine_foreign(clv_machine *machine, const char *bytes, size_t length);

/* Sets free_bytes, its source, and the current time. */
void clv_machine_set_free(clv_machine *machine, clv_probe_device *device, uint64_t bytes,
                          const char *source);

/* Returns whether `word` is one of the words in a list separated by blanks. A NULL list holds nothing. */
bool clv_probe_has_word(const char *list, const char *word);

/* Return a device and a host about which nothing is known. */
clv_probe_device clv_device_unknown(void);
clv_probe_host clv_host_unknown(void);

#endif
