/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the command's jobs may load a driver: judged by how its helpers ended, kept on disk for each
 * driver. */
#ifndef CLEAVE_PROBE_VERDICT_H
#define CLEAVE_PROBE_VERDICT_H

#include "probe/machine.h"

typedef enum clv_verdict {
    CLV_VERDICT_NONE, /* not tested, or something has changed since */
    CLV_VERDICT_GOOD,
    CLV_VERDICT_BAD, /* it crashed, hung or gave bad output in enumeration, or in every check */
} clv_verdict;

enum { CLV_VERDICT_REASON = 300, CLV_VERDICT_LIBRARY = 256 };

/* Judges a driver of a report that was made in helpers, checked or not. `reason` is "" unless BAD. Pure. */
clv_verdict clv_verdict_judge(const clv_probe_report *report, size_t icd,
                              char reason[CLV_VERDICT_REASON]);

/* Returns the library of the driver that makes driver `icd` superfluous, because it offers the same cores, works on
 * them, and is the one to use (primary). NULL: there is none, or the driver has its own device. Pure; call after
 * clv_decide. */
const char *clv_verdict_repeats(const clv_probe_report *report, size_t icd);

/* Reads what is recorded about a listed driver; `repeats` is what clv_verdict_repeats returned, "" for NULL. A record
 * holds until the driver's .icd file or library (size, time), the loader, the kernel or a variable that drivers read
 * changes, or the machine restarts. A bad one holds for at most an hour, because what the driver lacked may have been
 * installed. */
clv_verdict clv_verdict_recall(const clv_probe_report *report, size_t icd,
                               char reason[CLV_VERDICT_REASON], char repeats[CLV_VERDICT_LIBRARY]);

/* Keeps the verdict of every driver in `wanted` ([icd_count]; NULL: all), but no bad one if a helper was hindered. Does
 * nothing without a cache directory. */
void clv_verdicts_keep(const clv_machine *machine, const bool *wanted);

#endif
