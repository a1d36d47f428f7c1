/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as the text that a language model was trained on: chat templates. */
#ifndef CLEAVE_CHAT_H
#define CLEAVE_CHAT_H

#include <cleave/export.h>
#include <cleave/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

CLV_BEGIN_DECLS

/** One turn of a conversation. Frozen. */
typedef struct clv_chat_message {
    const char *role;    /**< "system", "user", "assistant"; what the template knows */
    const char *content; /**< UTF-8 */
} clv_chat_message;

/** Start with CLV_INIT. */
typedef struct clv_chat_options {
    size_t size;           /**< sizeof(clv_chat_options) */
    const char *bos, *eos; /**< texts of the tokens that begin and end a text; NULL: "" */
    bool closed; /**< the text ends behind the last message; else where the model's answer begins */
    int64_t now; /**< seconds since 1970, for templates that write the date; 0: the clock's */
} clv_chat_options;

/**
 * Renders a conversation by a template, as Jinja does with trim_blocks and lstrip_blocks.
 *
 * What templates of language models use of Jinja is known: for, if, set, macro, filter, expressions,
 * slices, the usual filters, tests and methods of texts. There are no imports, no attributes but those of
 * dictionaries, and limits for steps (2 million), memory (256 MB) and nesting.
 *
 * @param source    the template: UTF-8, terminated.
 * @param messages  in order.
 * @param text      out: UTF-8, terminated; free with clv_free. NULL after a failure.
 * @param marks     out, may be NULL: for each byte of the text 1 when it came from a message, else 0; free
 *                  with clv_free. Special tokens must only be looked for where it is 0
 *                  (clv_tokenize_marked).
 * @param length    out: bytes of the text.
 * @return CLV_OK; CLV_E_UNSUPPORTED (the template uses something that is not known: named, with its line);
 *         CLV_E_FORMAT (it is no template); CLV_E_ARGUMENT (the template refuses the conversation, with its
 *         words; a NULL; text that is not UTF-8); CLV_E_SHAPE (a limit); CLV_E_MEMORY.
 * Threads: any.
 */
CLV_API clv_status clv_chat_render(const char *source, const clv_chat_message *messages,
                                   size_t count, const clv_chat_options *options, char **text,
                                   unsigned char **marks, size_t *length);

/** The family of models whose conversations look as this template writes them ("chatml", "llama3", ...), by
 *  the special tokens in it; NULL: none that is known. */
CLV_API const char *clv_chat_family(const char *source);
/** A template for a family: chatml, llama2, llama3, mistral, gemma, phi3, zephyr; NULL: no such family. */
CLV_API const char *clv_chat_template(const char *family);

CLV_END_DECLS

#endif
