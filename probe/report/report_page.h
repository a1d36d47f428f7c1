/* SPDX-License-Identifier: Apache-2.0 */
/* Declares what the parts of a report for people share. */
#ifndef CLEAVE_PROBE_REPORT_PAGE_H
#define CLEAVE_PROBE_REPORT_PAGE_H

#include "base/text.h"

#include <cleave/probe.h>

typedef struct clv_report_style {
    bool colour; /* use terminal escapes */
    bool lines;  /* use box-drawing characters (UTF-8); false: ASCII */
    bool more;   /* also show quirks with their reasons, drivers' output and all paths */
} clv_report_style;

typedef struct clv_page {
    const clv_probe_report *report;
    const clv_report_style *style;
    clv_text *out;
} clv_page;

const char *clv_known(const char *text); /* returns the text; "unknown" for NULL */
/* writes and returns a text such as "12.3 GB"; `out` holds 16 bytes */
const char *clv_known_bytes(uint64_t bytes, char *out);

#endif
