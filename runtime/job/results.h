/* SPDX-License-Identifier: Apache-2.0 */
/* Lets an operation's commit function read the results of a chunk, which may come from another process or a file. */
#ifndef CLEAVE_RUNTIME_JOB_RESULTS_H
#define CLEAVE_RUNTIME_JOB_RESULTS_H

#include <cleave/job.h>

/* Sets *pointer, which is any pointer to const data, to the result under `key`. Returns CLV_E_FORMAT if the result
 * has fewer than `bytes` bytes, since a commit must read no further than it has checked. With 0 bytes, as in a job
 * without units, the result may be missing and *pointer may become NULL. */
clv_status clv_slot_take(const clv_slot *slot, unsigned key, size_t bytes, void *pointer);

#endif
