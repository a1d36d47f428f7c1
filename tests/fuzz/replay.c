/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer on the files of directories, for builds without libFuzzer. */
#define _XOPEN_SOURCE 700
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUT = 1 << 20 };

static void run(const char *path, uint8_t *buffer)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(buffer, 1, MAX_INPUT, file);
    fclose(file);
    LLVMFuzzerTestOneInput(buffer, size);
}

int main(int argc, char **argv)
{
    size_t runs = 0;
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
            ++runs;
        }
        closedir(directory);
    }
    free(buffer);
    printf("%zu inputs\n", runs);
    return runs ? 0 : 1;
}
