/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a conversation to the tokens that the model's answer continues. */
#include "host/transformer/generate/language.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/unicode.h"

#include <cleave/init.h>

#include <stdio.h>
#include <string.h>

static const char merged[] =
    "the chat template has no system role: the system text is put in front of the first "
    "message";
#define TAKEN_AS(family)                                                                  \
    {                                                                                     \
        family, "the chat template is not understood; taken as one of the family " family \
    }
static const char *const taken_as[][2] = { TAKEN_AS("chatml"), TAKEN_AS("llama2"),
                                           TAKEN_AS("llama3"), TAKEN_AS("mistral"),
                                           TAKEN_AS("gemma"),  TAKEN_AS("phi3"),
                                           TAKEN_AS("zephyr") };

/* The messages of a conversation, with copies of their texts that are repaired to valid UTF-8. */
typedef struct talk {
    clv_chat_message *messages;
    clv_text *copies;
    size_t count;
} talk;

static void clear(talk *t)
{
    for (size_t i = 0; t->copies && i < t->count; ++i)
        clv_text_clear(&t->copies[i]);
    clv_free(t->messages), clv_free(t->copies);
}

static void repair(const char *text, clv_text *out)
{
    const size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        uint32_t c;
        const size_t bytes = clv_utf8_decode(text + at, length - at, &c);
        clv_text_bytes(out, bytes ? text + at : "\xEF\xBF\xBD", bytes ? bytes : 3);
        at += bytes ? bytes : clv_utf8_bad(text + at, length - at);
    }
}

static clv_status take(const clv_chat_message *messages, size_t count, talk *t)
{
    t->messages = clv_zalloc(count + 1, sizeof *t->messages);
    t->copies = clv_zalloc(count + 1, sizeof *t->copies);
    t->count = count;
    if (!t->messages || !t->copies)
        return clv_fail(CLV_E_MEMORY, "not enough memory for a conversation");
    for (size_t i = 0; i < count; ++i) {
        if (!messages[i].role || !messages[i].content)
            return clv_fail(CLV_E_ARGUMENT,
                            "clv_language_chat: message %zu has a role or content that is NULL", i);
        repair(messages[i].content, &t->copies[i]);
        if (t->copies[i].failed)
            return clv_fail(CLV_E_MEMORY, "not enough memory for a conversation");
        t->messages[i] = (clv_chat_message){ messages[i].role, clv_text_get(&t->copies[i]) };
    }
    return CLV_OK;
}

/* Prepends the system text to the first user's text, for templates without a system role. */
static clv_status merge_system(talk *t)
{
    clv_text both = { 0 };
    if (t->count < 2 || strcmp(t->messages[0].role, "system") != 0) return CLV_E_ARGUMENT;
    clv_text_add(&both, "%s\n\n%s", t->messages[0].content, t->messages[1].content);
    if (both.failed) return clv_fail(CLV_E_MEMORY, "not enough memory for a conversation");
    clv_text_clear(&t->copies[1]);
    t->copies[1] = both;
    t->messages[1].content = clv_text_get(&both);
    return CLV_OK;
}

typedef struct rendered {
    char *text;
    unsigned char *marks;
    size_t length;
} rendered;

static clv_status render(const clv_lm_model *m, const char *source, talk *t, rendered *out,
                         const char **note)
{
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    clv_chat_options options = CLV_INIT(clv_chat_options);
    clv_tokenizer_get_info(m->tokenizer, &info);
    options.bos = clv_tokenizer_piece(m->tokenizer, info.bos);
    options.eos = clv_tokenizer_piece(m->tokenizer, info.eos);
    clv_status status = clv_chat_render(source, t->messages, t->count, &options, &out->text,
                                        &out->marks, &out->length);
    if (status != CLV_E_ARGUMENT || strcmp(t->count ? t->messages[0].role : "", "system") != 0)
        return status;
    char why[300]; /* the template's error; perhaps the template lacks a system role */
    snprintf(why, sizeof why, "%s", clv_error_message());
    if (merge_system(t)) return clv_fail(status, "%s", why);
    status = clv_chat_render(source, t->messages + 1, t->count - 1, &options, &out->text,
                             &out->marks, &out->length);
    if (status) return clv_fail(CLV_E_ARGUMENT, "%s", why);
    *note = merged;
    return CLV_OK;
}

static clv_status render_auto(const clv_lm_model *m, talk *t, rendered *out, const char **note)
{
    static const char hint[] = "try --template chatml, or a plain prompt without --chat";
    if (!m->chat_template)
        return clv_fail(CLV_E_UNSUPPORTED, "%s: the model has no chat template; %s", m->path, hint);
    const clv_status status = render(m, m->chat_template, t, out, note);
    if (status != CLV_E_UNSUPPORTED && status != CLV_E_FORMAT && status != CLV_E_SHAPE)
        return status;
    char why[300];
    snprintf(why, sizeof why, "%s", clv_error_message());
    const char *family = clv_chat_family(m->chat_template);
    if (!family)
        return clv_fail(CLV_E_UNSUPPORTED, "%s: the chat template is not supported (%s); %s",
                        m->path, why, hint);
    CLV_TRY(render(m, clv_chat_template(family), t, out, note));
    clv_log(CLV_LOG_INFO, "%s: the chat template is not supported: %s", m->path, why);
    for (size_t i = 0; i < CLV_LEN(taken_as); ++i)
        if (strcmp(taken_as[i][0], family) == 0) *note = taken_as[i][1];
    return CLV_OK;
}

/* Returns whether the text already begins with the token that begins texts, so that this token is not added twice. */
static bool has_bos(const clv_lm_model *m, const rendered *r)
{
    clv_tokenizer_info info = CLV_INIT(clv_tokenizer_info);
    clv_tokenizer_get_info(m->tokenizer, &info);
    const char *bos = clv_tokenizer_piece(m->tokenizer, info.bos);
    const size_t length = bos ? strlen(bos) : 0;
    return length && r->length >= length && memcmp(r->text, bos, length) == 0;
}

clv_status clv_language_chat(const clv_language *l, const clv_chat_message *messages, size_t count,
                             const char *family, clv_token_rows *rows, const char **note)
{
    talk t = { 0 };
    rendered r = { 0 };
    const char *ignored;
    if (!note) note = &ignored;
    *note = "";
    if (!l || !messages || !rows || !l->model->tokenizer)
        return clv_fail(CLV_E_ARGUMENT, "clv_language_chat: an argument is NULL");
    const bool own = !family || strcmp(family, "auto") == 0;
    const char *source = own ? NULL : clv_chat_template(family);
    if (!own && !source)
        return clv_fail(CLV_E_ARGUMENT,
                        "clv_language_chat: there is no family \"%.40s\"; the families are chatml, "
                        "llama2, llama3, mistral, gemma, phi3 and zephyr",
                        family);
    clv_status status = take(messages, count, &t);
    if (!status)
        status = own ? render_auto(l->model, &t, &r, note) : render(l->model, source, &t, &r, note);
    if (!status) {
        const clv_tokenize_options options = { .size = sizeof options,
                                               .bare = has_bos(l->model, &r) };
        status =
            clv_tokenize_marked(l->model->tokenizer, r.text, r.marks, r.length, &options, rows);
    }
    clv_free(r.text), clv_free(r.marks);
    clear(&t);
    return status;
}
