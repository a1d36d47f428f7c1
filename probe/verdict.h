/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a driver may be loaded by the jobs of the command: judged by how its helpers ended, kept
 * on disk for each driver. */
#ifndef CLEAVE_PROBE_VERDICT_H
#define CLEAVE_PROBE_VERDICT_H

#include "probe/machine.h"

typedef enum clv_verdict {
    CLV_VERDICT_NONE, /* nobody looked, or something changed since */
    CLV_VERDICT_GOOD,
    CLV_VERDICT_BAD, /* it crashed, hung or babbled in enumeration, or every check of it did */
} clv_verdict;

enum { CLV_VERDICT_REASON = 300, CLV_VERDICT_LIBRARY = 256 };

/* Of a driver in a report made in helpers, checked or not. `reason` is "" unless BAD. Pure. */
clv_verdict clv_verdict_judge(const clv_probe_report *report, size_t icd,
                              char reason[CLV_VERDICT_REASON]);

/* The library of the driver that makes driver `icd` superfluous: it offers the same cores, works on them, and is
 * the one to use (primary). NULL: there is none, or the driver has a device of its own. Pure; after clv_decide. */
const char *clv_verdict_repeats(const clv_probe_report *report, size_t icd);

/* What is on record about a listed driver; `repeats` is what clv_verdict_repeats said, "" for NULL. It holds until the
 * driver's .icd file or library (size, time), the loader, the kernel or a variable that drivers read changes, or the
 * machine starts anew; a bad one for an hour at most, since what it lacked may have been installed. */
clv_verdict clv_verdict_recall(const clv_probe_report *report, size_t icd,
                               char reason[CLV_VERDICT_REASON], char repeats[CLV_VERDICT_LIBRARY]);

/* Keeps the verdict of every driver in `wanted` ([icd_count]; NULL: all), no bad one when a helper was hindered.
 * Without a cache directory nothing happens. */
void clv_verdicts_keep(const clv_machine *machine, const bool *wanted);

#endif
