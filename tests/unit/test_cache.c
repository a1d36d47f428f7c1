/* SPDX-License-Identifier: Apache-2.0 */
/* The program cache: what is not exactly as it was written is never handed out. */
#define _GNU_SOURCE /* setresuid */
#include "test.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/program/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAYLOAD = 300, NOBODY = 65534 };

static unsigned folders, warnings;

static void count_warnings(clv_log_level level, const char *line, void *user)
{
    (void)line, (void)user;
    warnings += level == CLV_LOG_WARN;
}

/* A cache in a folder of its own; its path stays in `path`. */
static clv_cache fresh(char path[300])
{
    clv_cache cache;
    snprintf(path, 300, "%s/cache-%u", test_temp_dir(), folders++);
    clv_cache_open(&cache, path);
    assert_string_equal(cache.directory, path);
    return cache;
}

static void fill(unsigned char *payload, unsigned seed, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        payload[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 3));
}

static void store(const clv_cache *cache, const char *key, unsigned seed)
{
    unsigned char payload[PAYLOAD];
    fill(payload, seed, PAYLOAD);
    clv_cache_store(cache, key, payload, PAYLOAD);
}

/* True when it is there; then it must be right. */
static bool load(const clv_cache *cache, const char *key, unsigned seed)
{
    unsigned char want[PAYLOAD];
    void *payload = NULL;
    size_t length = 0;
    if (!clv_cache_load(cache, key, &payload, &length)) return false;
    fill(want, seed, PAYLOAD);
    const bool right = length == PAYLOAD && memcmp(payload, want, PAYLOAD) == 0;
    clv_free(payload);
    if (!right) fail_msg("%s: a damaged program was handed out", key);
    return true;
}

/* The path of the only entry. */
static const char *entry_of(const clv_cache *cache)
{
    static char path[1400];
    char folder[1100];
    snprintf(folder, sizeof folder, "%s/programs", cache->directory);
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    path[0] = '\0';
    for (struct dirent *d; (d = readdir(directory));)
        if (d->d_name[0] != '.') snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
    closedir(directory);
    assert_true(path[0]);
    return path;
}

static void rewrite(const char *path, const char *data, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void what_was_stored_comes_back(void **state)
{
    (void)state;
    char path[300];
    clv_cache cache = fresh(path);
    struct stat info;
    assert_false(load(&cache, "key", 1));
    store(&cache, "key", 1);
    assert_true(load(&cache, "key", 1));
    assert_int_equal(stat(entry_of(&cache), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    store(&cache, "key", 2); /* the later one counts */
    assert_true(load(&cache, "key", 2));
    clv_cache_drop(&cache, "key");
    assert_false(load(&cache, "key", 2));
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    char path[300], *whole;
    size_t length;
    clv_cache cache = fresh(path);
    store(&cache, "key", 1);
    char entry[1400];
    snprintf(entry, sizeof entry, "%s", entry_of(&cache));
    EXPECT_OK(clv_file_read(entry, 1 << 20, &whole, &length));
    for (size_t cut = 0; cut < length; ++cut) {
        rewrite(entry, whole, cut);
        assert_false(load(&cache, "key", 1));
        if (cut)
            assert_int_not_equal(access(entry, F_OK), 0); /* gone: nobody trips over it again */
    }
    char *longer = clv_alloc(length + 1, 1);
    memcpy(longer, whole, length);
    longer[length] = 0;
    rewrite(entry, longer, length + 1);
    assert_false(load(&cache, "key", 1));
    rewrite(entry, whole, length);
    assert_true(load(&cache, "key", 1));
    clv_free(longer), clv_free(whole);
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    char path[300], *whole;
    size_t length, harmless = 0;
    clv_cache cache = fresh(path);
    store(&cache, "some longer key\nof two lines", 1);
    char entry[1400];
    snprintf(entry, sizeof entry, "%s", entry_of(&cache));
    EXPECT_OK(clv_file_read(entry, 1 << 20, &whole, &length));
    for (size_t at = 0; at < length; ++at) {
        whole[at] = (char)(whole[at] ^ 1 << at % 8);
        rewrite(entry, whole, length);
        harmless += load(&cache, "some longer key\nof two lines", 1); /* checks what it gets */
        whole[at] = (char)(whole[at] ^ 1 << at % 8);
    }
    assert_int_equal(harmless, 7); /* padding of the header */
    clv_free(whole);
}

/* Another driver version is another key; its entry under the wrong name is not taken for ours. */
static void a_new_driver_finds_nothing(void **state)
{
    (void)state;
    static const char old[] = "source 12\ndevice X; driver 1.0",
                      new[] = "source 12\ndevice X; driver 1.1";
    char path[300], *whole, renamed[1400];
    size_t length;
    clv_cache cache = fresh(path);
    store(&cache, new, 3);
    snprintf(renamed, sizeof renamed, "%s", entry_of(&cache));
    clv_cache_drop(&cache, new);
    store(&cache, old, 4);
    assert_false(load(&cache, new, 3));
    assert_true(load(&cache, old, 4));
    EXPECT_OK(clv_file_read(entry_of(&cache), 1 << 20, &whole, &length));
    rewrite(renamed, whole, length);
    assert_false(load(&cache, new, 3));
    assert_true(load(&cache, old, 4));
    clv_free(whole);
}

static void others_files_are_not_trusted(void **state)
{
    (void)state;
    char path[300], entry[1400], moved[1500];
    clv_cache cache = fresh(path);
    store(&cache, "key", 1);
    snprintf(entry, sizeof entry, "%s", entry_of(&cache));
    assert_int_equal(chmod(entry, 0666), 0); /* anybody may have written it */
    assert_false(load(&cache, "key", 1));
    store(&cache, "key", 1);
    snprintf(moved, sizeof moved, "%s/elsewhere", path);
    assert_int_equal(rename(entry, moved), 0);
    assert_int_equal(symlink(moved, entry), 0);
    assert_false(load(&cache, "key", 1));
}

/* ---- directories ----------------------------------------------------------------------------- */

static void a_directory_that_others_may_write_is_not_used(void **state)
{
    (void)state;
    char path[300];
    clv_cache cache = fresh(path);
    store(&cache, "key", 1);
    assert_int_equal(chmod(path, 0777), 0);
    warnings = 0;
    clv_log_set(CLV_LOG_WARN, count_warnings, NULL);
    clv_cache_open(&cache, path);
    clv_log_set(CLV_LOG_NONE, NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_string_equal(cache.directory, "");
    assert_false(load(&cache, "key", 1));
    store(&cache, "key", 1); /* nothing happens */
    assert_int_equal(clv_cache_measure(&cache).entries, 0);

    snprintf(path, sizeof path, "%s/a-file", test_temp_dir());
    rewrite(path, "x", 1);
    clv_cache_open(&cache, path);
    assert_string_equal(cache.directory, "");
}

/* In a child, so that the identity of this process stays what it is. Its exit code. */
static int in_child(void (*body)(const char *path), const char *path)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        body(path);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define INSIST(condition)                                           \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            _exit(1);                                               \
        }                                                           \
    } while (0)

static void become_nobody(void)
{
    if (geteuid() == 0)
        INSIST(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void use_read_only(const char *path)
{
    clv_cache cache;
    become_nobody();
    clv_cache_open(&cache, path);
    if (geteuid() != NOBODY) INSIST(*cache.directory);
    INSIST(load(&cache, "old", 1));
    store(&cache, "new", 2); /* cannot, and that is no failure */
    INSIST(!load(&cache, "new", 2));
    clv_cache_evict(&cache);
    INSIST(load(&cache, "old", 1));
}

static void give_away(const char *path)
{
    if (geteuid()) return;
    char command[3][400];
    snprintf(command[0], 400, "%s", path);
    snprintf(command[1], 400, "%s/programs", path);
    for (int i = 0; i < 2; ++i)
        assert_int_equal(chown(command[i], NOBODY, NOBODY), 0);
}

static void a_read_only_directory_is_read(void **state)
{
    (void)state;
    char path[300], programs[400];
    clv_cache cache = fresh(path);
    store(&cache, "old", 1);
    if (geteuid() == 0) assert_int_equal(chown(entry_of(&cache), NOBODY, NOBODY), 0);
    give_away(path);
    snprintf(programs, sizeof programs, "%s/programs", path);
    assert_int_equal(chmod(programs, 0500), 0);
    assert_int_equal(chmod(path, 0500), 0);
    assert_int_equal(chmod(test_temp_dir(), 0711), 0);
    assert_int_equal(in_child(use_read_only, path), 0);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(chmod(programs, 0700), 0);
}

static void a_foreign_directory_is_not_used(void **state)
{
    (void)state;
    if (geteuid()) {
        printf("needs root: skipped\n");
        return;
    }
    char path[300];
    clv_cache cache = fresh(path);
    store(&cache, "key", 1);
    give_away(path);
    clv_cache_open(&cache, path);
    assert_string_equal(cache.directory, "");
    assert_false(load(&cache, "key", 1));
}

/* Files cannot grow, as on a full disk. The limit ends before the process does: what counts coverage then writes files
 * of its own, and a part of one would spoil what other processes have counted. */
static void use_full_disk(const char *path)
{
    clv_cache cache;
    struct rlimit before;
    clv_cache_open(&cache, path);
    signal(SIGXFSZ, SIG_IGN);
    INSIST(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const struct rlimit limit = { 100, before.rlim_max };
    INSIST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    store(&cache, "new", 2);
    INSIST(!load(&cache, "new", 2));
    INSIST(load(&cache, "old", 1));
    INSIST(clv_cache_measure(&cache).entries == 1); /* no remains either */
    INSIST(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

static void a_full_disk_leaves_no_remains(void **state)
{
    (void)state;
    char path[300];
    clv_cache cache = fresh(path);
    store(&cache, "old", 1);
    assert_int_equal(in_child(use_full_disk, path), 0);
}

/* ---- many at once ---------------------------------------------------------------------------- */

enum { RACERS = 8, ROUNDS = 150, KEYS = 5 };

static void race(const char *path)
{
    clv_cache cache;
    uint64_t state = (uint64_t)getpid();
    clv_cache_open(&cache, path);
    INSIST(*cache.directory);
    cache.limit_bytes = 3 * (PAYLOAD + 100); /* they throw each other's entries out, too */
    for (int i = 0; i < ROUNDS; ++i) {
        const unsigned k = (unsigned)(test_random(&state) % KEYS);
        char key[16];
        unsigned char want[PAYLOAD];
        void *payload;
        size_t length;
        snprintf(key, sizeof key, "key %u", k);
        fill(want, k, PAYLOAD);
        if (test_random(&state) % 2) {
            clv_cache_store(&cache, key, want, PAYLOAD);
        } else if (clv_cache_load(&cache, key, &payload, &length)) {
            INSIST(length == PAYLOAD && memcmp(payload, want, PAYLOAD) == 0);
            clv_free(payload);
        }
    }
}

static void racing_processes_see_whole_entries(void **state)
{
    (void)state;
    char path[300];
    pid_t racers[RACERS];
    snprintf(path, sizeof path, "%s/race", test_temp_dir()); /* they race for making it, too */
    fflush(NULL);
    for (int i = 0; i < RACERS; ++i)
        if (!(racers[i] = fork())) {
            race(path);
            _exit(0);
        }
    for (int i = 0; i < RACERS; ++i) {
        int status;
        assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
        assert_int_equal(status, 0);
    }
    clv_cache cache;
    clv_cache_open(&cache, path);
    assert_in_range(clv_cache_measure(&cache).entries, 1, KEYS);
}

/* ---- size ------------------------------------------------------------------------------------ */

static void set_age(const clv_cache *cache, const char *key, unsigned seed, time_t seconds)
{
    clv_cache alone = *cache;
    char path[1400];
    clv_digest digest = clv_sha256(key, strlen(key));
    char name[65];
    clv_digest_hex(&digest, name);
    snprintf(path, sizeof path, "%s/programs/%s.clb", cache->directory, name);
    store(&alone, key, seed);
    const struct timespec times[2] = { { 1000000 - seconds, 0 }, { 1000000 - seconds, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void the_longest_unused_go_first(void **state)
{
    (void)state;
    char path[300];
    clv_cache cache = fresh(path);
    set_age(&cache, "a", 1, 400);
    set_age(&cache, "b", 2, 300);
    set_age(&cache, "c", 3, 200);
    set_age(&cache, "d", 4, 100);
    const clv_cache_stats all = clv_cache_measure(&cache);
    assert_int_equal(all.entries, 4);
    assert_true(load(&cache, "a", 1)); /* now the latest */
    cache.limit_bytes = all.bytes / 2;
    clv_cache_evict(&cache);
    assert_int_equal(clv_cache_measure(&cache).entries, 2);
    assert_true(load(&cache, "a", 1));
    assert_true(load(&cache, "d", 4));
    store(&cache, "e", 5); /* storing keeps to the limit by itself */
    assert_int_equal(clv_cache_measure(&cache).entries, 2);
    assert_true(load(&cache, "e", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_stored_comes_back),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(a_new_driver_finds_nothing),
        cmocka_unit_test(others_files_are_not_trusted),
        cmocka_unit_test(a_directory_that_others_may_write_is_not_used),
        cmocka_unit_test(a_read_only_directory_is_read),
        cmocka_unit_test(a_foreign_directory_is_not_used),
        cmocka_unit_test(a_full_disk_leaves_no_remains),
        cmocka_unit_test(racing_processes_see_whole_entries),
        cmocka_unit_test(the_longest_unused_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
