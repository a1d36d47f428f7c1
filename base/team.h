/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share short pieces of work with a caller, of 10 us or more. They wait in a loop for some time after a
 * piece, because to wake up takes them longer than that. */
#ifndef CLEAVE_BASE_TEAM_H
#define CLEAVE_BASE_TEAM_H

#include <stddef.h>

typedef struct clv_team clv_team;

/* Starts a team of `threads` threads beside the caller; fewer if the system gives no more. Returns NULL if there are
 * none, or memory runs out. */
clv_team *clv_team_start(unsigned threads);
/* Calls body(user) on the caller's thread and, at the same time, on those of the team's threads that are there in time.
 * Returns when all calls have ended. The calls divide the work among themselves. While another caller has the team, or
 * if `team` is NULL, only the caller's thread works. */
void clv_team_run(clv_team *team, void (*body)(void *user), void *user);
/* Ends the threads and frees the team; accepts NULL. */
void clv_team_free(clv_team *team);

#endif
