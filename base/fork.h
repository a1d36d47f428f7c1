/* SPDX-License-Identifier: Apache-2.0 */
/* fork: a child has none of its parent's threads, and locks that they held stay locked. OpenCL drivers do not survive
 * that, so what used them says so in a child instead of waiting for ever. */
#ifndef CLEAVE_BASE_FORK_H
#define CLEAVE_BASE_FORK_H

#include <cleave/status.h>

#include <stdbool.h>

/* Of this process: how many forks lie between it and the first process that asked, and one. */
unsigned clv_fork_generation(void);
/* Whether what was made in generation `born` belongs to a process before a fork. 0: to none. */
bool clv_is_forked(unsigned born);
/* CLV_E_UNSUPPORTED with the remedy, if so. `what` begins the message. */
clv_status clv_fork_check(unsigned born, const char *what);

#endif
