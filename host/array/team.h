/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the threads that share work on arrays with the thread that calls. */
#ifndef CLEAVE_HOST_ARRAY_TEAM_H
#define CLEAVE_HOST_ARRAY_TEAM_H

#include "base/team.h"
#include "host/array/data.h"

/* Returns the context's team, one thread per core beside the caller's but at most seven; NULL: there is none. */
clv_team *clv_array_team(clv_context *context);

#endif
