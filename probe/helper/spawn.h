/* SPDX-License-Identifier: Apache-2.0 */
/* Runs helper processes that may crash, hang or print endlessly: starts them together, watches them, and ends them at
 * their timeout. */
#ifndef CLEAVE_PROBE_SPAWN_H
#define CLEAVE_PROBE_SPAWN_H

#include "base/text.h"

#include <cleave/probe.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    CLV_CHILD_RESULT_FD = 3,           /* descriptor to which the child writes its answer */
    CLV_CHILD_RESULT_LIMIT = 4 << 20,  /* most bytes of the answer */
    CLV_CHILD_OUTPUT_LIMIT = 64 << 10, /* bytes stored of stdout, and of stderr */
};

typedef enum clv_child_end {
    CLV_CHILD_NOT_STARTED, /* `code` is the errno */
    CLV_CHILD_EXITED,      /* `code` is the exit code */
    CLV_CHILD_SIGNALED,    /* `code` is the signal */
    CLV_CHILD_TIMEOUT,     /* the child was killed after its timeout */
    CLV_CHILD_UNKILLABLE,  /* even SIGKILL did not end the child */
} clv_child_end;

typedef struct clv_child {
    const char *const *argv; /* [0] is the program's path; ends with NULL */
    char *const *envp;
    clv_child_end end;
    int code;
    double duration_s;
    /* Other processes kept the child waiting for a core for more than half of its time, so its timeout says little
     * about the driver. */
    bool starved;
    clv_text result, output[2]; /* owned by the caller, who frees them with clv_child_clear */
    bool result_too_long;
} clv_child;

typedef struct clv_patience {
    double timeout_s;
    clv_probe_progress *progress; /* NULL: no progress is reported */
    void *user;
    const char *doing;
    void (*meanwhile)(void *); /* called once after all children have started; may be NULL */
    void *meanwhile_with;
} clv_patience;

/* Starts all children at once, with stdin closed and each in its own process group. Returns when all have ended, or 0.8
 * s after the timeout at the latest. Does not touch signal handlers. Returns false if the progress function cancelled;
 * the children have been ended in this case, too. */
bool clv_children_run(clv_child *const *children, size_t count, const clv_patience *patience);
void clv_child_clear(clv_child *child);

/* Kills all children that run now, with the processes that they have started. Returns whether there were any. For a
 * signal handler, before the process ends (async-signal-safe). */
bool clv_children_kill(void);

#endif
