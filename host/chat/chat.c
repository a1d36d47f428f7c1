/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a conversation with a chat template. */
#include "host/chat/template.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/unicode.h"

#include <cleave/chat.h>

#include <string.h>
#include <time.h>

static clv_status check_text(const char *what, size_t number, const char *text)
{
    const size_t length = strlen(text);
    uint32_t c;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bytes = clv_utf8_decode(text + at, length - at, &c);
        if (!bytes)
            return clv_fail(CLV_E_ARGUMENT, "clv_chat_render: %s %zu: byte %zu is not UTF-8", what,
                            number, at);
    }
    return CLV_OK;
}

static chat_value make_messages(chat_run *run, const clv_chat_message *messages, size_t count)
{
    const chat_value list = chat_list_new(run);
    for (size_t i = 0; i < count && !run->status; ++i) {
        const clv_chat_message *m = &messages[i];
        const chat_value message = chat_dict_new(run);
        chat_dict_set(run, message, chat_text("role"),
                      chat_copy(run, m->role, strlen(m->role), false));
        chat_dict_set(run, message, chat_text("content"),
                      chat_copy(run, m->content, strlen(m->content), true));
        chat_list_add(run, list, message);
    }
    return list;
}

static chat_value make_globals(chat_run *run, const clv_chat_message *messages, size_t count,
                               const clv_chat_options *o)
{
    const chat_value globals = chat_dict_new(run);
    const struct {
        const char *name;
        chat_value value;
    } all[] = { { "messages", make_messages(run, messages, count) },
                { "tools", chat_none }, /* as in transformers, where nothing was given */
                { "documents", chat_none },
                { "add_generation_prompt", chat_bool(!o->closed) },
                { "bos_token", chat_text(o->bos ? o->bos : "") },
                { "eos_token", chat_text(o->eos ? o->eos : "") } };
    for (size_t i = 0; i < CLV_LEN(all); ++i)
        chat_dict_set(run, globals, chat_text(all[i].name), all[i].value);
    return globals;
}

static void render(chat_run *run, const clv_chat_message *messages, size_t count,
                   const clv_chat_options *o, chat_out *out)
{
    const chat_token *tokens = chat_tokens(run, run->source);
    const chat_node *statements = run->status ? NULL : chat_parse(run, tokens);
    const chat_value globals = run->status ? chat_undefined : make_globals(run, messages, count, o);
    if (!run->status) chat_execute(run, statements, globals, out);
}

static clv_status copy_out(chat_string all, char **text, unsigned char **marks, size_t *length)
{
    *text = clv_alloc(all.length + 1, 1);
    if (marks) *marks = clv_alloc(all.length + 1, 1);
    if (!*text || (marks && !*marks)) {
        clv_free(*text);
        if (marks) clv_free(*marks), *marks = NULL;
        *text = NULL;
        return clv_fail(CLV_E_MEMORY, "clv_chat_render: not enough memory for %zu bytes",
                        all.length);
    }
    if (all.length) memcpy(*text, all.data, all.length);
    (*text)[all.length] = '\0';
    if (marks && all.length) memcpy(*marks, all.marks, all.length);
    *length = all.length;
    return CLV_OK;
}

clv_status clv_chat_render(const char *source, const clv_chat_message *messages, size_t count,
                           const clv_chat_options *options, char **text, unsigned char **marks,
                           size_t *length)
{
    clv_chat_options o;
    if (!text || !length)
        return clv_fail(CLV_E_ARGUMENT, "clv_chat_render: text or length is NULL");
    *text = NULL, *length = 0;
    if (marks) *marks = NULL;
    if (!source || (!messages && count))
        return clv_fail(CLV_E_ARGUMENT, "clv_chat_render: source or messages is NULL");
    CLV_TRY(clv_take_struct(&o, sizeof o, options, "clv_chat_render", "clv_chat_options"));
    CLV_TRY(check_text("template", 0, source));
    for (size_t i = 0; i < count; ++i) {
        if (!messages[i].role || !messages[i].content)
            return clv_fail(CLV_E_ARGUMENT,
                            "clv_chat_render: message %zu has a role or content that is NULL", i);
        CLV_TRY(check_text("role of message", i, messages[i].role));
        CLV_TRY(check_text("message", i, messages[i].content));
    }
    chat_out out = { 0 };
    chat_run run = { .source = source, .now = o.now ? o.now : (int64_t)time(NULL) };
    render(&run, messages, count, &o, &out);
    const clv_status status =
        run.status ? run.status : copy_out(chat_put_end(&out), text, marks, length);
    chat_release(&run.memory);
    return status;
}
