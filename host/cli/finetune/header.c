/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises a header in a table of examples. */
#include "host/cli/finetune/header.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {
    "text",      "text1",     "text2",     "text_a",     "text_b",     "texts",     "sentence",
    "sentences", "sentence1", "sentence2", "sentence_a", "sentence_b", "document",  "doc",
    "title",     "body",      "content",   "comment",    "message",    "review",    "tweet",
    "utterance", "input",     "query",     "question",   "question1",  "question2", "passage",
    "answer",    "anchor",    "positive",  "premise",    "hypothesis", "label",     "labels",
    "class",     "classes",   "category",  "target",     "sentiment",  "topic",     "intent",
    "emotion",   "language",  "tag",       "output",     "response",   "y",
};

static bool is_name(const char *text, size_t length)
{
    while (length && (*text == ' ' || *text == '"'))
        ++text, --length;
    while (length && (text[length - 1] == ' ' || text[length - 1] == '"'))
        --length;
    for (size_t i = 0; i < CLV_LEN(names); ++i)
        if (strlen(names[i]) == length && !strncasecmp(names[i], text, length)) return true;
    return false;
}

size_t cli_header_names(const char *const text[2], const size_t length[2])
{
    return (size_t)is_name(text[0], length[0]) + (size_t)is_name(text[1], length[1]);
}

void cli_header_show(const char *const text[2], const size_t length[2], char *out, size_t room)
{
    size_t used = 0;
    for (int k = 0; k < 2; ++k) {
        for (size_t i = 0; i < length[k] && used + 2 < room; ++i) {
            const unsigned char c = (unsigned char)text[k][i];
            out[used++] = c < ' ' || c == 0x7F ? ' ' : (char)c;
        }
        if (!k && used + 2 < room) out[used++] = ' ';
    }
    while (used && ((unsigned char)out[used - 1] & 0xC0) == 0x80)
        --used;
    if (used && (unsigned char)out[used - 1] >= 0xC0) --used;
    out[used] = '\0';
}
