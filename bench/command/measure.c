/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats measurements, and runs the whole command as its users do. */
#define _GNU_SOURCE /* wait4, nftw */
#include "bench/command/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "host/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const double enough_s = 1; /* seconds of repetitions that suffice for something quick */

size_t bench_turn_repeats(const bench_plan *plan)
{
    return (plan->repeats + plan->turns - 1) / plan->turns;
}

clv_status bench_repeat(const bench_plan *plan, bench_once *once, void *user, double *values,
                        size_t *count)
{
    const size_t repeats = bench_turn_repeats(plan), most = BENCH_MOST_SAMPLES / plan->turns;
    const double turns = (double)plan->turns;
    double spent = 0;
    *count = 0;
    while (*count < most && (*count < repeats || spent < enough_s / turns)) {
        if (*count && spent + spent / (double)*count > plan->figure_s / turns) break;
        if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
        CLV_TRY(once(user, &values[*count]));
        spent += values[(*count)++];
    }
    return CLV_OK;
}

bool bench_is_too_long(bench_run *run, size_t case_index)
{
    const bench_case *c = &run->bench->cases[case_index];
    const double expected = run->seconds_per_effort * c->workload->effort(c);
    const bench_plan *plan = &run->bench->plan;
    char note[120], took[24];
    if (expected <= plan->single_s) return false;
    snprintf(note, sizeof note, "left out: it would take about %s", bench_seconds(expected, took));
    bench_send_left_out(run, case_index, note, expected <= plan->patience_s);
    return true;
}

/* ---- folders ------------------------------------------------------------------------------------------ */

/* Returns the first case that has the same input; cases of one size share an input. */
static size_t first_alike(const bench *b, size_t case_index)
{
    const bench_case *c = &b->cases[case_index];
    size_t i = 0;
    while (b->cases[i].workload != c->workload ||
           memcmp(b->cases[i].size, c->size, sizeof c->size) != 0)
        ++i;
    return i;
}

const char *bench_case_folder(const bench *b, size_t case_index, char *out)
{
    snprintf(out, BENCH_PATH, "%.4000s/case%02zu", b->folder, first_alike(b, case_index));
    return out;
}

const char *bench_output_folder(const bench *b, size_t case_index, size_t party, char *out)
{
    snprintf(out, BENCH_PATH, "%.4000s/out%02zu-%02zu", b->folder, case_index, party);
    return out;
}

clv_status bench_prepare(bench *b)
{
    char folder[BENCH_PATH];
    for (size_t i = 0; i < b->case_count; ++i) {
        if (first_alike(b, i) != i || !b->cases[i].workload->prepare) continue;
        if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
        CLV_TRY(clv_dir_make(bench_case_folder(b, i, folder)));
        CLV_TRY(b->cases[i].workload->prepare(&b->cases[i], folder));
    }
    return CLV_OK;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

/* ---- the whole command ---------------------------------------------------------------------------------- */

typedef struct whole_run {
    const bench *b;
    size_t case_index;
    const char *argv[40];
    bool cold;
    uint64_t memory_bytes; /* largest of the runs so far */
} whole_run;

/* Empties every place where this library or a driver may cache compiled code. */
static void forget_all(const char *folder)
{
    static const char *const places[] = { "CLEAVE_CACHE_DIR",      "POCL_CACHE_DIR",
                                          "MESA_SHADER_CACHE_DIR", "CUDA_CACHE_PATH",
                                          "XDG_CACHE_HOME",        "NEO_CACHE_DIR" };
    char path[BENCH_PATH];
    for (size_t i = 0; i < CLV_LEN(places); ++i) {
        snprintf(path, sizeof path, "%.4000s/%s", folder, places[i]);
        if (clv_dir_make_private(path) == CLV_OK) setenv(places[i], path, 1);
    }
}

static void become(const whole_run *w, const char *errors, const char *cache, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* without its parent, nobody would wait for it */
    if (getppid() != parent) _exit(126);
    cli_leave_signals();
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC),
              log = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (nothing < 0 || log < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    unsetenv("CLEAVE_DEVICE"), unsetenv("CLEAVE_MODE"), unsetenv("CLEAVE_TRACE");
    if (w->cold) forget_all(cache);
    execv("/proc/self/exe", (char *const *)(uintptr_t)w->argv);
    _exit(127);
}

static clv_status judge(int state, const char *errors)
{
    char *text = NULL;
    size_t length;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return CLV_OK;
    if (clv_file_read(errors, 1 << 20, &text, &length)) text = NULL;
    if (text) text[strcspn(text, "\n")] = '\0';
    const clv_status status =
        WIFSIGNALED(state)
            ? clv_fail(CLV_E_DEVICE, "the command ended by signal %d", WTERMSIG(state))
            : clv_fail(CLV_E_DEVICE, "exit code %d: %.80s", WEXITSTATUS(state), text ? text : "");
    clv_free(text);
    return status;
}

static clv_status run_whole(void *user, double *seconds)
{
    whole_run *w = user;
    char errors[BENCH_PATH + 16], cache[BENCH_PATH];
    struct rusage usage = { 0 };
    int state = 0;
    snprintf(errors, sizeof errors, "%.4000s/stderr", w->b->folder);
    snprintf(cache, sizeof cache, "%.4000s/nothing-kept", w->b->folder);
    if (w->cold) CLV_TRY(clv_dir_make_private(cache));
    fflush(NULL);
    const double started = clv_now();
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(w, errors, cache, parent);
    if (pid < 0) return clv_fail(CLV_E_IO, "no new process: %s", strerror(errno));
    while (wait4(pid, &state, 0, &usage) < 0 && errno == EINTR)
        continue;
    *seconds = clv_now() - started;
    if (w->cold) nftw(cache, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    w->memory_bytes = CLV_MAX(w->memory_bytes, (uint64_t)usage.ru_maxrss * 1024);
    return judge(state, errors);
}

static void put_arguments(const bench *b, size_t case_index, const bench_party *party,
                          const char *output, const char *input, whole_run *w)
{
    const bench_case *c = &b->cases[case_index];
    const char *const *own = c->workload->command(c, input, output);
    size_t n = 0;
    w->argv[n++] = "cleave";
    while (*own && n < CLV_LEN(w->argv) - 8)
        w->argv[n++] = *own++;
    if (c->workload->host_only) {
        /* the same on every device */
    } else if (party->kind == BENCH_REFERENCE) {
        w->argv[n++] = "--mode", w->argv[n++] = "reference";
    } else {
        w->argv[n++] = "--device", w->argv[n++] = party->selection;
    }
    w->argv[n++] = "--quiet";
    w->argv[n] = NULL;
}

/* Measures the whole command. A first run, which fills the caches, does not count. */
static clv_status measure_files(bench *b, size_t case_index, size_t party)
{
    char input[BENCH_PATH], output[BENCH_PATH];
    double values[BENCH_MOST_SAMPLES];
    size_t count = 0;
    bench_cell *cell = &b->cells[case_index][party];
    whole_run w = { .b = b, .case_index = case_index };
    bench_case_folder(b, case_index, input);
    bench_output_folder(b, case_index, party, output);
    put_arguments(b, case_index, &b->parties[party], output, input, &w);
    const bool slow =
        bench_working_s(cell) > b->plan.figure_s / 4 || b->cases[case_index].from_files;
    clv_status status = slow ? CLV_OK : run_whole(&w, values);
    if (!status) status = bench_repeat(&b->plan, run_whole, &w, values, &count);
    if (!status) {
        cell->stat[BENCH_FILES] = bench_stat_of(values, count);
        bench_in_time(cell);
    }
    cell->memory_bytes = w.memory_bytes;
    if (!status && b->plan.cold && b->cases[case_index].cold &&
        b->parties[party].kind != BENCH_REFERENCE) {
        w.cold = true;
        status = bench_repeat(&b->plan, run_whole, &w, values, &count);
        if (!status) cell->stat[BENCH_COLD] = bench_stat_of(values, count);
    }
    return status;
}

clv_status bench_files(bench *b, size_t party, double until,
                       void (*tell)(const char *doing, void *user), void *user)
{
    for (size_t i = 0; i < b->case_count; ++i) {
        bench_cell *cell = &b->cells[i][party];
        char doing[120];
        const bench_case *c = &b->cases[i];
        const bool plain = b->parties[party].kind == BENCH_REFERENCE;
        if (!c->workload->command || c->part || (c->from_files && plain)) continue;
        if (!cell->stat[BENCH_COMPUTE].count && !c->from_files) continue; /* left out, or failed */
        if (cell->kept && cell->stat[BENCH_FILES].count) continue;
        if (!bench_hurry(b, until, b->case_count - i) || bench_working_s(cell) > b->plan.single_s) {
            clv_copy_string(cell->note, sizeof cell->note,
                            "the whole command is left out: no time was left (--budget)");
            cell->late = true;
            continue;
        }
        snprintf(doing, sizeof doing, "%s %s, files to files", b->cases[i].workload->name,
                 b->cases[i].name);
        tell(doing, user);
        const clv_status status = measure_files(b, i, party);
        if (cli_interrupted()) return clv_fail(CLV_E_CANCELLED, "interrupted");
        if (status) clv_copy_string(cell->note, sizeof cell->note, clv_error_message());
    }
    return CLV_OK;
}
