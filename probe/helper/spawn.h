/* SPDX-License-Identifier: Apache-2.0 */
/* Helper processes that may crash, hang or babble: started together, watched, ended in time. */
#ifndef CLEAVE_PROBE_SPAWN_H
#define CLEAVE_PROBE_SPAWN_H

#include "base/text.h"

#include <cleave/probe.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    CLV_CHILD_RESULT_FD = 3,           /* where a child writes its answer */
    CLV_CHILD_RESULT_LIMIT = 4 << 20,  /* bytes of it */
    CLV_CHILD_OUTPUT_LIMIT = 64 << 10, /* bytes kept of stdout, and of stderr */
};

typedef enum clv_child_end {
    CLV_CHILD_NOT_STARTED, /* `code` is the errno */
    CLV_CHILD_EXITED,      /* `code` is the exit code */
    CLV_CHILD_SIGNALED,    /* `code` is the signal */
    CLV_CHILD_TIMEOUT,     /* and it was killed */
    CLV_CHILD_UNKILLABLE,  /* SIGKILL did not end it either */
} clv_child_end;

typedef struct clv_child {
    const char *const *argv; /* [0] is the program's path; ends with NULL */
    char *const *envp;
    clv_child_end end;
    int code;
    double duration_s;
    /* When its time was over it had waited for a core for more than half of it, which says little of the driver. */
    bool starved;
    clv_text result, output[2]; /* owned by the caller: clv_child_clear */
    bool result_too_long;
} clv_child;

typedef struct clv_patience {
    double timeout_s;
    clv_probe_progress *progress; /* NULL: none */
    void *user;
    const char *doing;
    void (*meanwhile)(void *); /* once, when all are started; NULL: nothing to do */
    void *meanwhile_with;
} clv_patience;

/* Starts all of them at once, stdin closed, each in a process group of its own, and returns when
 * all have ended or the time and 0.8 s more have passed. Touches no signal handler. False when the
 * progress function gave up: the children are gone then as well. */
bool clv_children_run(clv_child *const *children, size_t count, const clv_patience *patience);
void clv_child_clear(clv_child *child);

#endif
