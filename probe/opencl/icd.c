/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the installed OpenCL drivers without loading any. */
#define _GNU_SOURCE
#include "probe/opencl/icd.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ICD_FILE_LIMIT = 65536, LOADER_LIMIT = 64 << 20, MOST_FILES = 4096 };

bool clv_icd_parse(const char *text, size_t length, char *library, const char **problem)
{
    library[0] = '\0';
    const char *line = memchr(text, '\n', length);
    if (line) length = (size_t)(line - text);
    while (length && (unsigned char)text[length - 1] <= ' ')
        --length;
    while (length && (unsigned char)*text <= ' ')
        ++text, --length;
    *problem = !length                  ? "the file is empty"
               : length >= CLV_ICD_NAME ? "the file holds no library name"
                                        : NULL;
    for (size_t i = 0; !*problem && i < length; ++i)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            *problem = "the file holds no library name";
    if (*problem) return false;
    memcpy(library, text, length);
    library[length] = '\0';
    return true;
}

/* Appends the library of this name, which a variable of the environment holds. */
static void add_library(clv_machine *machine, const char *library, size_t length)
{
    clv_probe_icd *icd = clv_machine_add_icd(machine);
    if (!icd) return;
    if (length < CLV_ICD_NAME) {
        icd->library = clv_machine_foreign(machine, library, length);
        return;
    }
    icd->status = "missing";
    icd->message = clv_machine_text(
        machine,
        "the environment variable holds a library's name of %zu bytes, expected at most %d", length,
        CLV_ICD_NAME - 1);
}

static void add_file(clv_machine *machine, const char *path)
{
    char library[CLV_ICD_NAME], *text;
    const char *problem = NULL;
    size_t length;
    clv_probe_icd *icd = clv_machine_add_icd(machine);
    if (!icd) return;
    icd->file = clv_machine_foreign(machine, path, strlen(path));
    if (clv_file_read_plain(path, ICD_FILE_LIMIT, &text, &length) != CLV_OK) {
        icd->status = "missing";
        icd->message = clv_machine_keep(machine, clv_error_message());
        return;
    }
    if (clv_icd_parse(text, length, library, &problem)) {
        icd->library = clv_machine_foreign(machine, library, strlen(library));
    } else {
        icd->status = "missing";
        icd->message = problem;
    }
    clv_free(text);
}

static int is_icd(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && clv_ends_with(entry->d_name, ".icd");
}

static void add_folder(clv_machine *machine, const char *folder)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_icd, alphasort);
    for (int i = 0; i < count; ++i) {
        clv_text path = { 0 };
        clv_text_add(&path, "%s/%s", folder, entries[i]->d_name);
        if (path.failed)
            machine->failed = true;
        else if (i < MOST_FILES)
            add_file(machine, path.data);
        clv_text_clear(&path);
        free(entries[i]); /* allocated by scandir */
    }
    free(entries);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Returns whether the loader reads the environment variable. Loaders differ in the variables they read, and the
 * loader's own file contains their names. */
static bool loader_reads(const clv_machine *machine, const char *variable)
{
    char *bytes;
    size_t length;
    if (!machine->report.loader_path ||
        clv_file_read_plain(machine->report.loader_path, LOADER_LIMIT, &bytes, &length) != CLV_OK)
        return false;
    const bool found = memmem(bytes, length, variable, strlen(variable)) != NULL;
    clv_free(bytes);
    return found;
}

static const char *set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static void add_file_names(clv_machine *machine, const char *list)
{
    while (*list) {
        const size_t length = strcspn(list, ":");
        if (length) add_library(machine, list, length);
        list += length + (list[length] == ':');
    }
}

void clv_icds_list(clv_machine *machine)
{
    const char *vendors = set("OCL_ICD_VENDORS"), *files = set("OCL_ICD_FILENAMES");
    const char *old = set("OPENCL_VENDOR_PATH");
    if (files && loader_reads(machine, "OCL_ICD_FILENAMES")) add_file_names(machine, files);
    if (vendors && is_folder(vendors))
        add_folder(machine, vendors);
    else if (vendors && clv_ends_with(vendors, ".icd"))
        add_file(machine, vendors);
    /* for ocl-icd, the variable may be the name of a library */
    else if (vendors && loader_reads(machine, "OPENCL_VENDOR_PATH"))
        add_library(machine, vendors, strlen(vendors));
    else if (vendors)
        return; /* the Khronos loader accepts only folders, and finds nothing in this case */
    else if (old && loader_reads(machine, "OPENCL_VENDOR_PATH"))
        add_folder(machine, old);
    else
        add_folder(machine, "/etc/OpenCL/vendors");
}
