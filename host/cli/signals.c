/* SPDX-License-Identifier: Apache-2.0 */
/* Handles signals that end the command: in good order if possible, soon in any case, and without leaving temporary
 * files.
 *
 * A thread waits for these signals, and all other threads block them. LLVM, the compiler inside several drivers,
 * replaces the handlers of most of them while it compiles, also those of signals that the parent ignores: a signal then
 * removed the files that were being compiled, or was lost. A blocked signal never reaches such a handler. */
#define _GNU_SOURCE
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/temporary.h"
#include "base/thread.h"
#include "probe/helper/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
/* Signals that end the command as if they were not caught, except that temporary files are removed. */
static const int swift[] = { SIGQUIT,   SIGPIPE, SIGXCPU, SIGUSR1, SIGUSR2,
                             SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT };
static const struct itimerval patience = { .it_value = { .tv_sec = 1, .tv_usec = 200000 } };

static atomic_int catching, interrupts, saving, ending;
static pthread_t main_thread;
static sigset_t
    held; /* blocked in all threads: those that the thread waits for, and those that the parent ignores */

/* Ends the helpers of the probe first, because their temporary folders are among the temporaries. */
static void remove_temporaries(void)
{
    if (clv_children_kill())
        clv_sleep(0.02); /* a killed process may still complete a system call */
    clv_temporaries_remove();
}

/* Removes temporary files, then ends the process as the signal's default action would. The main thread stands still
 * meanwhile: it would take a helper that is killed here for a driver that has crashed, and end with another exit
 * code. */
static void end_by(int number)
{
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigset_t only;
    ending = 1;
    if (!pthread_equal(pthread_self(), main_thread)) pthread_kill(main_thread, SIGRTMIN);
    remove_temporaries();
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
    remove_temporaries();
    const ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)told;
    _exit(CLI_INTERRUPTED);
}

/* Interrupts the main thread's system call, so that it looks at cli_interrupted; or stops the main thread. */
static void poke(int number)
{
    (void)number;
    while (ending)
        pause();
}

/* The thread that waits for signals. The main thread may wait in a system call, which a signal must interrupt. */
static void *wait_for_signals(void *waited)
{
    int number;
    while (sigwait(waited, &number) == 0) {
        bool swiftly = false;
        for (size_t i = 0; i < CLV_LEN(swift); ++i)
            swiftly = swiftly || swift[i] == number;
        if (swiftly)
            end_by(number);
        else
            on_signal(number);
        pthread_kill(main_thread, SIGRTMIN);
    }
    return NULL;
}

/* Handles a signal if its action is the default, and blocks it if it is ignored. */
static void take(int number, const struct sigaction *act, sigset_t *waited)
{
    struct sigaction was;
    if (sigaction(number, NULL, &was)) return;
    if (was.sa_handler == SIG_DFL) {
        sigaction(number, act, NULL);
        if (number != SIGPIPE) sigaddset(waited, number); /* it belongs to the thread that writes */
    }
    if (number != SIGPIPE && (was.sa_handler == SIG_DFL || was.sa_handler == SIG_IGN))
        sigaddset(&held, number);
}

void cli_watch_signals(void)
{
    static sigset_t waited;
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    const struct sigaction poked = { .sa_handler = poke, .sa_flags = SA_RESTART };
    clv_thread thread;
    sigemptyset(&act.sa_mask), sigemptyset(&waited), sigemptyset(&held);
    for (size_t i = 0; i < CLV_LEN(caught); ++i)
        sigaddset(&act.sa_mask, caught[i]);
    for (size_t i = 0; i < CLV_LEN(caught); ++i)
        take(caught[i], &act, &waited);
    act.sa_handler = end_by;
    for (size_t i = 0; i < CLV_LEN(swift); ++i)
        take(swift[i], &act, &waited);
    act.sa_handler = on_timer;
    sigaction(SIGALRM, &act, NULL);
    sigaction(SIGRTMIN, &poked, NULL);
    signal(SIGXFSZ, SIG_IGN); /* the writer gets EFBIG instead */
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, children would have no exit code */
    main_thread = pthread_self();
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    /* without the thread, the handlers do the same */
    if (!clv_thread_start(&thread, "cleave-signals", wait_for_signals, &waited))
        pthread_sigmask(SIG_UNBLOCK, &held, NULL);
    else
        pthread_detach(thread);
}

void cli_catch_interrupts(void)
{
    catching = 1; /* a signal that was caught before still counts */
}

void cli_release_interrupts(void)
{
    static const struct itimerval never;
    setitimer(ITIMER_REAL, &never, NULL);
    interrupts = catching = 0;
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
    catching = interrupts = saving = 0;
    sigaction(SIGXFSZ, &plain, NULL);
    sigaction(SIGRTMIN, &plain, NULL);
    pthread_sigmask(SIG_UNBLOCK, &held, NULL);
}
