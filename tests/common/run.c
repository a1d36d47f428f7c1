/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program and keeps its output and exit code. */
#define _GNU_SOURCE
#include "run.h"

#include "test.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_LIMIT = 64 << 20, PATH_ROOM = 4096 };

/* Seconds between two checks of whether the program has ended, and the most that one such interval adds to its run
 * time, so that time in which the machine was suspended does not count. */
static const double look_s = 2e-3, awake_s = 0.1;

static void change_environment(const char *const *changes)
{
    for (; changes && *changes; ++changes) {
        char *copy = strdup(*changes);
        char *equals = copy ? strchr(copy, '=') : NULL;
        if (equals) {
            *equals = '\0';
            setenv(copy, equals + 1, 1);
        } else if (copy) {
            unsetenv(copy);
        }
        free(copy);
    }
}

static void redirect(const char *path, int number)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, number) < 0) _exit(126);
    close(fd);
}

static char *read_all(const char *path)
{
    char *text;
    size_t length;
    if (clv_file_read(path, OUTPUT_LIMIT, &text, &length)) fail_msg("%s", clv_error_message());
    unlink(path);
    return text;
}

test_outcome test_run(const char *const *argv, const char *const *changes)
{
    char out[PATH_ROOM], err[PATH_ROOM];
    int status = 0;
    snprintf(out, sizeof out, "%s/stdout", test_temp_dir());
    snprintf(err, sizeof err, "%s/stderr", test_temp_dir());
    double seconds = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        change_environment(changes);
        redirect("/dev/null", STDIN_FILENO);
        redirect(out, STDOUT_FILENO);
        redirect(err, STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    for (double then = clv_now(); pid > 0;) {
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        const double now = clv_now();
        seconds += fmin(now - then, awake_s);
        then = now;
        if (ended == pid || (ended < 0 && errno != EINTR)) break;
        clv_sleep(look_s);
    }
    return (test_outcome){
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .seconds = seconds,
        .out = read_all(out),
        .err = read_all(err),
    };
}

void test_outcome_clear(test_outcome *outcome)
{
    free(outcome->out), free(outcome->err);
    *outcome = (test_outcome){ 0 };
}

const char *test_command(void)
{
    const char *command = getenv("CLEAVE_COMMAND");
    if (!command) test_skip_all("CLEAVE_COMMAND does not name the command cleave");
    return command;
}

const char *test_write(const char *text, const char *format, ...)
{
    static char path[PATH_ROOM];
    char name[PATH_ROOM / 2], folder[PATH_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s", test_temp_dir(), name);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    EXPECT_OK(clv_dir_make(folder));
    EXPECT_OK(clv_file_write(path, text, strlen(text)));
    return path;
}
