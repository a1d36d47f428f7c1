/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the output formats and the endings of their file names. */
#include "host/cli/endings.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
    unsigned formats;
    const char *ending;
} endings[] = {
    { CLI_CSV, ".csv" },
    { CLI_TSV, ".tsv" },
    { CLI_TSV | CLI_LINES, ".txt" },
    { CLI_NPY, ".npy" },
    { CLI_FITS, ".fits" },
    { CLI_JSON, ".json" },
    { CLI_XML, ".xml" },
    { CLI_PARQUET, ".parquet" },
    { CLI_PNG, ".png" },
    { CLI_HTML, ".html" },
    { CLI_HTML, ".htm" },
    { CLI_MARKDOWN, ".md" },
    { CLI_WEIGHTS, ".safetensors" },
};
static const char *const packed[] = { ".gz", ".bz2", ".xz", ".zst", ".zip" };

/* Returns ".csv" for "dir.d/spots.csv"; "" for "spots" and ".hidden". */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot : "";
}

bool cli_is_stream(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

unsigned cli_formats_of(const char *path)
{
    const char *ending = ending_of(path);
    for (size_t i = 0; i < CLV_LEN(endings); ++i)
        if (strcmp(ending, endings[i].ending) == 0) return endings[i].formats;
    return 0;
}

static bool is_packed(const char *path)
{
    for (size_t i = 0; i < CLV_LEN(packed); ++i)
        if (strcmp(ending_of(path), packed[i]) == 0) return true;
    return false;
}

/* Returns whether the path exists but is not a regular file, or lies in /dev or /proc. The latter counts because a
 * redirected /dev/stdout is a regular file. */
static bool is_special(const char *path)
{
    struct stat info;
    return clv_starts_with(path, "/dev/") || clv_starts_with(path, "/proc/") ||
           (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

/* Returns a sentence that says how pandas converts a .csv file to a format that Cleave does not write; "" if there
 * is none. */
static const char *by_pandas(const char *path, unsigned formats)
{
    static const struct {
        const char *ending, *way;
    } ways[] = {
        { ".parquet",
          ". pandas makes it of a .csv file: pandas.read_csv(...).to_parquet(...), with pyarrow" },
        { ".feather",
          ". pandas makes it of a .csv file: pandas.read_csv(...).to_feather(...), with pyarrow" },
        { ".xlsx",
          ". pandas makes it of a .csv file: pandas.read_csv(...).to_excel(...), with openpyxl" },
        { ".h5",
          ". pandas makes it of a .csv file: pandas.read_csv(...).to_hdf(...), with tables" },
    };
    for (size_t i = 0; i < CLV_LEN(ways) && formats & CLI_CSV; ++i)
        if (strcmp(ending_of(path), ways[i].ending) == 0) return ways[i].way;
    return "";
}

static int refuse(const cli_command *command, const char *option, const char *path,
                  unsigned formats)
{
    char list[120] = "", words[160], why[80];
    for (size_t i = 0, used = 0; i < CLV_LEN(endings); ++i)
        if (endings[i].formats & formats && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                     endings[i].ending);
    if (is_packed(path))
        snprintf(why, sizeof why, "Cleave does not write compressed files");
    else if (*ending_of(path))
        snprintf(why, sizeof why, "this output cannot be a %.40s file", ending_of(path));
    else
        snprintf(why, sizeof why, "it has no ending that names the format");
    return cli_error(command, CLI_USAGE, "%s is \"%s\", but %s: use a name that ends in %s%s%s",
                     option, path, why, clv_list_words(list, "or", words, sizeof words),
                     formats & CLI_NO_STREAM ? "" : ", or - for standard output",
                     by_pandas(path, formats));
}

int cli_check_ending(const cli_command *command, const char *option, const char *path,
                     unsigned formats)
{
    const unsigned wanted = formats & (CLI_NO_STREAM - 1), found = path ? cli_formats_of(path) : 0;
    if (!path || !wanted) return -1;
    if (cli_is_stream(path) && !(formats & CLI_NO_STREAM)) return -1;
    if (cli_is_stream(path))
        return cli_error(
            command, CLI_USAGE,
            "%s is \"-\", but standard output is not possible there; give the name of a file",
            option);
    if (is_special(path) || found & wanted) return -1;
    const bool one = (wanted & (wanted - 1)) == 0, bare = !*ending_of(path);
    if (!found && !is_packed(path) && (formats & CLI_SAID || (one && bare))) return -1;
    return refuse(command, option, path, formats);
}

int cli_check_folder_name(const cli_command *command, const char *option, const char *folder)
{
    struct stat info;
    if (cli_is_stream(folder))
        return cli_error(command, CLI_USAGE,
                         "%s is \"-\", but several files are written, which cannot go to standard "
                         "output; give the name of a folder",
                         option);
    if (!folder || !cli_formats_of(folder) || stat(folder, &info) == 0) return -1;
    return cli_error(command, CLI_USAGE,
                     "%s is \"%s\", which is the name of a file, but several files are written; "
                     "give the name of a folder, which is created if it does not exist",
                     option, folder);
}
