/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders that show the loader a single driver, and environments that point to them. Every loader accepts a
 * folder; only the helpers see it. */
#ifndef CLEAVE_PROBE_NEST_H
#define CLEAVE_PROBE_NEST_H

#include <cleave/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct clv_nest {
    char base[PATH_MAX - 64]; /* "": not open */
    size_t folders;
} clv_nest;

clv_status clv_nest_open(clv_nest *nest); /* CLV_E_IO */
void clv_nest_close(clv_nest *nest);      /* removes everything; harmless if not open */

/* Makes an environment for a helper: this process's own, except that the loader looks only at `library`; if that is
 * NULL, it looks where it does here. With `fresh` the drivers' kernel caches go into the folder as well, so that every
 * kernel is really built. Free with clv_nest_free_environment. CLV_E_IO, CLV_E_MEMORY. */
clv_status clv_nest_environment(clv_nest *nest, const char *library, bool fresh,
                                char ***environment);
void clv_nest_free_environment(char **environment); /* accepts NULL */

#endif
