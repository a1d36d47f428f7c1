/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of a run of specfit from files: rvspecfit's settings and lists of TARGETIDs. */
#include "host/cli/specfit/files.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* SETTINGS: the settings that are read, those of arms included */
enum { MAX_LIST = 256 << 20, SETTINGS = 5 + CLV_DESI_ARMS };

/* Returns the text behind its byte-order mark, if it has one. */
static char *after_mark(char *text)
{
    return clv_starts_with(text, "\xEF\xBB\xBF") ? text + 3 : text;
}

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

/* A setting that the file has given: where it is stored, and its value. */
typedef struct given {
    const double *to;
    char value[128];
} given;

/* Takes the value of a setting, unless an option has set it. `list` has the `count` settings that came before. */
static int take_setting(const specfit_args *a, const char *key, const char *value, double *to,
                        given *list, size_t *count)
{
    double number;
    if (!clv_parse_double(value, &number))
        return cli_error(cli_running(), CLI_USAGE, "%s: %s: \"%s\" is not a number", a->config, key,
                         value);
    for (size_t i = 0; i < *count; ++i)
        if (list[i].to == to)
            return cli_error(cli_running(), CLI_USAGE,
                             "%s: %s is given twice, as %s and %s; remove one", a->config, key,
                             list[i].value, value);
    list[*count].to = to;
    clv_copy_string(list[(*count)++].value, sizeof list->value, value);
    if (isnan(*to)) *to = number;
    return CLI_OK;
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
    size_t settings = 0, count = 0;
    given list[SETTINGS];
    for (line = strtok_r(after_mark(text), "\n", &rest); line && !code;
         line = strtok_r(NULL, "\n", &rest)) {
        char key[64], value[sizeof list->value];
        const int found = sscanf(line, " %63[A-Za-z0-9_] : %127[^# \t\r]", key, value);
        if (found > 0 && *line != ' ') *inside = '\0';
        settings += found > 0 && strchr(line, ':') != NULL;
        double *to = found == 2 ? setting(a, inside, key) : NULL;
        if (found == 1) clv_copy_string(inside, sizeof inside, key);
        if (to) code = take_setting(a, key, value, to, list, &count);
    }
    if (!settings && !code)
        code = cli_error(
            cli_running(), CLI_USAGE,
            "%s: there are no settings in it; expected lines such as \"max_vel: 1000\"", a->config);
    clv_free(text);
    return code;
}

/* ---- names of columns ------------------------------------------------------------------------ */

static clv_spectrum_role role_called(const char *word, size_t length)
{
    static const struct {
        const char *word;
        clv_spectrum_role role;
    } roles[] = { { "wave", CLV_ROLE_WAVE }, { "loglam", CLV_ROLE_LOG_WAVE },
                  { "flux", CLV_ROLE_FLUX }, { "error", CLV_ROLE_ERROR },
                  { "ivar", CLV_ROLE_IVAR }, { "var", CLV_ROLE_VARIANCE },
                  { "mask", CLV_ROLE_MASK }, { "wdisp", CLV_ROLE_LSF } };
    for (size_t i = 0; i < CLV_LEN(roles); ++i)
        if (strlen(roles[i].word) == length && strncmp(word, roles[i].word, length) == 0)
            return roles[i].role;
    return CLV_ROLE_NONE;
}

int specfit_read_columns(specfit_args *a)
{
    for (const char *at = a->columns; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, "=,"),
                     name = at[length] == '=' ? strcspn(at + length + 1, ",") : 0;
        const clv_spectrum_role role = role_called(at, length);
        const int part = (int)strcspn(at, ",");
        if (role && name && *a->names.of[role])
            return cli_error(cli_running(), CLI_USAGE,
                             "--columns: %.*s is given twice: \"%s\" and \"%.*s\"; a role has one "
                             "column",
                             (int)length, at, a->names.of[role], (int)name, at + length + 1);
        for (int other = 1; other < CLV_ROLES && role && name; ++other)
            if (strlen(a->names.of[other]) == name &&
                strncasecmp(a->names.of[other], at + length + 1, name) == 0)
                return cli_error(cli_running(), CLI_USAGE,
                                 "--columns: the column \"%s\" is given for two roles; each role "
                                 "has a column of its own",
                                 a->names.of[other]);
        if (!role || !name || name >= sizeof a->names.of[role])
            return cli_error(cli_running(), CLI_USAGE,
                             "--columns has \"%.*s\", but it must be ROLE=NAME,... such as "
                             "wave=LAM,flux=COUNTS,error=RMS with names of at most %zu characters; "
                             "the roles are wave, loglam, flux, error, ivar, var, mask and wdisp",
                             part, at, sizeof a->names.of[0] - 1);
        snprintf(a->names.of[role], sizeof a->names.of[role], "%.*s", (int)name, at + length + 1);
    }
    return CLI_OK;
}

/* ---- wavelengths ------------------------------------------------------------------------------ */

int specfit_read_ignored(specfit_args *a, const specfit_table *t)
{
    bool desi = false;
    for (size_t i = 0; i < t->input_count; ++i)
        desi |= !t->inputs[i].single;
    static const double dichroic[2] = { 4300, 4450 }; /* as in rvspecfit for DESI */
    if (!a->ignore) {
        if (desi) a->ignored[0] = dichroic[0], a->ignored[1] = dichroic[1];
        a->ignored_count = desi;
        return CLI_OK;
    }
    for (const char *at = a->ignore; strcmp(a->ignore, "none") != 0 && at;) {
        const char *comma = strchr(at, ',');
        char part[64], *colon;
        double *range = a->ignored + 2 * a->ignored_count;
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        snprintf(part, sizeof part, "%.*s", (int)CLV_MIN(length, sizeof part - 1), at);
        colon = strchr(part, ':');
        if (colon) *colon = '\0';
        if (length >= sizeof part || !colon || !clv_parse_double(part, &range[0]) ||
            !clv_parse_double(colon + 1, &range[1]) || !(range[0] < range[1]))
            return cli_error(cli_running(), CLI_USAGE,
                             "--ignore is \"%s\", but it must be \"none\" or ranges of wavelengths "
                             "in Angstrom with the smaller one first, such as 4300:4450,7590:7700",
                             a->ignore);
        if (++a->ignored_count == SPECFIT_IGNORED && comma)
            return cli_error(cli_running(), CLI_USAGE, "--ignore has more than %d ranges",
                             SPECFIT_IGNORED);
        at = comma ? comma + 1 : NULL;
    }
    return CLI_OK;
}

int specfit_read_barycentric(specfit_args *a)
{
    a->velocity_added = 0;
    if (!a->barycentric) return CLI_OK;
    if (strcmp(a->barycentric, "header") == 0)
        a->velocity_added = NAN;
    else if (!clv_parse_double(a->barycentric, &a->velocity_added) ||
             fabs(a->velocity_added) > 1000)
        return cli_error(cli_running(), CLI_USAGE,
                         "--barycentric is \"%s\", but it must be a velocity of at most 1000 km/s, "
                         "or \"header\"",
                         a->barycentric);
    return CLI_OK;
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
            return cli_error(cli_running(), CLI_FAILED, "not enough memory for TARGETIDs");
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
        if (!code) code = add_ids(after_mark(text), a->targets_file, list);
        clv_free(text);
    }
    if (list->count) qsort(list->ids, list->count, sizeof *list->ids, by_number);
    return code;
}
