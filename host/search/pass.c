/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a pass over rows or codes as a job, and computes the exact similarities of the rows that the devices found. */
#include "host/search/search.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>

enum { SHORT = 4096 };

double clv_search_dot(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

double clv_search_exact(const clv_search *s, size_t q, const float *row)
{
    const double product = clv_search_dot(s->given + q * s->width, row, s->width);
    if (s->similarity == CLV_SIMILARITY_DOT) return product;
    const double lengths = s->length[q] * sqrt(clv_search_dot(row, row, s->width));
    return lengths > 0 ? product / lengths : lengths == 0 ? 0 : (double)NAN;
}

clv_status clv_search_run(clv_search_plan *p, size_t count, clv_report *report)
{
    static const char *const codes[] = { "", " int8", " binary" };
    const clv_search *s = p->search;
    char signature[96];
    snprintf(signature, sizeof signature, "Q%zu D%zu K%zu%s", s->queries, s->width, s->keep,
             codes[s->codes]);
    p->found = clv_alloc(s->queries * s->keep, sizeof *p->found);
    p->found_count = clv_zalloc(s->queries, sizeof *p->found_count);
    if (!p->found || !p->found_count)
        return clv_fail(CLV_E_MEMORY, "search: not enough memory for %zu candidates",
                        s->queries * s->keep);
    const clv_job job = { .size = sizeof job,
                          .name = "search",
                          .signature = signature,
                          .units = count,
                          .min_chunk = CLV_MIN(count, (size_t)SHORT),
                          .cost = clv_search_cost,
                          .setup = clv_search_setup,
                          .enqueue = clv_search_enqueue,
                          .commit = clv_search_commit,
                          .reference = clv_search_reference,
                          .rehearse = true,
                          .progress = s->progress,
                          .progress_user = s->progress_user };
    return clv_job_run(s->context, &job, p, report);
}
