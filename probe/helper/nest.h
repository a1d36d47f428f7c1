/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders that show a loader one driver only, and the environments that point there. A
 * folder is the one form that every loader takes; nobody but the helpers sees it. */
#ifndef CLEAVE_PROBE_NEST_H
#define CLEAVE_PROBE_NEST_H

#include <cleave/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct clv_nest {
    char base[PATH_MAX - 64]; /* "" = not open */
    size_t folders;
} clv_nest;

clv_status clv_nest_open(clv_nest *nest); /* CLV_E_IO */
void clv_nest_close(clv_nest *nest);      /* removes everything; harmless when not open */

/* An environment for a helper: this process's own, with the loader looking only at `library`, or as
 * it does here when that is NULL. `fresh` puts the drivers' kernel caches into the folder as well:
 * whatever is built there is really built. Free with clv_nest_free_environment. CLV_E_IO,
 * CLV_E_MEMORY. */
clv_status clv_nest_environment(clv_nest *nest, const char *library, bool fresh,
                                char ***environment);
void clv_nest_free_environment(char **environment); /* accepts NULL */

#endif
