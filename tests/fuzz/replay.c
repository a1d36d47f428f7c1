/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer on the files of directories, for builds without libFuzzer: once with enough memory, and then so that
 * the k-th allocation fails. The promises of the fuzzer hold in either case. */
#define _XOPEN_SOURCE 700
#include "fuzz.h"

#include "base/alloc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { MAX_INPUT = 1 << 20, ALL_OF = 64, SOME = 16 };

/* The most processor time that an input may take. The slowest of the corpora takes 0.1 s on a core of 2020. */
static const double most_seconds = 0.5;

static size_t runs, failures;

/* Runs the fuzzer once per failing allocation: each of the first ALL_OF allocations, and about SOME of the others. */
static void run_without_memory(const uint8_t *buffer, size_t size, unsigned long count)
{
    const unsigned long step = count > ALL_OF ? (count - ALL_OF) / SOME + 1 : 1;
    fuzz_poor = true;
    for (unsigned long k = 1; k <= count; k += k < ALL_OF ? 1 : step) {
        clv_alloc_fail_at(k);
        LLVMFuzzerTestOneInput(buffer, size);
        ++failures;
    }
    fuzz_poor = false;
    clv_alloc_fail_at(0);
}

/* Returns the processor time of this process and of those that it started and that have ended. */
static double seconds_used(void)
{
    static const int whose[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
    double seconds = 0;
    for (size_t i = 0; i < CLV_LEN(whose); ++i) {
        struct rusage used;
        getrusage((__rusage_who_t)whose[i], &used);
        seconds += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return seconds;
}

static void run(const char *path, uint8_t *buffer)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(buffer, 1, MAX_INPUT, file);
    fclose(file);
    clv_alloc_fail_at(0);
    const double started = seconds_used();
    LLVMFuzzerTestOneInput(buffer, size);
    const double seconds = seconds_used() - started;
    if (seconds > most_seconds) {
        fprintf(stderr, "%s: took %.1f s of processor time; an input may take %.1f s\n", path,
                seconds, most_seconds);
        exit(1);
    }
    ++runs;
    run_without_memory(buffer, size, clv_alloc_calls());
}

int main(int argc, char **argv)
{
    uint8_t *buffer = malloc(MAX_INPUT);
    if (!buffer) return 1;
    for (int i = 1; i < argc; ++i) {
        DIR *directory = opendir(argv[i]);
        if (!directory) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
            char path[4096];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            run(path, buffer);
        }
        closedir(directory);
    }
    free(buffer);
    printf("%zu inputs; %zu times without some of the memory\n", runs, failures);
    return runs ? 0 : 1;
}
