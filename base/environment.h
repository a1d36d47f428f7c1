/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables CLEAVE_...: reading them, and one error for a value that cannot be used. */
#ifndef CLEAVE_BASE_ENVIRONMENT_H
#define CLEAVE_BASE_ENVIRONMENT_H

#include <cleave/status.h>

#include <stdbool.h>

/* What the variables with a fixed set of values may hold. */
#define CLV_MODES "auto,cpu,gpu,hybrid,reference"
#define CLV_SCHEDULES "adaptive,static,dynamic,hguided"
#define CLV_LOG_LEVELS "none,error,warn,info,debug"

/* The value; NULL when the variable is not set or empty, and in a program that the system runs with rights
 * which its caller does not have (set-uid, set-gid, file capabilities): there the caller's environment
 * chooses nothing. */
const char *clv_environment(const char *name);

/* *index: the place of the value in the comma list `values`; -1 when the variable is not set.
 * CLV_E_ARGUMENT for any other value. */
clv_status clv_environment_choice(const char *name, const char *values, int *index);

/* Whether a variable that may be 0 or 1 switches something off. */
bool clv_environment_is_off(const char *name);

/* "CLEAVE_X is "...": `expected`", the one form of such an error. */
clv_status clv_environment_refuse(const char *name, const char *expected);

/* Checks the variables that no option stands for: CLEAVE_BIND, CLEAVE_CACHE, CLEAVE_CACHE_DIR,
 * CLEAVE_CL_DIR, CLEAVE_LOG and CLEAVE_TUNE. CLV_E_ARGUMENT names the first that cannot be used. */
clv_status clv_environment_check(void);

#endif
