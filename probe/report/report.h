/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a report as JSON and reads it back. */
#ifndef CLEAVE_PROBE_REPORT_H
#define CLEAVE_PROBE_REPORT_H

#include "base/json.h"
#include "probe/machine.h"

enum { CLV_REPORT_LIMIT = 64 << 20 }; /* most bytes of a report that is accepted */

clv_json *clv_report_to_json(const clv_probe_report *report); /* NULL if out of memory */

/* Returns the answer that a helper process sends to its parent: loader, platforms and devices, facts only. */
clv_json *clv_report_facts_to_json(const clv_probe_report *report);

/* Appends the facts of a report or of a helper's answer to `machine`. Platforms are assigned to driver `icd` unless it
 * is SIZE_MAX. All values are checked; messages begin with `what`. CLV_E_FORMAT, CLV_E_MEMORY. */
clv_status clv_report_read_facts(clv_machine *machine, const clv_json *root, size_t icd,
                                 const char *what);
/* Reads the facts that only a whole report has: host, GPUs on the bus, drivers. */
clv_status clv_report_read_host(clv_machine *machine, const clv_json *root, const char *what);

/* Write and read a device's check and rates, in the form that reports and the records on disk have in common. */
void clv_report_write_check(clv_json *object, const clv_probe_check *check);
void clv_report_write_rates(clv_json *object, const clv_probe_rates *rates);
clv_status clv_report_read_check(clv_machine *machine, const clv_json *object,
                                 clv_probe_check *check);
clv_status clv_report_read_rates(clv_machine *machine, const clv_json *object,
                                 clv_probe_rates *rates);

#endif
