/* SPDX-License-Identifier: Apache-2.0 */
/* Handles signals that end the command: in good order if possible, soon in any case, and without leaving temporary
 * files. */
#define _GNU_SOURCE
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/temporary.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
/* Signals that end the command as if they were not caught, except that temporary files are removed. */
static const int swift[] = { SIGQUIT,   SIGPIPE, SIGXCPU, SIGUSR1, SIGUSR2,
                             SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT };
static const struct itimerval patience = { .it_value = { .tv_sec = 1, .tv_usec = 200000 } };

static volatile sig_atomic_t catching, interrupts, saving;

/* Removes temporary files, then ends the process as the signal's default action would. */
static void end_by(int number)
{
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigset_t only;
    clv_temporaries_remove();
    sigaction(number, &plain, NULL);
    sigemptyset(&only), sigaddset(&only, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void on_signal(int number)
{
    const int before = errno;
    if (!catching || interrupts) {
        end_by(number);
    } else {
        interrupts = 1;
        setitimer(ITIMER_REAL, &patience, NULL); /* on Linux this is only a system call */
    }
    errno = before;
}

/* Ends the process: the command was interrupted but has not ended in time. */
static void on_timer(int number)
{
    static const char text[] =
        "cleave: ended without waiting for a step that did not return within 1.2 s\n";
    (void)number;
    if (saving) return;
    clv_temporaries_remove();
    const ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)told;
    _exit(CLI_INTERRUPTED);
}

void cli_watch_signals(void)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, was;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < CLV_LEN(caught); ++i)
        sigaddset(&act.sa_mask, caught[i]);
    for (size_t i = 0; i < CLV_LEN(caught); ++i)
        if (sigaction(caught[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            sigaction(caught[i], &act, NULL);
    act.sa_handler = end_by;
    for (size_t i = 0; i < CLV_LEN(swift); ++i)
        if (sigaction(swift[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            sigaction(swift[i], &act, NULL);
    act.sa_handler = on_timer;
    sigaction(SIGALRM, &act, NULL);
    signal(SIGXFSZ, SIG_IGN); /* the writer gets EFBIG instead */
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, children would have no exit code */
}

void cli_catch_interrupts(void)
{
    static const struct itimerval never;
    setitimer(ITIMER_REAL, &never, NULL);
    interrupts = 0;
    catching = 1;
}

void cli_release_interrupts(void)
{
    cli_catch_interrupts();
    catching = 0;
}

bool cli_interrupted(void)
{
    return interrupts != 0;
}

void cli_saving(bool begins)
{
    saving = begins;
    if (!begins && interrupts) setitimer(ITIMER_REAL, &patience, NULL);
}

void cli_leave_signals(void)
{
    struct sigaction plain = { .sa_handler = SIG_DFL }, was;
    for (size_t i = 0; i < CLV_LEN(caught); ++i)
        if (sigaction(caught[i], NULL, &was) == 0 && was.sa_handler == on_signal)
            sigaction(caught[i], &plain, NULL);
    for (size_t i = 0; i < CLV_LEN(swift); ++i)
        if (sigaction(swift[i], NULL, &was) == 0 && was.sa_handler == end_by)
            sigaction(swift[i], &plain, NULL);
    sigaction(SIGXFSZ, &plain, NULL);
}
