/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a report: its arrays grow, and its strings exist as long as the report. */
#ifndef CLEAVE_PROBE_MACHINE_H
#define CLEAVE_PROBE_MACHINE_H

#include "base/text.h"

#include <cleave/probe.h>

enum { CLV_TEXT_LIMIT = 65536 }; /* most bytes stored of one text from a driver */

typedef struct clv_machine {
    /* must be the first member, because clv_probe_free receives a pointer to it */
    clv_probe_report report;
    /* the report's arrays, writable */
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
    bool failed;   /* memory ran out at some point; checked once, at the end */
} clv_machine;

/* returns a machine whose facts are all unknown; NULL if memory runs out */
clv_machine *clv_machine_create(void);
void clv_machine_free(clv_machine *machine); /* accepts NULL */

/* Each of these functions appends an entry whose fields are all unknown, and returns NULL if memory runs out. Pointers
 * to earlier entries of the same array become invalid. */
clv_probe_icd *clv_machine_add_icd(clv_machine *machine);
clv_probe_pci_gpu *clv_machine_add_pci_gpu(clv_machine *machine);
clv_probe_platform *clv_machine_add_platform(clv_machine *machine);
clv_probe_device *clv_machine_add_device(clv_machine *machine);
clv_probe_cache *clv_machine_add_cache(clv_machine *machine);
void clv_machine_clear_warnings(clv_machine *machine);
void clv_machine_warn(clv_machine *machine, const char *code, const char *hint, const char *format,
                      ...) CLV_PRINTF(4, 5);

/* These functions make strings that exist as long as the report. They return NULL if memory runs out or the text is
 * empty. */
const char *clv_machine_text(clv_machine *machine, const char *format, ...) CLV_PRINTF(2, 3);
const char *clv_machine_keep(clv_machine *machine, const char *text); /* NULL stays NULL */
/* Stores a text from outside the program. The text ends at the first zero byte; each byte that is not UTF-8, or belongs
 * to a character that a terminal may not show (base/visible.h), becomes '?'; blanks at both ends are removed; at most
 * CLV_TEXT_LIMIT bytes are stored. An empty text becomes NULL. */
const char *clv_machine_foreign(clv_machine *machine, const char *bytes, size_t length);

/* Sets free_bytes, the source of the value, and the current time as its time. */
void clv_machine_set_free(clv_machine *machine, clv_probe_device *device, uint64_t bytes,
                          const char *source);

/* Returns whether `word` is one of the words in a list separated by blanks. A NULL list has no words. */
bool clv_probe_has_word(const char *list, const char *word);

/* Return a device and a host all of whose facts are unknown. */
clv_probe_device clv_device_unknown(void);
clv_probe_host clv_host_unknown(void);

#endif
