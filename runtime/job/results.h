/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the commit of an operation the results of a chunk, which may come from another process or from a file. */
#ifndef CLEAVE_RUNTIME_JOB_RESULTS_H
#define CLEAVE_RUNTIME_JOB_RESULTS_H

#include <cleave/job.h>

/* Sets *pointer, which is any pointer to const data, to the result under `key`. Returns CLV_E_FORMAT if the result has
 * fewer than `bytes` bytes: a commit reads no further than what it has checked. For 0 bytes, as in a job without units,
 * there need be no result, and *pointer may be NULL. */
clv_status clv_slot_take(const clv_slot *slot, unsigned key, size_t bytes, void *pointer);

#endif
