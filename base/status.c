/* SPDX-License-Identifier: Apache-2.0 */
/* Names statuses, and keeps each thread's last failure. */
#include "base/error.h"

#include "base/text.h"
#include "base/visible.h"

#include <cleave/version.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_message[sizeof((clv_error *)0)->message];
static _Thread_local char *last_detail; /* freed by the key's destructor at thread end */

static pthread_key_t detail_key;
static pthread_once_t detail_once = PTHREAD_ONCE_INIT;

static void make_detail_key(void)
{
    (void)pthread_key_create(&detail_key, free);
}

static void set_detail(const char *text)
{
    pthread_once(&detail_once, make_detail_key);
    free(last_detail);
    last_detail = text && *text ? strdup(text) : NULL; /* no memory: no detail */
    (void)pthread_setspecific(detail_key, last_detail);
}

/* Writes a message that is too long or has characters that may not be shown. Leaves out its middle: a name may be long,
 * and the reason comes after it. Does nothing if there is no memory for this. */
static void set_whole_message(const char *format, va_list args)
{
    enum { HEAD = sizeof last_message / 3, TAIL = sizeof last_message - HEAD - sizeof " ... " };
    clv_text raw = { 0 }, shown = { 0 };
    clv_text_vadd(&raw, format, args);
    clv_text_visible(&shown, clv_text_get(&raw), raw.length);
    const char *text = clv_text_get(&shown);
    if (raw.failed || shown.failed) {
        /* the message stays cut */
    } else if (shown.length < sizeof last_message) {
        clv_copy_string(last_message, sizeof last_message, text);
    } else {
        char head[HEAD + 1];
        const char *tail = text + shown.length - TAIL;
        while ((*tail & 0xC0) == 0x80) /* within a character of UTF-8 */
            ++tail;
        clv_copy_string(head, sizeof head, text);
        snprintf(last_message, sizeof last_message, "%s ... %s", head, tail);
    }
    clv_text_clear(&raw), clv_text_clear(&shown);
}

static void set_message(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = clv_vformat(last_message, sizeof last_message, format, args);
    if (length < 0) last_message[0] = '\0';
    if (length >= (int)sizeof last_message ||
        !clv_is_visible(last_message, strlen(last_message))) /* names and texts may be foreign */
        set_whole_message(format, again);
    va_end(again);
    clv_make_visible(last_message, sizeof last_message);
}

#undef clv_fail /* of the analyzer */
clv_status clv_fail(clv_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_message(format, args);
    va_end(args);
    if (last_detail) set_detail(NULL);
    return status;
}

clv_status clv_fail_detail(clv_status status, const char *detail, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_message(format, args);
    va_end(args);
    set_detail(detail);
    return status;
}

void clv_error_take(clv_error *error, clv_status status)
{
    clv_error_clear(error);
    error->status = status;
    snprintf(error->message, sizeof error->message, "%s", last_message);
    error->detail = last_detail ? strdup(last_detail) : NULL;
}

clv_status clv_error_give(const clv_error *error)
{
    return clv_fail_detail(error->status, error->detail, "%s", error->message);
}

void clv_error_clear(clv_error *error)
{
    free(error->detail);
    *error = (clv_error){ 0 };
}

const char *clv_error_message(void)
{
    return last_message;
}

const char *clv_error_detail(void)
{
    return last_detail ? last_detail : "";
}

const char *clv_status_name(clv_status status)
{
    switch (status) {
    case CLV_OK:
        return "CLV_OK";
    case CLV_E_ARGUMENT:
        return "CLV_E_ARGUMENT";
    case CLV_E_SHAPE:
        return "CLV_E_SHAPE";
    case CLV_E_FORMAT:
        return "CLV_E_FORMAT";
    case CLV_E_UNSUPPORTED:
        return "CLV_E_UNSUPPORTED";
    case CLV_E_MEMORY:
        return "CLV_E_MEMORY";
    case CLV_E_DEVICE_MEMORY:
        return "CLV_E_DEVICE_MEMORY";
    case CLV_E_NO_DEVICE:
        return "CLV_E_NO_DEVICE";
    case CLV_E_DEVICE:
        return "CLV_E_DEVICE";
    case CLV_E_BUILD:
        return "CLV_E_BUILD";
    case CLV_E_WRONG_RESULT:
        return "CLV_E_WRONG_RESULT";
    case CLV_E_IO:
        return "CLV_E_IO";
    case CLV_E_CANCELLED:
        return "CLV_E_CANCELLED";
    case CLV_E_BUSY:
        return "CLV_E_BUSY";
    case CLV_E_INTERNAL:
        return "CLV_E_INTERNAL";
    }
    return "unknown status";
}

const char *clv_version(void)
{
    return CLV_VERSION_STRING;
}
