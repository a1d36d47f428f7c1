/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: parsing (getopt_long) and the help text made from the same rows. */
#define _GNU_SOURCE
#include "host/cli/cli.h"

#include "base/alloc.h"
#include "base/text.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLES = 4, MAX_OPTIONS = 64, HELP_CODE = 1000, FIRST_CODE = 1001 };

static void vsay(const cli_command *command, const char *tone, const char *format, va_list args)
{
    fprintf(stderr, "cleave %s: %s", command->name, tone);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_error(const cli_command *command, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsay(command, "", format, args);
    va_end(args);
    return code;
}

void cli_warn(const cli_command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsay(command, "warning: ", format, args);
    va_end(args);
}

int cli_status(const cli_command *command, clv_status status)
{
    int code = CLI_FAILED;
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
    cli_error(command, code, "%s", clv_error_message());
    if (*clv_error_detail()) fprintf(stderr, "%s\n", clv_error_detail());
    return code;
}

int cli_input_status(const cli_command *command, clv_status status)
{
    const int code = cli_status(command, status);
    return status == CLV_E_IO ? CLI_USAGE : code;
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
        fprintf(out, "  %-27s %s\n", left, option->help);
    else
        fprintf(out, "  %s\n  %-27s %s\n", left, "", option->help);
}

void cli_print_options(FILE *out, const cli_option *table)
{
    for (const cli_option *o = table; o->name; ++o)
        print_option(out, o);
}

static void print_command_help(const cli_command *command, const cli_option *const tables[])
{
    printf("Usage: cleave %s %s\n\n%s\n\nOptions:\n", command->name, command->operands,
           command->description);
    for (size_t t = 0; tables[t]; ++t)
        cli_print_options(stdout, tables[t]);
}

static cli_describe *describe = print_command_help;

void cli_describe_with(cli_describe *writer)
{
    describe = writer ? writer : print_command_help;
}

/* The command's own options, and those that every command has. */
static void describe_all(const cli_command *command, const cli_option *const tables[])
{
    static const cli_option help[] = { { "h,help", CLI_FLAG, NULL, NULL, "this text", NULL },
                                       { NULL } };
    const cli_option *all[MAX_TABLES + 3] = { 0 };
    size_t count = 0;
    while (count < MAX_TABLES && tables[count])
        all[count] = tables[count], ++count;
    all[count] = cli_global_options;
    all[count + 1] = help;
    describe(command, all);
}

static bool choose(const cli_option *option, const char *text, int *out)
{
    const size_t length = strlen(text);
    int index = 0;
    for (const char *at = option->value; *at; ++index) {
        const size_t span = strcspn(at, ",");
        if (span == length && memcmp(at, text, span) == 0) {
            *out = index;
            return true;
        }
        at += span + (at[span] == ',');
    }
    return false;
}

/* NULL when the value is good, else what was expected. */
static const char *take(const cli_option *option, const char *text)
{
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->target = true;
        return NULL;
    case CLI_TEXT:
        *(const char **)option->target = text;
        return NULL;
    case CLI_OPTIONAL:
        *(const char **)option->target = text ? text : "";
        return NULL;
    case CLI_UINT:
        return clv_parse_u64(text, option->target) ? NULL : "a whole number from 0 up";
    case CLI_INT:
        return clv_parse_i64(text, option->target) ? NULL : "a whole number";
    case CLI_DOUBLE:
        return clv_parse_double(text, option->target) ? NULL : "a number";
    case CLI_BYTES:
        return clv_parse_bytes(text, option->target) ? NULL : "a size such as 256M or 2GiB";
    case CLI_CHOICE:
        return choose(option, text, option->target) ? NULL : option->value;
    }
    return "something else";
}

int cli_parse(const cli_command *command, const cli_option *const tables[], int argc, char **argv,
              int *operands)
{
    struct option longs[MAX_OPTIONS + 2];
    const cli_option *rows[MAX_OPTIONS];
    char shorts[2 * MAX_OPTIONS + 4] = ":h";
    size_t count = 0, short_length = 2;
    int exit_code = -1;

    memset(longs, 0, sizeof longs);
    for (size_t t = 0; tables[t]; ++t)
        for (const cli_option *o = tables[t]; o->name && count < MAX_OPTIONS; ++o) {
            const int argument = o->kind == CLI_FLAG       ? no_argument
                                 : o->kind == CLI_OPTIONAL ? optional_argument
                                                           : required_argument;
            longs[count] = (struct option){ cli_long_name(o) ? cli_long_name(o) : "", argument,
                                            NULL, FIRST_CODE + (int)count };
            if (cli_short_name(o)) {
                shorts[short_length++] = cli_short_name(o);
                if (argument == required_argument) shorts[short_length++] = ':';
            }
            rows[count++] = o;
        }
    shorts[short_length] = '\0';
    longs[count] = (struct option){ "help", no_argument, NULL, HELP_CODE };

    optind = 0; /* starts glibc's scan afresh */
    for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const cli_option *option = NULL;
        if (code == 'h' || code == HELP_CODE) {
            describe_all(command, tables);
            return CLI_OK;
        }
        for (size_t i = 0; i < count; ++i)
            if (code == FIRST_CODE + (int)i || (code < 256 && code == cli_short_name(rows[i])))
                option = rows[i];
        if (code == ':' || code == '?' || !option) {
            const char *what = argv[optind - 1];
            if (code == ':')
                exit_code = cli_error(command, CLI_USAGE, "%s needs a value", what);
            else
                exit_code = cli_error(command, CLI_USAGE, "no option %s; see cleave %s --help",
                                      what, command->name);
            return exit_code;
        }
        const char *expected = take(option, optarg);
        if (expected)
            return cli_error(command, CLI_USAGE, "--%s: \"%s\" given, expected %s%s",
                             cli_long_name(option) ? cli_long_name(option) : option->name, optarg,
                             option->kind == CLI_CHOICE ? "one of " : "", expected);
        if (option->given) *option->given = true;
    }
    *operands = argc - optind;
    memmove(argv + 1, argv + optind, (size_t)*operands * sizeof *argv);
    return -1;
}
