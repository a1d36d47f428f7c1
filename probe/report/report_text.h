/* SPDX-License-Identifier: Apache-2.0 */
/* A report for people. */
#ifndef CLEAVE_PROBE_REPORT_TEXT_H
#define CLEAVE_PROBE_REPORT_TEXT_H

#include "probe/report/report_page.h"

/* At most 80 columns; free with clv_free. NULL without memory. */
char *clv_report_text(const clv_probe_report *report, const clv_report_style *style);

/* One line a usable device: index, class, name, memory, driver. */
char *clv_report_list(const clv_probe_report *report);

#endif
