/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data of the tests, in tests/data or in a folder of third-party data. */
#include "data.h"

#include "test.h"

#include "base/file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 1024, LINE_ROOM = 256, BYTES_AT_MOST = 64 << 20 };

/* One line of tests/data/third_party.txt. */
typedef struct third_party {
    char name[LINE_ROOM], variable[LINE_ROOM], folder[LINE_ROOM], what[LINE_ROOM];
} third_party;

/* Finds the line of third_party.txt whose `name` field is a prefix of `name`; false if there is none. */
static bool find_third_party(const char *name, third_party *found)
{
    char line[LINE_ROOM];
    bool is_found = false;
    FILE *list = fopen(TEST_DATA "/third_party.txt", "r");
    if (!list) fail_msg("tests/data/third_party.txt is missing");
    while (!is_found && fgets(line, sizeof line, list)) {
        if (*line == '#') continue;
        *found = (third_party){ 0 };
        if (sscanf(line, "%s $%[^/]%s %[^\n]", found->name, found->variable, found->folder,
                   found->what) != 4)
            fail_msg("tests/data/third_party.txt: cannot read the line \"%s\"", line);
        is_found = strncmp(name, found->name, strlen(found->name)) == 0;
    }
    fclose(list);
    return is_found;
}

static void skip_third_party(const third_party *data)
{
    char reason[4 * LINE_ROOM];
    snprintf(reason, sizeof reason, "third-party data (%s): $%s%s is not here", data->what,
             data->variable, data->folder);
    test_skip(reason);
}

const char *test_data(const char *format, ...)
{
    static _Thread_local char paths[8][PATH_ROOM];
    static _Thread_local unsigned calls;
    char *path = paths[calls++ % 8], name[PATH_ROOM / 2];
    third_party other;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    if (find_third_party(name, &other)) {
        const char *folder = getenv(other.variable);
        snprintf(path, PATH_ROOM, "%s%s%s", folder ? folder : "", other.folder,
                 name + strlen(other.name));
        if (!folder || access(path, F_OK)) skip_third_party(&other);
    } else {
        snprintf(path, PATH_ROOM, "%s/%s", TEST_DATA, name);
        if (access(path, F_OK)) fail_msg("tests/data/%s is missing", name);
    }
    return path;
}

char *test_data_read(const char *name, size_t *length)
{
    char *text;
    if (clv_file_read(test_data("%s", name), BYTES_AT_MOST, &text, length))
        fail_msg("%s", clv_error_message());
    return text;
}
