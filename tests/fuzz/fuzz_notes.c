/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as notes of earlier runs, adds a note and writes them. The same notes must be read again. */
#include "fuzz.h"

#include "folder.h"
#include "runtime/record/notes.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "speeds.txt", NULL };
    clv_notes notes, again;
    char value[64], twice[64];
    const char *folder = fuzz_folder(data, size, names);
    clv_notes_open(&notes, folder, "speeds.txt", "title");
    const size_t count = notes.count;
    const bool told = clv_notes_get(&notes, "a", value, sizeof value);
    FUZZ_CHECK(!told || strlen(value) < sizeof value);
    clv_notes_set(&notes, "new", "1");
    clv_notes_close(&notes);
    clv_notes_open(&again, folder, "speeds.txt", "title");
    FUZZ_CHECK(fuzz_poor || (again.count >= 1 && again.count <= count + 1));
    FUZZ_CHECK(fuzz_poor || clv_notes_get(&again, "new", twice, sizeof twice));
    FUZZ_CHECK(fuzz_poor || strcmp(twice, "1") == 0);
    FUZZ_CHECK(fuzz_poor || clv_notes_get(&again, "a", twice, sizeof twice) == told);
    clv_notes_close(&again);
    return 0;
}
