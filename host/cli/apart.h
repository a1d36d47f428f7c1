/* SPDX-License-Identifier: Apache-2.0 */
/* A part of the program in a process of its own: a driver that crashes or hangs takes that part
 * along and no more. Its results come as lines. */
#ifndef CLEAVE_HOST_CLI_APART_H
#define CLEAVE_HOST_CLI_APART_H

#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_apart {
    /* In the new process; each line it writes to `out` arrives at once. Returns the exit code.
     * What it prints to stdout goes to stderr: stdout belongs to the results. */
    int (*body)(FILE *out, void *user);
    void (*line)(const char *line, void *user); /* in this process, for every line */
    void *user;                                 /* of both */
    double patience_s;                          /* longest silence; 0: for ever */
} cli_apart;

/* To be called before this process has loaded a driver or started a thread: the new one begins as
 * its copy. Returns when it has ended. CLV_OK (exit code 0); CLV_E_DEVICE (another exit code, a
 * signal, silence: the message says which); CLV_E_CANCELLED (Ctrl-C); CLV_E_IO, CLV_E_MEMORY. */
clv_status cli_apart_run(const cli_apart *apart);

#endif
