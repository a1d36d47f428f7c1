/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options by their tables (getopt_long), and makes the help text from the same rows. */
#define _GNU_SOURCE
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/environment.h"
#include "base/text.h"
#include "host/cli/nearest.h"
#include "host/cli/shard.h"

#include <cleave/version.h>

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const cli_option cli_global_options[] = {
    { "icd", CLI_TEXT, NULL, "PATH", "OpenCL drivers: libraries, .icd files or their folders",
      NULL },
    { NULL },
};
const cli_option cli_main_options[] = {
    { "h,help", CLI_FLAG, NULL, NULL, "print this text; after a command, its options", NULL },
    { "V,version", CLI_FLAG, NULL, NULL, "print the version", NULL },
    { NULL },
};

const cli_exit_code cli_exit_codes[] = {
    { CLI_OK, "done" },
    { CLI_FAILED,
      "failed while running: an output cannot be written, memory runs out, or a driver fails" },
    { CLI_USAGE, "wrong usage or bad input: an option, a variable, a name or a file is wrong" },
    { CLI_NOT_THERE, "a device or mode that was asked for is missing" },
    { CLI_ICD_BROKEN, "cleave probe --strict: a driver crashed or hung" },
    { CLI_WRONG, "a device gave wrong results" },
    { CLI_INTERRUPTED, "interrupted" },
    { 0, NULL },
};

int cli_print_version(void)
{
    cli_say(stdout, "cleave %s\n", clv_version());
    return CLI_OK;
}

enum { MAX_TABLES = 5, MAX_OPTIONS = 64, HELP_CODE = 1000, VERSION_CODE, FIRST_CODE };

static void vsay(const cli_command *command, const char *tone, const char *format, va_list args)
{
    clv_text text = { 0 };
    clv_text_vadd(&text, format, args);
    cli_say_always(stderr, "%scleave %s: %s%s\n", cli_speaker(), command->name, tone,
                   clv_text_get(&text));
    clv_text_clear(&text);
}

int cli_error(const cli_command *command, int code, const char *format, ...)
{
    va_list args;
    const struct timespec while_rank_0_says_it = { 0, 500000000 };
    if (*cli_speaker()) nanosleep(&while_rank_0_says_it, NULL);
    va_start(args, format);
    vsay(command, "", format, args);
    va_end(args);
    return code;
}

void cli_warn(const cli_command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!*cli_speaker()) vsay(command, "warning: ", format, args);
    va_end(args);
}

int cli_status(const cli_command *command, clv_status status)
{
    int code = CLI_FAILED;
    if (cli_shard_is_done(status)) return CLI_SHARD_DONE;
    switch (status) {
    case CLV_OK:
        return CLI_OK;
    case CLV_E_ARGUMENT:
    case CLV_E_SHAPE:
    case CLV_E_FORMAT:
        code = CLI_USAGE;
        break;
    case CLV_E_NO_DEVICE:
        code = CLI_NOT_THERE;
        break;
    case CLV_E_WRONG_RESULT:
        code = CLI_WRONG;
        break;
    case CLV_E_CANCELLED:
        code = CLI_INTERRUPTED;
        break;
    default:
        break;
    }
    const char *message = clv_error_message();
    const size_t name = strlen(command->name);
    if (clv_starts_with(message, command->name) && clv_starts_with(message + name, ": "))
        message += name + 2; /* cli_error already prints the command's name */
    cli_error(command, code, "%s", message);
    if (*clv_error_detail()) cli_say(stderr, "%s\n", clv_error_detail());
    return code;
}

int cli_input_status(const cli_command *command, clv_status status)
{
    const int code = cli_status(command, status);
    return status == CLV_E_IO && !cli_shard_cannot_write() ? CLI_USAGE : code;
}

/* "o,output" has the short name 'o' and the long name "output". */
const char *cli_long_name(const cli_option *option)
{
    const char *comma = strchr(option->name, ',');
    return comma ? comma + 1 : option->name[1] ? option->name : NULL;
}

char cli_short_name(const cli_option *option)
{
    return option->name[1] == '\0' || option->name[1] == ',' ? option->name[0] : '\0';
}

static void print_option(FILE *out, const cli_option *option)
{
    char left[80];
    const char *name = cli_long_name(option);
    const char letter = cli_short_name(option);
    int used = 0;
    if (letter) used += snprintf(left + used, sizeof left - (size_t)used, "-%c", letter);
    if (letter && name) used += snprintf(left + used, sizeof left - (size_t)used, ", ");
    if (name) used += snprintf(left + used, sizeof left - (size_t)used, "--%s", name);
    if (option->kind == CLI_OPTIONAL)
        used += snprintf(left + used, sizeof left - (size_t)used, "[=%s]", option->value);
    else if (option->value)
        used +=
            snprintf(left + used, sizeof left - (size_t)used, name ? "=%s" : " %s", option->value);
    if (used <= 27)
        cli_say(out, "  %-27s %s\n", left, option->help);
    else
        cli_say(out, "  %s\n  %-27s %s\n", left, "", option->help);
}

void cli_print_options(FILE *out, const cli_option *table)
{
    for (const cli_option *o = table; o->name; ++o)
        print_option(out, o);
}

static void print_command_help(const cli_command *command, const cli_option *const tables[])
{
    cli_say(stdout, "Usage: cleave %s %s\n\n%s\n\nOptions:\n", command->name, command->operands,
            command->description);
    for (size_t t = 0; tables[t]; ++t)
        cli_print_options(stdout, tables[t]);
}

static cli_describe *describe = print_command_help;

void cli_describe_with(cli_describe *writer)
{
    describe = writer ? writer : print_command_help;
}

/* Prints the command's own options and the options of all commands. */
static void describe_all(const cli_command *command, const cli_option *const tables[])
{
    static const cli_option help[] = { { "h,help", CLI_FLAG, NULL, NULL, "print this text", NULL },
                                       { "V,version", CLI_FLAG, NULL, NULL, "print the version",
                                         NULL },
                                       { NULL } };
    const cli_option *all[MAX_TABLES + 3] = { 0 };
    size_t count = 0;
    while (count < MAX_TABLES && tables[count])
        all[count] = tables[count], ++count;
    all[count] = cli_global_options;
    all[count + 1] = help;
    describe(command, all);
}

/* Translates words that an earlier release accepted for a choice; they still work but are no longer shown. */
static const char *word_of_today(const cli_option *option, const char *text)
{
    static const struct {
        const char *option, *earlier, *today;
    } renamed[] = { { "format", "seed", "xy" } };
    for (size_t i = 0; i < CLV_LEN(renamed); ++i)
        if (strcmp(option->name, renamed[i].option) == 0 && strcmp(text, renamed[i].earlier) == 0)
            return renamed[i].today;
    return text;
}

/* Stores the option's value. Returns NULL if the value is valid, else what it must be. */
static const char *take(const cli_option *option, const char *text, char *words, size_t room)
{
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->target = true;
        return NULL;
    case CLI_TEXT:
        *(const char **)option->target = text;
        return *text ? NULL : "a text that is not empty";
    case CLI_ANY_TEXT:
        *(const char **)option->target = text;
        return NULL;
    case CLI_TEXTS:
        for (size_t i = 0; i < CLI_LIST_MOST; ++i)
            if (!((cli_list *)option->target)->items[i]) {
                ((cli_list *)option->target)->items[i] = text;
                return NULL;
            }
        return "at most 32 of them";
    case CLI_OPTIONAL:
        *(const char **)option->target = text ? text : "";
        return NULL;
    case CLI_UINT:
        return clv_parse_u64(text, option->target) ? NULL : "a whole number, 0 or more";
    case CLI_INT:
        return clv_parse_i64(text, option->target) ? NULL : "a whole number";
    case CLI_DOUBLE:
        return clv_parse_double(text, option->target) ? NULL : "a number";
    case CLI_BYTES:
        return clv_parse_bytes(text, option->target) ? NULL : "a size such as 256M or 2GiB";
    case CLI_CHOICE: {
        const int place = clv_find_word(option->value, word_of_today(option, text));
        if (place < 0) return clv_list_words(option->value, "or", words, room);
        *(int *)option->target = place;
        return NULL;
    }
    }
    return "something else";
}

/* ---- the tables as getopt_long wants them ------------------------------------------------------ */

typedef struct scanner {
    const cli_command *command;
    struct option longs[MAX_OPTIONS + 3];
    const cli_option *rows[MAX_OPTIONS];
    bool given[MAX_OPTIONS];
    const char *apart; /* the argument after an option, if it was that option's value */
    char shorts[2 * MAX_OPTIONS + 5];
    size_t count;
} scanner;

static void scanner_init(scanner *s, const cli_command *command, const cli_option *const tables[])
{
    size_t length;
    *s = (scanner){ .command = command };
    clv_copy_string(s->shorts, sizeof s->shorts, ":hV");
    length = strlen(s->shorts);
    for (size_t t = 0; tables[t]; ++t)
        for (const cli_option *o = tables[t]; o->name && s->count < MAX_OPTIONS; ++o) {
            const int argument = o->kind == CLI_FLAG       ? no_argument
                                 : o->kind == CLI_OPTIONAL ? optional_argument
                                                           : required_argument;
            s->longs[s->count] = (struct option){ cli_long_name(o) ? cli_long_name(o) : "",
                                                  argument, NULL, FIRST_CODE + (int)s->count };
            if (cli_short_name(o)) {
                s->shorts[length++] = cli_short_name(o);
                if (argument == required_argument) s->shorts[length++] = ':';
            }
            s->rows[s->count++] = o;
        }
    s->longs[s->count] = (struct option){ "help", no_argument, NULL, HELP_CODE };
    s->longs[s->count + 1] = (struct option){ "version", no_argument, NULL, VERSION_CODE };
}

/* Returns the row of a code that getopt_long returned, or SIZE_MAX. */
static size_t row_of(const scanner *s, int code)
{
    for (size_t i = 0; i < s->count; ++i)
        if (code == FIRST_CODE + (int)i || (code < 256 && code == cli_short_name(s->rows[i])))
            return i;
    return SIZE_MAX;
}

/* Writes the option's name: "--output", or "-o" if it has no long name or the user wrote the short one. */
static const char *name_of(const cli_option *option, bool by_letter, char out[64])
{
    const char *name = cli_long_name(option);
    if (name && !by_letter)
        snprintf(out, 64, "--%s", name);
    else
        snprintf(out, 64, "-%c", cli_short_name(option));
    return out;
}

/* Reports an unknown option such as "--outptu=x" and suggests what was meant. */
static int unknown(const scanner *s, const char *written)
{
    const char *names[MAX_OPTIONS + 3];
    char name[64], others[200] = "";
    size_t count = 0, matches = 0;
    snprintf(name, sizeof name, "%.*s", (int)CLV_MIN(strcspn(written + 2, "="), (size_t)60),
             written + 2);
    for (const struct option *o = s->longs; o->name; ++o) {
        if (!*o->name) continue;
        names[count++] = o->name;
        if (!*name || !clv_starts_with(o->name, name)) continue;
        const size_t used = strlen(others);
        snprintf(others + used, sizeof others - used, "%s--%s", matches++ ? ", " : "", o->name);
    }
    if (matches > 1)
        return cli_error(s->command, CLI_USAGE, "--%s is short for several options: %s", name,
                         others);
    const char *near = cli_nearest(name, names, count);
    if (near)
        return cli_error(s->command, CLI_USAGE,
                         "there is no option --%s; did you mean --%s? `cleave %s --help` lists all",
                         name, near, s->command->name);
    return cli_error(s->command, CLI_USAGE, "there is no option --%s; `cleave %s --help` lists all",
                     name, s->command->name);
}

static int refuse(const scanner *s, int code, const char *written)
{
    char name[64];
    const size_t row = row_of(s, optopt);
    const bool by_letter = optopt && optopt < 256;
    if (code == ':' && row != SIZE_MAX)
        return cli_error(s->command, CLI_USAGE, "%s needs a value: %s%s%s",
                         name_of(s->rows[row], by_letter, name), name, by_letter ? " " : "=",
                         s->rows[row]->value ? s->rows[row]->value : "VALUE");
    if (optopt >= HELP_CODE)
        return cli_error(s->command, CLI_USAGE, "%.*s takes no value: write it without \"%s\"",
                         (int)strcspn(written, "="), written, written + strcspn(written, "="));
    if (by_letter)
        return cli_error(s->command, CLI_USAGE,
                         "there is no option -%c; `cleave %s --help` lists all", optopt,
                         s->command->name);
    return unknown(s, written);
}

static int take_option(scanner *s, size_t row, bool by_letter)
{
    const cli_option *option = s->rows[row];
    char name[64], words[200];
    name_of(option, by_letter, name);
    if (optarg && option->kind != CLI_OPTIONAL && optarg == s->apart &&
        clv_starts_with(optarg, "--"))
        return cli_error(
            s->command, CLI_USAGE,
            "%s needs a value, but \"%s\" follows, which looks like an option; if it is "
            "the value, write %s%s%s",
            name, optarg, name, by_letter ? "" : "=", optarg);
    if (by_letter && optarg && *optarg == '=')
        return cli_error(s->command, CLI_USAGE,
                         "%s is \"%s\", but a one-letter option takes no \"=\"; write %s %s", name,
                         optarg, name, optarg + 1);
    const char *expected = take(option, optarg, words, sizeof words);
    if (expected)
        return cli_error(s->command, CLI_USAGE, "%s is \"%s\", but it must be %s", name, optarg,
                         expected);
    if (option->given) *option->given = true;
    s->given[row] = true;
    return -1;
}

/* Options override variables: removes the variable of every given option from the environment, then checks the rest. */
static int check_environment(const scanner *s)
{
    for (size_t i = 0; i < s->count; ++i)
        if (s->given[i] && s->rows[i]->variable) unsetenv(s->rows[i]->variable);
    return cli_status(s->command, clv_environment_check());
}

static const cli_command *running;

const cli_command *cli_running(void)
{
    return running;
}

int cli_parse(const cli_command *command, const cli_option *const tables[], int argc, char **argv,
              int *operands)
{
    scanner s;
    running = command;
    scanner_init(&s, command, tables);
    optind = 0; /* restarts glibc's scan */
    for (;;) {
        const int code = getopt_long(argc, argv, s.shorts, s.longs, NULL);
        if (code == -1) break;
        if (code == 'h' || code == HELP_CODE) {
            describe_all(command, tables);
            return CLI_OK;
        }
        if (code == 'V' || code == VERSION_CODE) return cli_print_version();
        const size_t row = row_of(&s, code);
        if (code == ':' || code == '?' || row == SIZE_MAX)
            return refuse(&s, code, argv[optind - 1]);
        s.apart = optind > 1 ? argv[optind - 1] : NULL;
        const int bad = take_option(&s, row, code < 256);
        if (bad >= 0) return bad;
    }
    *operands = argc - optind;
    memmove(argv + 1, argv + optind, (size_t)*operands * sizeof *argv);
    const int bad = check_environment(&s);
    return bad ? bad : -1;
}

int cli_check_operands(const cli_command *command, const char *names, int count,
                       char *const *operands)
{
    const char *at = names;
    for (int i = 0; i < count; ++i) {
        if (!*at)
            return cli_error(command, CLI_USAGE,
                             "\"%s\" is an unexpected argument; usage: cleave %s %s", operands[i],
                             command->name, command->operands);
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (!*at) return -1;
    return cli_error(command, CLI_USAGE, "%.*s is missing; usage: cleave %s %s",
                     (int)strcspn(at, ","), at, command->name, command->operands);
}
