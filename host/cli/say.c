/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the command's messages for people; nothing else does. Text from files, folders and drivers never reaches a
 * terminal as a control sequence. */
#include "host/cli/cli.h"

#include "base/visible.h"

#include <stdarg.h>

static char speaker[64]; /* begins each line; "": this process prints all messages */
static bool told_less;   /* a part of standard output is missing, because memory ran out */

void cli_speak_as(const char *name)
{
    clv_copy_string(speaker, sizeof speaker, name);
}

const char *cli_speaker(void)
{
    return speaker;
}

bool cli_told_less(void)
{
    return told_less;
}

static void say(FILE *out, const char *format, va_list args)
{
    clv_text raw = { 0 }, shown = { 0 };
    clv_text_vadd(&raw, format, args);
    clv_text_visible(&shown, clv_text_get(&raw), raw.length);
    fwrite(clv_text_get(&shown), 1, shown.length, out);
    if (raw.failed || shown.failed) {
        fputs("(not enough memory for a message)\n", out);
        told_less |= out == stdout;
    }
    clv_text_clear(&raw);
    clv_text_clear(&shown);
}

void cli_vsay(FILE *out, const char *format, va_list args)
{
    if (!*speaker) say(out, format, args);
}

void cli_say(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cli_vsay(out, format, args);
    va_end(args);
}

void cli_say_always(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(out, format, args);
    va_end(args);
}
