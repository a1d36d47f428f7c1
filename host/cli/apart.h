/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a part of the program in its own process, so that a driver that crashes or hangs ends only that part. The part
 * sends its results as lines. */
#ifndef CLEAVE_HOST_CLI_APART_H
#define CLEAVE_HOST_CLI_APART_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_apart {
    /* Runs in the new process; each line it writes to `out` is delivered at once. Returns the exit code. What it prints
     * to stdout goes to stderr, because stdout is reserved for the results. */
    int (*body)(FILE *out, void *user);
    void (*line)(const char *line, void *user); /* runs in this process, once per line */
    void *user;                                 /* passed to `body` and `line` */
    double patience_s; /* most seconds that the process may be silent; 0: no limit */
    double until;      /* the time, by clv_now, at which it has to end; 0 or infinite: no limit */
} cli_apart;

/* Runs the part and returns when its process has ended. Call it before this process has loaded a driver or started a
 * thread, because the new process starts as its copy. Returns CLV_OK if the exit code is 0. Returns CLV_E_DEVICE
 * after another exit code, a signal, too long a silence or too much time (the message says which), CLV_E_CANCELLED
 * after Ctrl-C, or CLV_E_IO or CLV_E_MEMORY. */
clv_status cli_apart_run(const cli_apart *apart);

#endif
