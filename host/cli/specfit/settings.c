/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that a run of specfit reads from files: rvspecfit's settings and lists of TARGETIDs. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 256 << 20 };

/* Returns where a setting is stored; `inside` is the key under which the line is indented, or "". */
static double *setting(specfit_args *a, const char *inside, const char *key)
{
    static const char letters[] = "brz";
    const struct {
        const char *key;
        double *to;
    } keys[] = { { "max_vel", &a->max_vel },
                 { "min_vel", &a->min_vel },
                 { "vel_step0", &a->vel_step },
                 { "max_vsini", &a->max_vsini },
                 { "lsf_sigma0_angstrom", &a->sigma0 } };
    if (strcmp(inside, "lsf_sigma0_angstrom") == 0) {
        const char *arm = key[0] && !key[1] ? strchr(letters, key[0]) : NULL;
        return arm ? &a->sigma_of[arm - letters] : NULL;
    }
    for (size_t i = 0; !*inside && i < CLV_LEN(keys); ++i)
        if (strcmp(key, keys[i].key) == 0) return keys[i].to;
    return NULL;
}

/* Reads rvspecfit's config.yaml as far as it consists of "key: value" lines; an arm's own settings are indented below a
 * key. Values set by an option stay. */
int specfit_read_config(specfit_args *a)
{
    char *text = NULL, *line, *rest = NULL, inside[64] = "";
    size_t length;
    const clv_status status = clv_file_read(a->config, 1 << 20, &text, &length);
    if (status) return cli_input_status(cli_running(), status);
    int code = CLI_OK;
    size_t settings = 0;
    for (line = strtok_r(text, "\n", &rest); line && !code; line = strtok_r(NULL, "\n", &rest)) {
        char key[64], value[128];
        double number;
        const int found = sscanf(line, " %63[A-Za-z0-9_] : %127[^# \t\r]", key, value);
        if (found > 0 && *line != ' ') *inside = '\0';
        settings += found > 0 && strchr(line, ':') != NULL;
        double *to = found == 2 ? setting(a, inside, key) : NULL;
        if (found == 1) clv_copy_string(inside, sizeof inside, key);
        if (to && !clv_parse_double(value, &number))
            code = cli_error(cli_running(), CLI_USAGE, "%s: %s: \"%s\" is not a number", a->config,
                             key, value);
        else if (to && isnan(*to))
            *to = number;
    }
    if (!settings && !code)
        code = cli_error(cli_running(), CLI_USAGE,
                         "%s: no settings in it, which are lines such as \"max_vel: 1000\"",
                         a->config);
    clv_free(text);
    return code;
}

/* ---- TARGETIDs ------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds numbers separated by blanks, commas and line ends; '#' begins a comment. */
static int add_ids(const char *text, const char *from, specfit_ids *list)
{
    static const char between[] = ", \t\r\n";
    for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
        char word[32];
        int64_t id;
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        const size_t n = strcspn(at, ", \t\r\n#");
        snprintf(word, sizeof word, "%.*s", (int)CLV_MIN(n, sizeof word - 1), at);
        if (n >= sizeof word || !clv_parse_i64(word, &id))
            return cli_error(cli_running(), CLI_USAGE, "%s: \"%s\" is not a TARGETID", from, word);
        if (!clv_reserve(&list->ids, &list->capacity, list->count + 1, sizeof *list->ids))
            return cli_error(cli_running(), CLI_FAILED, "no memory for TARGETIDs");
        list->ids[list->count++] = id;
        at += n;
    }
    return CLI_OK;
}

int specfit_read_ids(const specfit_args *a, specfit_ids *list)
{
    char *text = NULL;
    size_t length;
    int code = a->targets ? add_ids(a->targets, "--targets", list) : CLI_OK;
    if (!code && a->targets_file) {
        code = cli_input_status(cli_running(),
                                clv_file_read(a->targets_file, MAX_LIST, &text, &length));
        if (!code) code = add_ids(text, a->targets_file, list);
        clv_free(text);
    }
    if (list->count) qsort(list->ids, list->count, sizeof *list->ids, by_number);
    return code;
}
