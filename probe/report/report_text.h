/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a report as text for people to read. */
#ifndef CLEAVE_PROBE_REPORT_TEXT_H
#define CLEAVE_PROBE_REPORT_TEXT_H

#include "probe/report/report_page.h"

/* Returns the report as text of at most 80 columns; free with clv_free. NULL if out of memory. */
char *clv_report_text(const clv_probe_report *report, const clv_report_style *style);

/* Returns one line per usable device: index, class, name, memory, driver. Free it with clv_free. */
char *clv_report_list(const clv_probe_report *report);

#endif
