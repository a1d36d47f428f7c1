/* SPDX-License-Identifier: Apache-2.0 */
/* Makes private folders in which the loader finds a single driver, and environments that point to these folders. Every
 * loader accepts a folder; only the helpers see it. */
#ifndef CLEAVE_PROBE_NEST_H
#define CLEAVE_PROBE_NEST_H

#include <cleave/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct clv_nest {
    char base[PATH_MAX - 64]; /* path of the folders; "": not open */
    size_t folders;
} clv_nest;

clv_status clv_nest_open(clv_nest *nest); /* may return CLV_E_IO */
void clv_nest_close(clv_nest *nest); /* removes all folders; does nothing if the nest is not open */

/* Makes an environment for a helper: a copy of this process's environment in which the loader finds only `library`. If
 * `library` is NULL, the loader searches where it does in this process. With `fresh`, the drivers' kernel caches go
 * into the folder as well, so that every kernel is built anew. Free the environment with clv_nest_free_environment.
 * CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_nest_environment(clv_nest *nest, const char *library, bool fresh,
                                char ***environment);
void clv_nest_free_environment(char **environment); /* accepts NULL */

#endif
