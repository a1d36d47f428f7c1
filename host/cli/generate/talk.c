/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave generate` as a conversation: keeps earlier messages in the cache of keys and values. */
#define _GNU_SOURCE
#include "host/cli/generate/generate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <cleave/init.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct talk {
    generate_state *s;
    clv_chat_message *messages; /* owned, with their texts; a system text comes first */
    size_t count, room;
    clv_written last;
    bool told_full, is_terminal;
} talk;

static bool has_system(const talk *t)
{
    return t->count && strcmp(t->messages[0].role, "system") == 0;
}

static void drop(talk *t, size_t at, size_t count)
{
    if (!count) return;
    for (size_t i = at; i < at + count; ++i)
        clv_free((char *)(uintptr_t)t->messages[i].content);
    t->count -= count;
    memmove(t->messages + at, t->messages + at + count, (t->count - at) * sizeof *t->messages);
}

static clv_status put(talk *t, size_t at, const char *role, const char *text)
{
    char *copy = clv_strdup(text);
    if (!copy || !clv_reserve(&t->messages, &t->room, t->count + 1, sizeof *t->messages)) {
        clv_free(copy);
        return clv_fail(CLV_E_MEMORY, "not enough memory for a conversation");
    }
    memmove(t->messages + at + 1, t->messages + at, (t->count - at) * sizeof *t->messages);
    t->messages[at] = (clv_chat_message){ role, copy };
    ++t->count;
    return CLV_OK;
}

/* Turns the conversation into tokens; drops the oldest turns if there is no room for an answer. */
static clv_status render(talk *t)
{
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(t->s->language, &info));
    for (;;) {
        const size_t first = has_system(t);
        CLV_TRY(generate_render(t->s, t->messages, t->count));
        if (t->s->prompt.tokens + 8 <= info.room) return CLV_OK;
        if (t->count - first < 3)
            return clv_fail(CLV_E_SHAPE,
                            "the message has %zu tokens, but the context has room for only %zu",
                            t->s->prompt.tokens, info.room);
        if (!t->told_full)
            cli_warn(cli_running(),
                     "the context of %zu tokens is full: the oldest messages are "
                     "forgotten",
                     info.room);
        t->told_full = true;
        drop(t, first, 2);
    }
}

/* Feeds the tokens that the cache does not have yet. */
static clv_status feed(generate_state *s)
{
    size_t held, same = 0;
    const int32_t *tokens = clv_sequence_tokens(s->sequence, &held);
    while (same < held && same + 1 < s->prompt.tokens && tokens[same] == s->prompt.ids[same])
        ++same;
    CLV_TRY(clv_sequence_rewind(s->sequence, same));
    const double started = clv_now();
    CLV_TRY(clv_sequence_feed(s->sequence, s->prompt.ids + same, s->prompt.tokens - same, NULL));
    s->prompt_s = clv_now() - started;
    s->prompt.tokens -= same; /* count only the tokens that were fed */
    return CLV_OK;
}

static clv_status reply(talk *t, const char *message)
{
    generate_clear(&t->last);
    CLV_TRY(put(t, t->count, "user", message));
    clv_status status = render(t);
    if (!status) status = feed(t->s);
    if (!status) status = generate_write(t->s, true, &t->last);
    if (status) {
        drop(t, t->count - 1, 1);
        return status;
    }
    return put(t, t->count, "assistant", t->last.text);
}

/* Reads lines up to one that does not end in a backslash; returns false at the end of the input. */
static bool read_message(const talk *t, clv_text *out)
{
    char *line = NULL;
    size_t room = 0;
    bool goes_on = true, any = false;
    clv_text_restart(out);
    clv_text_bytes(out, "", 0);
    while (goes_on) {
        if (t->is_terminal) fputs(any ? ". " : "> ", stderr);
        ssize_t length = getline(&line, &room, stdin);
        if (length < 0) break;
        any = true;
        if (length && line[length - 1] == '\n') line[--length] = '\0';
        goes_on = length && line[length - 1] == '\\';
        if (goes_on) line[length - 1] = '\n';
        clv_text_bytes(out, line, strlen(line));
    }
    free(line);
    return any && !out->failed;
}

/* Carries out /clear, /system TEXT, /stats or /exit. Returns false when the conversation ends. */
static bool obey(talk *t, const char *order)
{
    const size_t system = has_system(t);
    if (strcmp(order, "/exit") == 0) return false;
    if (strcmp(order, "/clear") == 0) {
        drop(t, system, t->count - system);
    } else if (strcmp(order, "/stats") == 0) {
        generate_summarize(t->s, &t->last);
    } else if (strncmp(order, "/system ", 8) == 0) {
        if (system) drop(t, 0, 1);
        if (put(t, 0, "system", order + 8)) cli_warn(cli_running(), "%s", clv_error_message());
    } else {
        cli_warn(
            cli_running(),
            "there is no command %.40s; the commands are /clear, /system TEXT, /stats and /exit",
            order);
    }
    return true;
}

static int converse(talk *t)
{
    clv_text message = { 0 };
    int code = CLI_OK;
    while (!code && read_message(t, &message)) {
        const char *text = clv_text_get(&message);
        if (!*text) continue;
        if (*text == '/') {
            if (!obey(t, text)) break;
            continue;
        }
        cli_catch_interrupts();
        const clv_status status = reply(t, text);
        code = cli_status(cli_running(), status);
        if (status == CLV_E_SHAPE && t->is_terminal) code = CLI_OK; /* a shorter message may fit */
        if (cli_interrupted() && !t->is_terminal) code = CLI_INTERRUPTED;
        cli_release_interrupts();
    }
    clv_text_clear(&message);
    return code;
}

int generate_talk(generate_state *s)
{
    talk t = { .s = s, .last = CLV_INIT(clv_written), .is_terminal = isatty(STDIN_FILENO) };
    int code = CLI_OK;
    if (s->args->system) code = cli_status(cli_running(), put(&t, 0, "system", s->args->system));
    if (!code && t.is_terminal && !s->args->common.quiet)
        fputs("Ctrl-D ends the conversation, Ctrl-C an answer.\n", stderr);
    if (!code) code = converse(&t);
    if (t.is_terminal) fputc('\n', stderr);
    drop(&t, 0, t.count);
    clv_free(t.messages);
    generate_clear(&t.last);
    return code;
}
