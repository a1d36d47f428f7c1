/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs whose chunks card_memory plans. */
#ifndef CLEAVE_TESTS_CARDS_MEMORY_H
#define CLEAVE_TESTS_CARDS_MEMORY_H

#include <cleave/cleave.h>

/* Runs a job, or a public function that runs jobs: memory.c plans each job instead of executing it. `what` names the
 * job in messages. */
void memory_name(const char *what, ...) __attribute__((format(printf, 1, 2)));
void memory_plan_jobs(clv_context *context);
/* Plans jobs for the last card alone, as the device is left by the plans for all cards. */
void memory_last_card(bool alone);
/* Returns the number of units of the latest job. */
size_t memory_units(void);
/* Ends the program with the library's message if the status is neither CLV_OK nor CLV_E_CANCELLED. */
void memory_require(clv_status status);

#endif
