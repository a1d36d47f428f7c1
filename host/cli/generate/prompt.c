/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the prompt of `cleave generate`: text, a file, standard input, token numbers or a question. */
#include "host/cli/generate/generate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <cleave/init.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30, READ_AT_ONCE = 1 << 16 };

static clv_status read_stdin(clv_text *out)
{
    char part[4096];
    size_t got;
    while ((got = fread(part, 1, sizeof part, stdin)) > 0) {
        clv_text_bytes(out, part, got);
        if (out->length > MOST_BYTES)
            return clv_fail(CLV_E_FORMAT, "standard input: the prompt has more than %d bytes",
                            MOST_BYTES);
    }
    if (ferror(stdin))
        return clv_fail(CLV_E_IO, "standard input: cannot read: %s", strerror(errno));
    return out->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for the prompt") : CLV_OK;
}

static clv_status read_text(const generate_args *a, clv_text *out)
{
    clv_text_bytes(out, "", 0);
    if (a->prompt && strcmp(a->prompt, "-") == 0) return read_stdin(out);
    if (a->prompt) {
        clv_text_bytes(out, a->prompt, strlen(a->prompt));
        return out->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for the prompt") : CLV_OK;
    }
    char *data;
    size_t length;
    CLV_TRY(clv_file_read(a->prompt_file, MOST_BYTES, &data, &length));
    clv_text_bytes(out, data, length);
    clv_free(data);
    return out->failed ? clv_fail(CLV_E_MEMORY, "not enough memory for the prompt") : CLV_OK;
}

/* Reads token numbers such as "1,2,3". */
static clv_status read_ids(generate_state *s)
{
    clv_language_info info = CLV_INIT(clv_language_info);
    CLV_TRY(clv_language_get_info(s->language, &info));
    clv_token_rows *rows = &s->prompt;
    for (const char *at = s->args->ids; *at;) {
        char number[24];
        uint64_t id;
        const size_t span = strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", (int)CLV_MIN(span, sizeof number - 1), at);
        if (span >= sizeof number || !clv_parse_u64(number, &id) || id >= info.vocabulary)
            return clv_fail(CLV_E_ARGUMENT,
                            "--ids is \"%s\", but it must be token numbers from 0 to %zu", number,
                            info.vocabulary - 1);
        if (!clv_reserve(&rows->ids, &rows->id_room, rows->tokens + 1, sizeof *rows->ids))
            return clv_fail(CLV_E_MEMORY, "--ids: out of memory");
        rows->ids[rows->tokens++] = (int32_t)id;
        at += span + (at[span] == ',');
    }
    return CLV_OK;
}

clv_status generate_render(generate_state *s, const clv_chat_message *messages, size_t count)
{
    const char *note = NULL;
    CLV_TRY(clv_language_chat(s->language, messages, count, s->args->family, &s->prompt, &note));
    if (note && *note && !s->args->common.quiet) cli_warn(cli_running(), "%s", note);
    return CLV_OK;
}

static clv_status ask(generate_state *s, const clv_text *text)
{
    clv_chat_message messages[2];
    size_t count = 0;
    if (memchr(text->data, '\0', text->length))
        return clv_fail(CLV_E_FORMAT, "the prompt has a NUL byte, but --chat needs text");
    if (s->args->system) messages[count++] = (clv_chat_message){ "system", s->args->system };
    messages[count++] = (clv_chat_message){ "user", text->data };
    return generate_render(s, messages, count);
}

static clv_status tokenize(generate_state *s, const clv_text *text)
{
    const char *bytes = text->data;
    const clv_tokenize_options options = { .size = sizeof options, .what = "the prompt" };
    CLV_TRY(clv_tokenize(clv_language_tokenizer(s->language), &bytes, &text->length, 1, &options,
                         &s->prompt));
    if (s->prompt.replaced && !s->args->common.quiet)
        cli_warn(cli_running(), "%zu byte%s of the prompt %s not UTF-8 and became U+FFFD",
                 s->prompt.replaced, s->prompt.replaced == 1 ? "" : "s",
                 s->prompt.replaced == 1 ? "is" : "are");
    return CLV_OK;
}

static clv_status expect_tokens(const generate_state *s)
{
    if (s->prompt.tokens) return CLV_OK;
    return clv_fail(CLV_E_ARGUMENT, "the prompt is empty, and this model starts no text with a "
                                    "token of its own; give a prompt of at least one token");
}

static clv_status take_text(generate_state *s, const clv_text *text)
{
    const bool asks = s->args->chat && strcmp(s->args->family, "none") != 0;
    CLV_TRY(asks ? ask(s, text) : tokenize(s, text));
    return expect_tokens(s);
}

clv_status generate_take_prompt(generate_state *s, const char *bytes, size_t length)
{
    clv_text text = { 0 };
    clv_text_bytes(&text, "", 0);
    clv_text_bytes(&text, bytes, length);
    const clv_status status = text.failed
                                  ? clv_fail(CLV_E_MEMORY, "not enough memory for the prompt")
                                  : take_text(s, &text);
    clv_text_clear(&text);
    return status;
}

clv_status generate_read_prompt(generate_state *s)
{
    const generate_args *a = s->args;
    clv_text text = { 0 };
    if (a->ids) {
        CLV_TRY(read_ids(s));
        return expect_tokens(s);
    }
    clv_status status = read_text(a, &text);
    if (!status) status = take_text(s, &text);
    clv_text_clear(&text);
    return status;
}
