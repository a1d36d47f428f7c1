/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the jobs of a command may load a driver, from the way in which the driver's helper processes ended.
 * Keeps the verdict on each driver on disk. */
#ifndef CLEAVE_PROBE_VERDICT_H
#define CLEAVE_PROBE_VERDICT_H

#include "probe/machine.h"

typedef enum clv_verdict {
    CLV_VERDICT_NONE, /* not tested, or something has changed since the test */
    CLV_VERDICT_GOOD,
    /* the driver crashed, hung or gave bad output during enumeration, or in every check */
    CLV_VERDICT_BAD,
} clv_verdict;

enum { CLV_VERDICT_REASON = 300, CLV_VERDICT_LIBRARY = 256 };

/* Judges a driver of a report that was made in helpers, with or without checks. `reason` is "" unless the verdict is
 * BAD. Depends only on the report. */
clv_verdict clv_verdict_judge(const clv_probe_report *report, size_t icd,
                              char reason[CLV_VERDICT_REASON]);

/* Returns the library of the driver that makes driver `icd` superfluous: it offers the same cores, works on them, and
 * is primary. Returns NULL if there is no such driver, or if driver `icd` has a device of its own. Depends only on the
 * report; call it after clv_decide. */
const char *clv_verdict_repeats(const clv_probe_report *report, size_t icd);

/* Reads the recorded verdict on a listed driver. `repeats` receives what clv_verdict_repeats returned, "" for NULL. A
 * record is valid until the machine restarts, or until one of these changes: the driver's .icd file or library (size,
 * time), the loader, the kernel, or a variable that drivers read. A bad verdict is valid for at most an hour, because
 * what the driver lacked may have been installed. */
clv_verdict clv_verdict_recall(const clv_probe_report *report, size_t icd,
                               char reason[CLV_VERDICT_REASON], char repeats[CLV_VERDICT_LIBRARY]);

/* Records the verdict on every driver in `wanted` ([icd_count]; NULL: all), but no bad verdict if a helper was
 * hindered. Does nothing without a cache directory. */
void clv_verdicts_keep(const clv_machine *machine, const bool *wanted);

#endif
