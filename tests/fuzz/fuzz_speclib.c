/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as lib.json in a folder without arrays. The result is always an error, and no memory is kept. */
#include "fuzz.h"

#include "host/io/tables/speclib.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a folder whose lib.json is the input. */
static const char *folder_with(const uint8_t *data, size_t size)
{
    static char folder[64], name[96];
    snprintf(folder, sizeof folder, "/tmp/fuzz-speclib-XXXXXX");
    if (!mkdtemp(folder)) abort();
    snprintf(name, sizeof name, "%s/lib.json", folder);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
    return folder;
}

static void remove_folder(const char *folder)
{
    char name[96];
    snprintf(name, sizeof name, "%s/lib.json", folder);
    unlink(name);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    clv_speclib library;
    const char *folder = folder_with(data, size);
    FUZZ_CHECK(clv_speclib_read(folder, &library) != CLV_OK);
    FUZZ_CHECK(!library.memory && !library.library.arms);
    remove_folder(folder);
    return 0;
}
