/* SPDX-License-Identifier: Apache-2.0 */
/* Runs helper processes that may crash, hang or print without end: starts them together, watches them, and ends them in
 * time. */
#ifndef CLEAVE_PROBE_SPAWN_H
#define CLEAVE_PROBE_SPAWN_H

#include "base/text.h"

#include <cleave/probe.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    CLV_CHILD_RESULT_FD = 3,           /* the child writes its answer here */
    CLV_CHILD_RESULT_LIMIT = 4 << 20,  /* most bytes of the answer */
    CLV_CHILD_OUTPUT_LIMIT = 64 << 10, /* bytes kept of stdout, and of stderr */
};

typedef enum clv_child_end {
    CLV_CHILD_NOT_STARTED, /* `code` is the errno */
    CLV_CHILD_EXITED,      /* `code` is the exit code */
    CLV_CHILD_SIGNALED,    /* `code` is the signal */
    CLV_CHILD_TIMEOUT,     /* it was killed */
    CLV_CHILD_UNKILLABLE,  /* SIGKILL did not end it either */
} clv_child_end;

typedef struct clv_child {
    const char *const *argv; /* [0] is the program's path; ends with NULL */
    char *const *envp;
    clv_child_end end;
    int code;
    double duration_s;
    /* Another process kept it waiting for a core for more than half of its time, so its timeout says little about the
     * driver. */
    bool starved;
    clv_text result, output[2]; /* owned by the caller: clv_child_clear */
    bool result_too_long;
} clv_child;

typedef struct clv_patience {
    double timeout_s;
    clv_probe_progress *progress; /* NULL: none */
    void *user;
    const char *doing;
    void (*meanwhile)(void *); /* called once when all are started; may be NULL */
    void *meanwhile_with;
} clv_patience;

/* Starts all children at once, with stdin closed and each in its own process group, and returns when all have ended or
 * the time plus 0.8 s has passed. Touches no signal handler. Returns false if the progress function gave up; the
 * children have been ended then, too. */
bool clv_children_run(clv_child *const *children, size_t count, const clv_patience *patience);
void clv_child_clear(clv_child *child);

#endif
