/* SPDX-License-Identifier: Apache-2.0 */
/* Known facts about drivers and chips, one row per fact. Only this table knows vendors by name for that purpose; all
 * other code reads clv_probe_flags. */
#ifndef CLEAVE_PROBE_QUIRKS_H
#define CLEAVE_PROBE_QUIRKS_H

#include "probe/machine.h"

typedef struct clv_quirk {
    const char *name;   /* as in devices[].quirks */
    const char *reason; /* a sentence for people */
    const char *source; /* where it was seen or measured */
} clv_quirk;

/* Fills quirks and flags of a classified device; the check's findings take precedence over the table. */
void clv_apply_quirks(clv_machine *machine, const clv_probe_platform *platform,
                      clv_probe_device *device);

/* Copies what a successful check measured into the flags. */
void clv_quirk_findings(const clv_probe_check *check, clv_probe_flags *flags);

/* Returns the row, or NULL if there is none. */
const clv_quirk *clv_quirk_find(const char *name);

#endif
