/* SPDX-License-Identifier: Apache-2.0 */
/* Detects forks. A child has none of its parent's threads, and locks that these threads held stay locked. OpenCL
 * drivers do not survive that. Code that uses a driver therefore reports an error in a child, instead of waiting
 * forever. */
#ifndef CLEAVE_BASE_FORK_H
#define CLEAVE_BASE_FORK_H

#include <cleave/status.h>

#include <stdbool.h>

/* Returns this process's generation: 1, plus the number of forks since the first process that asked. */
unsigned clv_fork_generation(void);
/* Returns whether something made in generation `born` belongs to a process before a fork. Generation 0 belongs to no
 * process. */
bool clv_is_forked(unsigned born);
/* Returns CLV_E_UNSUPPORTED with the remedy if clv_is_forked(born), else CLV_OK. `what` begins the message. */
clv_status clv_fork_check(unsigned born, const char *what);

#endif
