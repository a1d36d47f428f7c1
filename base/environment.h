/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment variables CLEAVE_...; if a value cannot be used, the error always has the same form. */
#ifndef CLEAVE_BASE_ENVIRONMENT_H
#define CLEAVE_BASE_ENVIRONMENT_H

#include <cleave/status.h>

#include <stdbool.h>

/* The values that variables with a fixed set of values may have. */
#define CLV_MODES "auto,cpu,gpu,hybrid,reference"
#define CLV_SCHEDULES "adaptive,static,dynamic,hguided"
#define CLV_LOG_LEVELS "none,error,warn,info,debug"

/* Returns the value of a variable, or NULL when it is unset or empty. Always returns NULL in a program that the
 * system runs with rights which its caller lacks (set-uid, set-gid, file capabilities), so that the caller's
 * environment has no effect on such a program. */
const char *clv_environment(const char *name);

/* Looks up the variable's value in the comma-separated list `values`. *index is the value's position, or -1 when the
 * variable is not set. Returns CLV_E_ARGUMENT for a value that is not in the list. */
clv_status clv_environment_choice(const char *name, const char *values, int *index);

/* Returns whether a variable that may be 0 or 1 is 0. */
bool clv_environment_is_off(const char *name);

/* Fails with an error that quotes the variable's value and says what is `expected`. */
clv_status clv_environment_refuse(const char *name, const char *expected);

/* Checks the variables that have no option: CLEAVE_BIND, CLEAVE_CACHE, CLEAVE_CACHE_DIR, CLEAVE_CL_DIR, CLEAVE_LOG
 * and CLEAVE_TUNE. Returns CLV_E_ARGUMENT and names the first variable whose value cannot be used. */
clv_status clv_environment_check(void);

#endif
