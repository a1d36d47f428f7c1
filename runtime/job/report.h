/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the records that jobs add to a report. */
#ifndef CLEAVE_RUNTIME_JOB_REPORT_H
#define CLEAVE_RUNTIME_JOB_REPORT_H

#include "runtime/job/balance/balance.h"

#include <cleave/job.h>

typedef struct clv_share_record {
    clv_share share;
    char device[96];
    char why[320]; /* the balancer's sentence about the device */
    double setup_s, units_per_s;
    size_t max_chunk;
} clv_share_record;

typedef struct clv_job_record {
    const char *name, *signature;
    size_t units;
    double seconds, imbalance, efficiency;
    clv_schedule schedule;
    clv_share_record shares[CLV_BALANCE_MAX_DEVICES + 1];
    size_t share_count;
} clv_job_record;

void clv_report_add_share(clv_job_record *record, const clv_share *share, const char *why,
                          double setup_s, double units_per_s, size_t max_chunk);
void clv_report_add_job(clv_report *report, const clv_context *context,
                        const clv_job_record *record);

#endif
