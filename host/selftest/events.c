/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one line of JSON per event; runs in the process that tests a device. */
#include "host/cli/cli.h"
#include "host/selftest/selftest.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdarg.h>

static void write_event(selftest *test, clv_json *event)
{
    char *text = clv_json_text(event, true);
    if (text) cli_say(test->out, "%s\n", text);
    clv_json_text_free(text);
    clv_json_free(event);
}

static void begin(selftest *test, const char *format, va_list args)
{
    char name[80];
    vsnprintf(name, sizeof name, format, args);
    clv_json *event = clv_json_object();
    clv_json_add_string(event, "begin", name);
    write_event(test, event);
}

void selftest_begin(selftest *test, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    begin(test, format, args);
    va_end(args);
    test->began = clv_now();
}

static void end(selftest *test, clv_status status, double error, double limit, double seconds)
{
    clv_json *event = clv_json_object();
    clv_json_add_number(event, "seconds", seconds);
    clv_json_add_number(event, "error", status ? NAN : error); /* not finite: null */
    clv_json_add_number(event, "limit", limit);
    clv_json_add_bool(event, "ok", !status && error <= limit);
    if (status) clv_json_add_string(event, "message", clv_error_message());
    write_event(test, event);
}

void selftest_end(selftest *test, clv_status status, double error, double limit)
{
    end(test, status, error, limit, clv_now() - test->began);
}

void selftest_also(selftest *test, double error, double limit, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    begin(test, format, args);
    va_end(args);
    end(test, CLV_OK, error, limit, NAN);
}

void selftest_skip(selftest *test, const char *why)
{
    clv_json *event = clv_json_object();
    clv_json_add_number(event, "seconds", clv_now() - test->began);
    clv_json_add_bool(event, "ok", true);
    clv_json_add_string(event, "skipped", why);
    write_event(test, event);
}
