/* SPDX-License-Identifier: Apache-2.0 */
/* Holds known facts about drivers and chips, one row per fact. Only this table names vendors for this purpose; all
 * other code reads clv_probe_flags. */
#ifndef CLEAVE_PROBE_QUIRKS_H
#define CLEAVE_PROBE_QUIRKS_H

#include "probe/machine.h"

typedef struct clv_quirk {
    const char *name;   /* the name in devices[].quirks */
    const char *reason; /* a sentence for users */
    const char *source; /* evidence, such as "measured: Mesa 22.3.6" */
} clv_quirk;

/* Fills in quirks and flags of a classified device; the check's findings take precedence over the table. */
void clv_apply_quirks(clv_machine *machine, const clv_probe_platform *platform,
                      clv_probe_device *device);

/* Copies the findings of a successful check into the flags. */
void clv_quirk_findings(const clv_probe_check *check, clv_probe_flags *flags);

/* Returns the quirk of that name, or NULL. */
const clv_quirk *clv_quirk_find(const char *name);

#endif
