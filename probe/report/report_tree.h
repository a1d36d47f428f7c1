/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the part of a report for people that shows platforms and their devices. */
#ifndef CLEAVE_PROBE_REPORT_TREE_H
#define CLEAVE_PROBE_REPORT_TREE_H

#include "probe/report/report_page.h"

void clv_page_tree(const clv_page *page);

#endif
