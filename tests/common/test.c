/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations for statuses, the choice of claims, skipping, and temporary folders of the tests. */
#define _XOPEN_SOURCE 700
#include "test.h"

#include <cleave/log.h>

#include <ftw.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void test_expect_status(clv_status want, clv_status got, const char *call, const char *file,
                        int line)
{
    if (got == want) return;
    print_error("%s:%d: %s gave %s: %s\n%s\n", file, line, call, clv_status_name(got),
                clv_error_message(), clv_error_detail());
    fail();
}

void test_expect_failure(clv_status want, const char *part, clv_status got, const char *call,
                         const char *file, int line)
{
    if (got == want && strstr(clv_error_message(), part)) return;
    print_error("%s:%d: %s gave %s \"%s\", expected %s with \"%s\"\n", file, line, call,
                clv_status_name(got), got ? clv_error_message() : "", clv_status_name(want), part);
    fail();
}

static void (*at_end)(void);

void test_at_end(void (*clear_up)(void))
{
    at_end = clear_up;
}

enum { MOST_CLAIMS = 64 };

static char *const *chosen;
static size_t chosen_count;
static bool without_chosen;

void test_choose(int argc, char **argv)
{
    without_chosen = argc > 1 && strcmp(argv[1], "--without") == 0;
    const int first = without_chosen ? 2 : 1;
    chosen = argv + first;
    chosen_count = argc > first ? (size_t)(argc - first) : 0;
}

static bool is_chosen(const char *claim)
{
    for (size_t i = 0; i < chosen_count; ++i)
        if (strcmp(claim, chosen[i]) == 0) return !without_chosen;
    return without_chosen || !chosen_count;
}

static void check_chosen(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < chosen_count; ++i) {
        size_t k = 0;
        while (k < count && strcmp(tests[k].name, chosen[i]) != 0)
            ++k;
        if (k < count) continue;
        printf("no claim is called %s\n", chosen[i]);
        exit(1);
    }
}

int test_group(const char *name, const struct CMUnitTest *tests, size_t count,
               CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest run[MOST_CLAIMS];
    size_t run_count = 0;
    check_chosen(tests, count);
    for (size_t i = 0; i < count; ++i) {
        if (!is_chosen(tests[i].name)) continue;
        if (run_count == MOST_CLAIMS) {
            printf("more than %d claims in one program\n", MOST_CLAIMS);
            exit(1);
        }
        run[run_count++] = tests[i];
    }
    const int failed = _cmocka_run_group_tests(name, run, run_count, setup, teardown);
    if (at_end) at_end();
    return failed;
}

/* Runs this program with one claim. Its output goes into a file, which is deleted already. */
static pid_t start_claim(const char *claim, FILE *output)
{
    const pid_t process = fork();
    if (process) return process;
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    execl("/proc/self/exe", "claim", claim, (char *)NULL);
    _exit(127);
}

static void print_whole(FILE *file)
{
    char text[4096];
    size_t got;
    rewind(file);
    while ((got = fread(text, 1, sizeof text, file)) > 0)
        fwrite(text, 1, got, stdout);
    fclose(file);
}

int test_at_once(const struct CMUnitTest *tests, size_t count)
{
    FILE *output[MOST_CLAIMS];
    pid_t process[MOST_CLAIMS];
    size_t failed = 0, skipped = 0;
    if (count > MOST_CLAIMS) abort();
    for (size_t i = 0; i < count; ++i) {
        output[i] = tmpfile();
        if (!output[i] || (process[i] = start_claim(tests[i].name, output[i])) < 0) abort();
    }
    for (size_t i = 0; i < count; ++i) {
        int status = -1;
        waitpid(process[i], &status, 0);
        print_whole(output[i]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            ++skipped;
        else if (status) {
            printf("%s failed (%#x)\n", tests[i].name, (unsigned)status);
            ++failed;
        }
    }
    return failed ? 1 : count && skipped == count ? 77 : 0;
}

void test_skip_all(const char *reason)
{
    printf("SKIPPED: %s\n", reason);
    exit(77);
}

void test_skip(const char *reason)
{
    printf("SKIPPED: %s\n", reason);
    skip();
}

void test_skip_without_device(void)
{
    const char *promised = getenv("CLEAVE_TEST_PLATFORMS");
    if (promised && *promised) fail_msg("no OpenCL device, %s promised", promised);
    test_skip("no OpenCL device");
}

static char temp_dir[256];
static pid_t temp_owner;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void remove_temp_dir(void)
{
    if (getpid() == temp_owner) nftw(temp_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool test_brief(void)
{
    return getenv("CLEAVE_TEST_BRIEF") != NULL;
}

const char *test_temp_dir(void)
{
    if (*temp_dir) return temp_dir;
    const char *base = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/cleave-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(temp_dir)) {
        perror("mkdtemp");
        exit(1);
    }
    temp_owner = getpid();
    atexit(remove_temp_dir);
    return temp_dir;
}

int test_note(const char *job, size_t done, size_t total, void *user)
{
    test_told *t = user;
    assert_string_equal(job, t->job);
    t->calls += 1, t->done = done, t->total = total;
    return t->answer;
}

static char heard[1000];

static void keep_warning(clv_log_level level, const char *message, void *user)
{
    (void)user;
    if (level == CLV_LOG_WARN) snprintf(heard, sizeof heard, "%s", message);
}

void test_listen(void)
{
    *heard = '\0';
    clv_log_set(CLV_LOG_WARN, keep_warning, NULL);
}

const char *test_heard(void)
{
    clv_log_set(CLV_LOG_WARN, NULL, NULL);
    return heard;
}

void test_comma(void)
{
    static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "es_ES.UTF-8" };
    char command[1000];
    const char *folder = test_temp_dir();
    for (size_t i = 0; i < sizeof locales / sizeof *locales; ++i)
        if (setlocale(LC_NUMERIC, locales[i])) return;
    snprintf(command, sizeof command,
             "cd '%s' && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\ngrouping "
             "-1\\nEND LC_NUMERIC\\n' >comma.txt && "
             "localedef -c -i comma.txt -f ISO-8859-1 ./comma >localedef.txt 2>&1",
             folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    if (!setlocale(LC_NUMERIC, "comma")) test_skip("no locale with a decimal comma can be had");
}

void test_point(void)
{
    setlocale(LC_NUMERIC, "C");
}

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

double test_uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(test_random(state) >> 11) * 0x1p-53;
}
