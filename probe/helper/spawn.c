/* SPDX-License-Identifier: Apache-2.0 */
/* Runs helper processes that may crash, hang or print endlessly: starts them together, watches them, and ends them at
 * their timeout. */
#define _GNU_SOURCE
#include "probe/helper/spawn.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESULT, OUT, ERR, STREAMS };
enum {
    HIGH_FD = 10,     /* above every descriptor that the child gets */
    MOST_GROUPS = 128 /* most children that clv_children_kill knows */
};

static const double grace_s = 0.3; /* between SIGTERM and SIGKILL */
/* between SIGKILL and giving up; the sum with grace_s must stay well below 1 s */
static const double mourn_s = 0.3;
static const double tick_s = 0.02;  /* interval at which a child's end is checked without a pidfd */
static const double report_s = 0.1; /* between two calls of the progress function */
/* if `meanwhile` takes longer, this process must have been stopped */
static const double meanwhile_s = 1;

typedef struct watch {
    clv_child *child;
    pid_t pid;                     /* 0: the child has ended */
    int exit_fd, streams[STREAMS]; /* -1: closed */
    double started;
    bool timed_out;
} watch;

/* The process groups of all children that run. A signal handler reads them while other threads write them. */
static atomic_int groups[MOST_GROUPS];

static void note_group(int from, int to)
{
    for (size_t i = 0; i < CLV_LEN(groups); ++i) {
        int found = from;
        if (atomic_compare_exchange_strong(&groups[i], &found, to)) return;
    }
}

static bool open_pipe(int ends[2])
{
    int low[2];
    ends[0] = ends[1] = -1;
    if (pipe2(low, O_CLOEXEC)) return false;
    for (int i = 0; i < 2; ++i) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, HIGH_FD);
        close(low[i]);
    }
    if (ends[0] < 0 || ends[1] < 0) return false;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int spawn(const clv_child *child, const int write_ends[STREAMS], pid_t *pid)
{
    static const int numbers[STREAMS] = {
        [RESULT] = CLV_CHILD_RESULT_FD, [OUT] = STDOUT_FILENO, [ERR] = STDERR_FILENO
    };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    if (posix_spawn_file_actions_init(&files)) return ENOMEM;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE), sigaddset(&defaults, SIGTERM), sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGCHLD), sigaddset(&defaults, SIGXFSZ);
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int i = 0; !error && i < STREAMS; ++i)
        error = posix_spawn_file_actions_adddup2(&files, write_ends[i], numbers[i]);
    if (!error) error = posix_spawnattr_setpgroup(&attributes, 0);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &defaults);
    if (!error)
        error = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawn(pid, child->argv[0], &files, &attributes,
                            (char *const *)(uintptr_t)child->argv, child->envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static void start(watch *w)
{
    int write_ends[STREAMS] = { -1, -1, -1 };
    int error = 0;
    w->started = clv_now();
    for (int i = 0; i < STREAMS && !error; ++i) {
        int ends[2];
        if (!open_pipe(ends)) error = errno ? errno : EMFILE;
        w->streams[i] = ends[0];
        write_ends[i] = ends[1];
    }
    if (!error) error = spawn(w->child, write_ends, &w->pid);
    for (int i = 0; i < STREAMS; ++i)
        close_fd(&write_ends[i]);
    if (error) {
        w->pid = 0;
        w->child->end = CLV_CHILD_NOT_STARTED;
        w->child->code = error;
        for (int i = 0; i < STREAMS; ++i)
            close_fd(&w->streams[i]);
        return;
    }
    note_group(0, w->pid);
#ifdef SYS_pidfd_open
    /* -1 on old kernels, where the end is checked every tick_s */
    w->exit_fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    if (w->exit_fd >= 0) (void)fcntl(w->exit_fd, F_SETFD, FD_CLOEXEC);
#endif
}

/* Reads all available bytes and stores those that fit; returns false if the other end is closed. */
static bool drain(clv_child *child, int stream, int fd)
{
    char bytes[16384];
    clv_text *kept = stream == RESULT ? &child->result : &child->output[stream - OUT];
    const size_t limit =
        stream == RESULT ? (size_t)CLV_CHILD_RESULT_LIMIT : (size_t)CLV_CHILD_OUTPUT_LIMIT;
    /* limits the rounds, because endless output must not delay the clock */
    for (int rounds = 0; rounds < 64; ++rounds) {
        const ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        if (got == 0) return false;
        const size_t room = limit - CLV_MIN(kept->length, limit);
        if (room) clv_text_bytes(kept, bytes, CLV_MIN((size_t)got, room));
        if (stream == RESULT && (size_t)got > room) child->result_too_long = true;
    }
    return true;
}

static void finish(watch *w, clv_child_end end, int code)
{
    w->child->end = w->timed_out && end != CLV_CHILD_UNKILLABLE ? CLV_CHILD_TIMEOUT : end;
    w->child->code = code;
    w->child->duration_s = clv_now() - w->started;
    for (int i = 0; i < STREAMS; ++i) {
        if (w->streams[i] >= 0) drain(w->child, i, w->streams[i]);
        close_fd(&w->streams[i]);
    }
    close_fd(&w->exit_fd);
    w->pid = 0;
}

bool clv_children_kill(void)
{
    bool any = false;
    for (size_t i = 0; i < CLV_LEN(groups); ++i) {
        const int group = atomic_load(&groups[i]);
        if (group > 0 && kill(-group, SIGKILL) == 0) any = true;
    }
    return any;
}

static void reap(watch *w)
{
    siginfo_t info = { 0 };
    int status;
    if (waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid)
        return;
    /* ends the driver's remaining processes in the group; the process has not been reaped, so the id is still ours */
    kill(-w->pid, SIGKILL);
    note_group(w->pid, 0);
    /* the application ignores SIGCHLD, so the exit code is lost */
    if (waitpid(w->pid, &status, 0) != w->pid)
        finish(w, CLV_CHILD_EXITED, 0);
    else if (WIFSIGNALED(status))
        finish(w, CLV_CHILD_SIGNALED, WTERMSIG(status));
    else
        finish(w, CLV_CHILD_EXITED, WEXITSTATUS(status));
}

static void wait_for_news(watch *watches, size_t count, struct pollfd *polls, double seconds)
{
    nfds_t used = 0;
    bool all_have_fd = true;
    for (size_t i = 0; i < count; ++i) {
        if (!watches[i].pid) continue;
        for (int s = 0; s < STREAMS; ++s)
            if (watches[i].streams[s] >= 0)
                polls[used++] = (struct pollfd){ .fd = watches[i].streams[s], .events = POLLIN };
        if (watches[i].exit_fd >= 0)
            polls[used++] = (struct pollfd){ .fd = watches[i].exit_fd, .events = POLLIN };
        else
            all_have_fd = false;
    }
    if (!all_have_fd) seconds = CLV_MIN(seconds, tick_s);
    (void)poll(polls, used, (int)(seconds * 1000) + 1);
}

static bool alive(const watch *watches, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (watches[i].pid) return true;
    return false;
}

static void look_at_all(watch *watches, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        watch *w = &watches[i];
        for (int s = 0; w->pid && s < STREAMS; ++s)
            if (w->streams[s] >= 0 && !drain(w->child, s, w->streams[s])) close_fd(&w->streams[s]);
        if (w->pid) reap(w);
    }
}

static void signal_all(watch *watches, size_t count, int signal)
{
    for (size_t i = 0; i < count; ++i) {
        if (!watches[i].pid) continue;
        watches[i].timed_out = true;
        /* the descriptor of an unkillable child would stay readable */
        close_fd(&watches[i].exit_fd);
        kill(-watches[i].pid, signal);
    }
}

/* Returns whether the process is running or ready to run: in /proc/PID/stat, the state letter after the name in
 * brackets is R. */
static bool wants_to_run(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file && !fgets(text, sizeof text, file)) text[0] = '\0';
    if (file) fclose(file);
    const char *bracket = strrchr(text, ')');
    return bracket && strncmp(bracket, ") R", 3) == 0;
}

/* Marks the children that could not run for more than half of their time because other processes occupied the cores.
 * The kernel counts how long the main thread ran and how long it waited for a core, excluding a wait in progress. If
 * the kernel does not count (zeros for a thread that has run) or /proc is hidden, no child is marked. */
static void note_starved(const watch *watches, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        char path[64];
        unsigned long long ran = 0, waited = 0; /* in nanoseconds */
        const watch *w = &watches[i];
        if (!w->pid) continue;
        snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)w->pid);
        FILE *file = fopen(path, "re");
        const bool told = file && fscanf(file, "%llu %llu", &ran, &waited) == 2 && ran;
        if (file) fclose(file);
        const double half = 0.5 * (clv_now() - w->started);
        w->child->starved = told && ((double)waited * 1e-9 > half ||
                                     ((double)ran * 1e-9 < half && wants_to_run(w->pid)));
    }
}

/* Watches the children until all have ended or the deadline has passed. Returns false if the progress function
 * cancelled. */
static bool run_until(watch *watches, size_t count, struct pollfd *polls, clv_deadline deadline,
                      const clv_patience *patience)
{
    clv_probe_progress *progress = patience ? patience->progress : NULL;
    double reported = clv_now();
    while (alive(watches, count)) {
        const double wait = clv_deadline_wait(&deadline, clv_now());
        wait_for_news(watches, count, polls, CLV_MAX(wait, 0));
        look_at_all(watches, count);
        if (wait <= 0) break;
        const double now = clv_now();
        if (!progress || now - reported < report_s) continue;
        reported = now;
        if (progress(patience->doing, patience->user)) return false;
    }
    return true;
}

bool clv_children_run(clv_child *const *children, size_t count, const clv_patience *patience)
{
    watch *watches = clv_zalloc(count, sizeof *watches);
    struct pollfd *polls = clv_zalloc(count * (STREAMS + 1), sizeof *polls);
    bool going_on = true;
    for (size_t i = 0; i < count; ++i) {
        children[i]->end = CLV_CHILD_NOT_STARTED;
        children[i]->code = ENOMEM;
        children[i]->starved = false;
    }
    if (!watches || !polls) goto cleanup;

    for (size_t i = 0; i < count; ++i) {
        watches[i] = (watch){ .child = children[i], .exit_fd = -1, .streams = { -1, -1, -1 } };
        start(&watches[i]);
    }
    clv_deadline deadline = clv_deadline_after(clv_now(), patience->timeout_s);
    deadline.planned = clv_now() + meanwhile_s;
    if (patience->meanwhile) patience->meanwhile(patience->meanwhile_with);
    going_on = run_until(watches, count, polls, deadline, patience);
    note_starved(watches, count);
    signal_all(watches, count, SIGTERM);
    if (going_on) run_until(watches, count, polls, clv_deadline_after(clv_now(), grace_s), NULL);
    signal_all(watches, count, SIGKILL);
    run_until(watches, count, polls, clv_deadline_after(clv_now(), mourn_s), NULL);
    for (size_t i = 0; i < count; ++i)
        if (watches[i].pid) {
            note_group(watches[i].pid, 0);
            finish(&watches[i], CLV_CHILD_UNKILLABLE, SIGKILL);
        }
cleanup:
    clv_free(watches), clv_free(polls);
    return going_on;
}

void clv_child_clear(clv_child *child)
{
    clv_text_clear(&child->result);
    clv_text_clear(&child->output[0]), clv_text_clear(&child->output[1]);
}
