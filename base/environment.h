/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables CLEAVE_...: reads them, and has one error for a value that cannot be used. */
#ifndef CLEAVE_BASE_ENVIRONMENT_H
#define CLEAVE_BASE_ENVIRONMENT_H

#include <cleave/status.h>

#include <stdbool.h>

/* The values that variables with a fixed set of values may have. */
#define CLV_MODES "auto,cpu,gpu,hybrid,reference"
#define CLV_SCHEDULES "adaptive,static,dynamic,hguided"
#define CLV_LOG_LEVELS "none,error,warn,info,debug"

/* Returns the value of a variable. Returns NULL when it is unset or empty, and always in a program that the
 * system runs with rights which its caller lacks (set-uid, set-gid, file capabilities), so that the caller's
 * environment has no effect there. */
const char *clv_environment(const char *name);

/* Finds the value in the comma list `values`: *index is its position, or -1 when the variable is not set.
 * Any other value gives CLV_E_ARGUMENT. */
clv_status clv_environment_choice(const char *name, const char *values, int *index);

/* Tells whether a variable that may be 0 or 1 is 0. */
bool clv_environment_is_off(const char *name);

/* Fails with the one form of such an error, which quotes the value and says what is `expected`. */
clv_status clv_environment_refuse(const char *name, const char *expected);

/* Checks the variables that have no option: CLEAVE_BIND, CLEAVE_CACHE, CLEAVE_CACHE_DIR, CLEAVE_CL_DIR,
 * CLEAVE_LOG and CLEAVE_TUNE. CLV_E_ARGUMENT names the first one that cannot be used. */
clv_status clv_environment_check(void);

#endif
