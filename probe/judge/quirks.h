/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about drivers and chips, one row a fact; the only place that knows vendors by
 * name for that purpose. Everybody else reads clv_probe_flags. */
#ifndef CLEAVE_PROBE_QUIRKS_H
#define CLEAVE_PROBE_QUIRKS_H

#include "probe/machine.h"

typedef struct clv_quirk {
    const char *name;   /* as in devices[].quirks */
    const char *reason; /* a sentence for people */
    const char *source; /* where it was seen or measured */
} clv_quirk;

/* Fills quirks and flags of a classified device; the check's findings count before the table's. */
void clv_apply_quirks(clv_machine *machine, const clv_probe_platform *platform,
                      clv_probe_device *device);

/* What a check that went well measured, into the flags. */
void clv_quirk_findings(const clv_probe_check *check, clv_probe_flags *flags);

/* NULL when there is no such row. */
const clv_quirk *clv_quirk_find(const char *name);

#endif
