/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a part of the program in its own process. */
#include "host/cli/apart.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "host/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const double tidy_s = 0.3; /* for a child that was told to end to remove its temporaries */
static const double mercy_s = 5;

/* Runs the part in the child; never returns. It ends with _exit because a driver's exit handlers may hang after all
 * results are written. A child whose parent was killed has no reader left and would only keep the lock of the compiled
 * kernels. */
static void be_the_child(const cli_apart *apart, int fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CLI_FAILED);
    cli_leave_signals();
    cli_watch_signals(); /* the child removes its own temporaries */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    FILE *out = fdopen(fd, "w");
    if (!out) _exit(CLI_FAILED);
    setvbuf(out, NULL, _IOLBF, 0);
    const int code = apart->body(out, apart->user);
    fflush(stdout);
    _exit(fclose(out) ? CLI_FAILED : code);
}

/* Passes each complete line to apart->line and keeps an incomplete one for the next call. */
static void take_lines(const cli_apart *apart, clv_text *text)
{
    size_t from = 0;
    for (char *end;
         from < text->length && (end = memchr(text->data + from, '\n', text->length - from));) {
        *end = '\0';
        apart->line(text->data + from, apart->user);
        from = (size_t)(end - text->data) + 1;
    }
    if (!from) return;
    memmove(text->data, text->data + from, text->length - from + 1);
    text->length -= from;
}

/* Reads the child's lines until the pipe closes. */
static clv_status listen_to(const cli_apart *apart, int fd)
{
    clv_text text = { 0 };
    const double patience_s = apart->patience_s > 0 ? apart->patience_s : INFINITY;
    clv_deadline deadline = clv_deadline_after(clv_now(), patience_s);
    const double until = apart->until > 0 ? apart->until : INFINITY;
    clv_status status = CLV_OK;
    for (;;) {
        char bytes[4096];
        struct pollfd news = { .fd = fd, .events = POLLIN };
        const double wait = clv_deadline_wait(&deadline, clv_now());
        const int ready = poll(&news, 1, wait > 0 ? (int)(wait * 1000) + 1 : 0);
        if (cli_interrupted()) {
            status = clv_fail(CLV_E_CANCELLED, "interrupted");
            break;
        }
        if (clv_now() > until) {
            status = clv_fail(CLV_E_DEVICE, "its process was stopped at its time limit");
            break;
        }
        if (ready > 0) {
            const ssize_t got = read(fd, bytes, sizeof bytes);
            if (got == 0) break;
            if (got < 0) continue;
            deadline = clv_deadline_after(clv_now(), patience_s);
            clv_text_bytes(&text, bytes, (size_t)got);
            if (!text.failed) take_lines(apart, &text);
        } else if (wait <= 0) {
            status = clv_fail(CLV_E_DEVICE, "no answer for %.0f s", patience_s);
            break;
        }
    }
    if (text.failed && !status)
        status = clv_fail(CLV_E_MEMORY, "not enough memory for the results of a device");
    clv_text_clear(&text);
    return status;
}

/* Waits for the child to end. A process inside a driver may survive even SIGKILL; the function then gives up on it. */
static bool wait_for(pid_t pid, double seconds, int *state)
{
    clv_deadline deadline = clv_deadline_after(clv_now(), seconds);
    for (;;) {
        const bool up = clv_deadline_wait(&deadline, clv_now()) <= 0;
        const pid_t got = waitpid(pid, state, WNOHANG);
        if (got == pid) return true;
        if ((got < 0 && errno != EINTR) || up) return false;
        clv_sleep(0.002);
    }
}

static clv_status judge_end(pid_t pid)
{
    int state;
    if (!wait_for(pid, mercy_s, &state)) {
        kill(pid, SIGKILL);
        return clv_fail(CLV_E_DEVICE, "its process hung while it was ending");
    }
    if (WIFSIGNALED(state))
        return clv_fail(CLV_E_DEVICE, "crashed: signal %d (%s)", WTERMSIG(state),
                        strsignal(WTERMSIG(state)));
    if (WEXITSTATUS(state))
        return clv_fail(CLV_E_DEVICE, "its process ended early with exit code %d",
                        WEXITSTATUS(state));
    return CLV_OK;
}

clv_status cli_apart_run(const cli_apart *apart)
{
    int ends[2];
    if (pipe(ends))
        return clv_fail(CLV_E_IO, "cannot make a pipe to a child process: %s", strerror(errno));
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_the_child(apart, ends[1], parent);
    }
    close(ends[1]);
    clv_status status =
        pid < 0 ? clv_fail(CLV_E_IO, "cannot start a child process: %s", strerror(errno))
                : listen_to(apart, ends[0]);
    close(ends[0]);
    if (pid > 0 && status) {
        int state;
        kill(pid, SIGTERM);
        if (!wait_for(pid, tidy_s, &state)) {
            kill(pid, SIGKILL);
            (void)wait_for(pid, mercy_s, &state);
        }
    } else if (pid > 0) {
        status = judge_end(pid);
    }
    return status;
}
