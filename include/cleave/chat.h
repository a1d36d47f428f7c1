/* SPDX-License-Identifier: Apache-2.0 */
/* Renders chat templates, which write a conversation in the form that a language model was trained on. */
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
    const char *role;    /**< "system", "user", "assistant", or another that the template knows */
    const char *content; /**< UTF-8 */
} clv_chat_message;

/** Options of clv_chat_render. Start with CLV_INIT. */
typedef struct clv_chat_options {
    size_t size;           /**< sizeof(clv_chat_options) */
    const char *bos, *eos; /**< texts of the tokens that begin and end a text; NULL: "" */
    bool closed;           /**< end the text after the last message, not where an answer begins */
    int64_t now; /**< seconds since 1970, for templates that write the date; 0: the current time */
} clv_chat_options;

/**
 * Renders a conversation with a template, as Jinja does with trim_blocks and lstrip_blocks.
 *
 * The renderer supports the part of Jinja that templates of language models use: for, if, set, macro, filter,
 * expressions, slices, and the usual filters, tests and string methods. It has no imports and no attributes except
 * those of dictionaries, and it limits steps (2 million), memory (256 MB) and nesting.
 *
 * @param source    the template: UTF-8, terminated.
 * @param messages  [count], oldest first.
 * @param text      out: UTF-8, terminated; free with clv_free. NULL after a failure.
 * @param marks     out, may be NULL: for each byte of the text, 1 if it came from a message, else 0; free with
 *                  clv_free. Look for special tokens only at bytes whose mark is 0 (clv_tokenize_marked).
 * @param length    out: bytes of the text.
 * @return CLV_OK; CLV_E_UNSUPPORTED (the template uses something that Cleave does not support, which the message names
 *         with its line); CLV_E_FORMAT (`source` is not a template); CLV_E_ARGUMENT (the template rejects the
 *         conversation, for the reason in the message; a NULL; text that is not UTF-8); CLV_E_SHAPE (a limit is
 *         exceeded); CLV_E_MEMORY.
 * Threads: any.
 */
CLV_API clv_status clv_chat_render(const char *source, const clv_chat_message *messages,
                                   size_t count, const clv_chat_options *options, char **text,
                                   unsigned char **marks, size_t *length);

/** Returns the family of models whose conversation format a template writes ("chatml", "llama3", ...), recognised by
 *  the special tokens in the template; NULL if Cleave does not recognise the family. */
CLV_API const char *clv_chat_family(const char *source);
/** Returns a template for a family: chatml, llama2, llama3, mistral, gemma, phi3, zephyr; NULL if there is no such
 *  family. */
CLV_API const char *clv_chat_template(const char *family);

CLV_END_DECLS

#endif
